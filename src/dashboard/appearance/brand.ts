/**
 * The dashboard in the dress of whoever runs it: a name, a logo, a colour, corners and a font, as files that our own server
 * gives out, so that the content security policy need not be loosened.
 *
 * Invariants: nothing but colours (`#rrggbb`), whole pixels and names of fonts reaches the stylesheet, each checked against a
 * shape that no CSS can hide in; text in the accent's colour is at 4.5 : 1 and more on every surface of both themes, and what is
 * filled with it at 3 : 1, whatever the accent: where it is not, it goes as far towards black or white as it must. A logo is only
 * ever an image, in which nothing runs.
 * Not here: serving them (assets.ts), the tokens' own values (ui/src/style/tokens.css).
 */
import { shown, UsageError } from "../../errors.ts";
import { apartFrom, contrast, inkOn, mixed } from "./contrast.ts";
import { checkOptions } from "../../values/options.ts";

/**
 * How the dashboard is called and looks. All of it may be left out.
 *
 * @example
 * const brand: Brand = { name: "Acme Jobs", logo: "<svg xmlns=…>…</svg>", accent: "#0f766e", radius: 4 };
 */
export interface Brand {
  /** In place of "Holdfast": in the title, beside the logo, and where one signs in. At most 40 characters. */
  readonly name?: string | undefined;
  /**
   * The text of an SVG, an image as a data: URL (PNG, JPEG, WebP, SVG), or the path of one on the same origin ("/logo.svg"). Also
   * the icon of the tab. At most 64 KiB.
   */
  readonly logo?: string | undefined;
  /** "#rrggbb" for both themes, or one for each. Ink that can be read on it is chosen for it. */
  readonly accent?: string | { readonly light: string; readonly dark: string } | undefined;
  /** Of corners, in pixels: 0 to 16. Default 8. */
  readonly radius?: number | undefined;
  /** Fonts that the readers' machines have, the first first: "Acme Sans, Inter". */
  readonly font?: string | undefined;
}

/** A brand, checked: what the page needs of it. */
export interface Dress {
  readonly name: string | null;
  /** Null: the page's own tokens. */
  readonly css: string | null;
  readonly logo:
    | { readonly path: string }
    | { readonly ending: string; readonly body: Uint8Array<ArrayBuffer> }
    | null;
}

/** What text and fills stand on, as ui/src/style/tokens.css has it: background, card, popover, sunken, hover. */
export const SURFACES = {
  light: ["#f7f7f8", "#ffffff", "#ffffff", "#f3f3f5", "#f4f4f7"],
  dark: ["#0c0d10", "#131519", "#1a1d23", "#0f1114", "#1a1d23"],
} as const;

const cards = { light: "#ffffff", dark: "#131519" } as const;
const poles = { light: "#000000", dark: "#ffffff" } as const;
/** How far what is selected may be from its card, so that every colour of text can still be read on it. */
const softest = { light: 1.14, dark: 1.2 } as const;

const fonts =
  'Inter, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';
const mostLogo = 65_536;
const endings: Readonly<Record<string, string>> = {
  "image/png": "png",
  "image/jpeg": "jpg",
  "image/webp": "webp",
  "image/svg+xml": "svg",
};

type Theme = keyof typeof SURFACES;

/**
 * @throws UsageError BAD_OPTION, UNKNOWN_OPTION
 */
export function dressOf(brand: unknown): Dress | null {
  if (brand === undefined) return null;
  const { name, logo, accent, radius, font } = checkOptions(
    brand,
    ["name", "logo", "accent", "radius", "font"],
    "brand",
  );
  const tokens = [
    ...(accent === undefined ? [] : accentTokens(accent)),
    ...(radius === undefined ? [] : [`--radius: ${checkRadius(radius)}px`]),
    ...(font === undefined ? [] : [`--font-sans: ${fontList(font)}, ${fonts}`]),
  ];
  return {
    name: name === undefined ? null : checkBrandName(name),
    css: tokens.length === 0 ? null : `:root {\n${tokens.map((token) => `  ${token};\n`).join("")}}\n`,
    logo: logo === undefined ? null : checkLogo(logo),
  };
}

/** What an accent becomes in a theme. */
export function accentIn(
  theme: Theme,
  accent: string,
): Readonly<Record<"fill" | "ink" | "text" | "soft", string>> {
  const surfaces = SURFACES[theme];
  const fill = apartFrom(accent, surfaces, 3, poles[theme]);
  let soft: string = cards[theme];
  for (let share = 0.2; share > 0 && soft === cards[theme]; share -= 0.01) {
    const one = mixed(cards[theme], fill, share);
    if (contrast(one, cards[theme]) <= softest[theme]) soft = one;
  }
  return { fill, ink: inkOn(fill), soft, text: apartFrom(accent, [...surfaces, soft], 4.5, poles[theme]) };
}

