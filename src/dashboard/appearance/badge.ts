/**
 * The colour of the label that says which environment this is: a name or `#rrggbb`, and ink that can be read on it.
 *
 * Invariant: black or white can be read on any colour that there is (contrast.ts), so that none has to be refused. The page sets both by CSSOM, which its content security policy allows.
 */
import { shown, UsageError } from "../../errors.ts";
import { inkOn } from "./contrast.ts";

export const LABEL_COLORS = {
  red: "#b91c1c",
  orange: "#c2410c",
  yellow: "#facc15",
  green: "#15803d",
  blue: "#1d4ed8",
  violet: "#6d28d9",
  pink: "#be185d",
  grey: "#52525b",
} as const;

export interface Badge {
  readonly paper: string;
  readonly ink: string;
}

/** @throws UsageError BAD_OPTION */
export function badgeOf(color: unknown): Badge | null {
  if (color === undefined || color === null) return null;
  const named =
    typeof color === "string" && Object.hasOwn(LABEL_COLORS, color)
      ? LABEL_COLORS[color as keyof typeof LABEL_COLORS]
      : color;
  if (typeof named !== "string" || !/^#[0-9a-f]{6}$/i.test(named))
    throw new UsageError(
      "BAD_OPTION",
      `labelColor must be ${Object.keys(LABEL_COLORS).join(", ")} or a colour such as "#b91c1c"; got ${shown(color)}.`,
      { details: { option: "labelColor" } },
    );
  const paper = named.toLowerCase();
  return { paper, ink: inkOn(paper) };
}

/** @throws UsageError BAD_OPTION */
export function checkLabel(label: unknown): string | null {
  if (label === undefined) return null;
  if (typeof label === "string" && label.trim() !== "" && label.length <= 60) return label;
  throw new UsageError("BAD_OPTION", `label must be a text of at most 60 characters; got ${shown(label)}.`, {
    details: { option: "label" },
  });
}
