// Texts with elements in them: one sentence for who translates it, whatever stands in it.
import type { ComponentChild, ComponentChildren } from "preact";
import { filled, type Word } from "./translation.ts";

/** A tag's value takes what is inside of it. */
type Tag = (inside: ComponentChildren) => ComponentChild;

/**
 * As `t`, of what can be rendered.
 *
 * @example
 * rich("See <a>the guide</a>, {name}.", { a: (inside) => <a href={guide}>{inside}</a>, name: <b>{name}</b> })
 */
export function rich(
  text: string,
  values: Readonly<Record<string, Word | ComponentChild | Tag>>,
): ComponentChildren {
  return [
    ...filled<ComponentChild>(
      text,
      (name) => values[name] as ComponentChild,
      (name, inside) => (typeof values[name] === "function" ? [(values[name] as Tag)([...inside])] : inside),
    ),
  ];
}
