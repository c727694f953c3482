/**
 * The label that names the environment, such as "production", and its colors. The page sets them by CSSOM, which its content
 * security policy allows.
 */
import { shown, UsageError } from "../../errors.ts";

const white = "#ffffff";
/** Text on each color has a contrast of at least 4.5 : 1. */
const colors = {
  red: { paper: "#b91c1c", ink: white },
  orange: { paper: "#c2410c", ink: white },
  yellow: { paper: "#facc15", ink: "#000000" },
  green: { paper: "#15803d", ink: white },
  blue: { paper: "#1d4ed8", ink: white },
  violet: { paper: "#6d28d9", ink: white },
  pink: { paper: "#be185d", ink: white },
  grey: { paper: "#52525b", ink: white },
} as const;

/** @throws UsageError BAD_OPTION */
export function labelColors(name: unknown): { readonly paper: string; readonly ink: string } | null {
  if (name === undefined) return null;
  if (typeof name === "string" && Object.hasOwn(colors, name)) return colors[name as keyof typeof colors];
  throw new UsageError(
    "BAD_OPTION",
    `labelColor must be ${Object.keys(colors).join(", ")}; got ${shown(name)}.`,
    { details: { option: "labelColor" } },
  );
}

/** @throws UsageError BAD_OPTION */
export function checkLabel(label: unknown): string | null {
  if (label === undefined) return null;
  if (typeof label === "string" && label.trim() !== "" && label.length <= 60) return label;
  throw new UsageError("BAD_OPTION", `label must be a text of at most 60 characters; got ${shown(label)}.`, {
    details: { option: "label" },
  });
}
