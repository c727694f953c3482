// Every text that the page renders shows characters that turn text around as escapes, in this one place; copies, downloads and
// fields keep what is there.
import { type ComponentChildren, options, type VNode } from "preact";
import { visible } from "./visible-characters.ts";

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return visible(children);
  return Array.isArray(children) ? children.map(shown) : children;
}

/** From here on every text that an element has is shown so. */
export function startBidi(): void {
  const hooks: { vnode?: (vnode: VNode) => void } = options;
  const before = hooks.vnode;
  hooks.vnode = (vnode) => {
    const { props, type } = vnode as VNode<{ children?: ComponentChildren }>;
    // What a field holds is sent back.
    if (props.children !== undefined && type !== "textarea") props.children = shown(props.children);
    before?.(vnode);
  };
}
