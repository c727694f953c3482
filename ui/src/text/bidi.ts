// Shows bidirectional control characters as escapes in all rendered text. Copies, downloads and fields keep them.
import { type ComponentChildren, options, type VNode } from "preact";
import { visible } from "./visible-characters.ts";

function shown(children: ComponentChildren): ComponentChildren {
  if (typeof children === "string") return visible(children);
  return Array.isArray(children) ? children.map(shown) : children;
}

/** Installs the hook. */
export function startBidi(): void {
  const hooks: { vnode?: (vnode: VNode) => void } = options;
  const before = hooks.vnode;
  hooks.vnode = (vnode) => {
    const { props, type } = vnode as VNode<{ children?: ComponentChildren }>;
    // A field's value is sent back, so it stays unchanged.
    if (props.children !== undefined && type !== "textarea") props.children = shown(props.children);
    before?.(vnode);
  };
}