function accentTokens(accent: unknown): string[] {
  const both = typeof accent === "string" ? { light: accent, dark: accent } : accent;
  const given = checkOptions(both, ["light", "dark"], "brand.accent");
  const light = accentIn("light", checkColor(given["light"], "brand.accent.light"));
  const dark = accentIn("dark", checkColor(given["dark"], "brand.accent.dark"));
  const token = (name: string, part: keyof typeof light): string =>
    `--${name}: light-dark(${light[part]}, ${dark[part]})`;
  return [
    token("primary", "fill"),
    token("primary-foreground", "ink"),
    token("primary-text", "text"),
    token("primary-soft", "soft"),
  ];
}

function checkColor(value: unknown, option: string): string {
  if (typeof value === "string" && /^#[0-9a-f]{6}$/i.test(value)) return value.toLowerCase();
  throw bad(option, 'must be a colour such as "#0f766e"', value);
}

function checkRadius(value: unknown): number {
  if (typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= 16) return value;
  throw bad("brand.radius", "must be a whole number of pixels from 0 to 16", value);
}

/** Each in quotes; what could end them is no part of a name. */
function fontList(value: unknown): string {
  const names = typeof value === "string" ? value.split(",").map((name) => name.trim()) : [];
  if (
    names.length > 0 &&
    names.length <= 8 &&
    names.every((name) => /^[\p{L}\p{N}][\p{L}\p{N} _-]{0,59}$/u.test(name))
  )
    return names.map((name) => `"${name}"`).join(", ");
  throw bad(
    "brand.font",
    'must be up to 8 names of fonts with commas between, such as "Acme Sans, Inter": letters, digits, spaces, "-" and "_"',
    value,
  );
}

function checkBrandName(value: unknown): string {
  // No control or invisible characters: it stands in the title of a window.
  if (
    typeof value === "string" &&
    value.trim() !== "" &&
    value.length <= 40 &&
    !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u.test(value)
  )
    return value.trim();
  throw bad("brand.name", "must be a text of at most 40 characters, on one line", value);
}

function checkLogo(value: unknown): NonNullable<Dress["logo"]> {
  const wanted =
    'must be the text of an SVG, an image as a data: URL (image/png, image/jpeg, image/webp or image/svg+xml; base64), or a path on the same origin such as "/logo.svg"';
  if (typeof value !== "string") throw bad("brand.logo", wanted, value);
  if (value.length > mostLogo * 1.4)
    throw bad("brand.logo", `is too large: at most ${mostLogo} bytes`, value);
  if (/^\s*<svg[\s>]/.test(value)) return { ending: "svg", body: checkSvg(value) };
  // "//" and "/\" would lead to another host.
  if (/^\/(?![/\\])[\w./~@%+-]{1,200}$/.test(value)) return { path: value };
  const [, type = "", data = ""] = /^data:([a-z+/]+);base64,([A-Za-z0-9+/]+={0,2})$/.exec(value) ?? [];
  const ending = endings[type];
  if (ending === undefined) throw bad("brand.logo", wanted, value);
  const body = new Uint8Array(Buffer.from(data, "base64"));
  if (ending === "svg") return { ending, body: checkSvg(new TextDecoder().decode(body)) };
  if (body.byteLength > mostLogo) throw bad("brand.logo", `is too large: at most ${mostLogo} bytes`, value);
  return { ending, body };
}

/** In an image nothing runs and nothing is loaded; as a document of its own it must be as harmless. */
function checkSvg(text: string): Uint8Array<ArrayBuffer> {
  const body = new TextEncoder().encode(text.trim());
  if (body.byteLength > mostLogo) throw bad("brand.logo", `is too large: at most ${mostLogo} bytes`, text);
  if (!/^<svg[\s>]/.test(text.trim())) throw bad("brand.logo", "must begin with <svg", text);
  const harm = [
    [
      /<\s*(?:[\w-]+:)?(?:script|foreignobject|iframe|object|embed|handler|listener|animate|set)\b/i,
      "an element that may run something",
    ],
    [/[\s"'/]on[a-z]+\s*=/i, "a handler of events"],
    [/<!(?!--)/, "a document type"],
    [/<\?/, "a processing instruction"],
    [/(?:javascript|vbscript)\s*:/i, "a script"],
    [/(?:href|src)\s*=\s*(?!["']#)/i, "a reference to something outside"],
    [/@import|url\s*\(\s*(?!["']?#)/i, "a reference to something outside"],
  ] as const;
  const found = harm.find(([shape]) => shape.test(text));
  if (found !== undefined) throw bad("brand.logo", `has ${found[1]}, which a logo needs not`, text);
  return body;
}

function bad(option: string, must: string, got: unknown): UsageError {
  return new UsageError("BAD_OPTION", `${option} ${must}; got ${shown(got)}.`, { details: { option } });
}
