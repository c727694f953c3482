/**
 * The page's files: read once from the package, looked up in a map by their exact name, so that no path of a request
 * ever meets the file system.
 *
 * Texts lie beside themselves as brotli and gzip, made when the page was built (ui/vite.config.ts), and each asker gets the
 * smallest that they take. Every coding has its own ETag, and `Vary` says that there are several.
 * index.html is a template: the base path and a few settings are put in at run time, the settings as JSON in a script
 * element that no browser runs. It is packed once for each address at which it is mounted.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { SECURITY_HEADERS } from "../http.ts";
import { isScreen } from "./screens.ts";

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  jpg: "image/jpeg",
  webp: "image/webp",
  ico: "image/x-icon",
  woff2: "font/woff2",
};

/** Smallest first. */
const codings = ["br", "gzip"] as const;
type Coding = (typeof codings)[number];
const endings: Readonly<Record<string, Coding>> = { br: "br", gz: "gzip" };

/** A file as it lies there, and packed. */
interface Packed {
  readonly hash: string;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly coded: ReadonlyMap<Coding, Uint8Array<ArrayBuffer>>;
}

export class Assets {
  readonly #files = new Map<string, Packed>();
  readonly #index: string | null;
  /** The page as it was last asked for: its settings hardly ever change. */
  #page: { readonly html: string; readonly packed: Packed } | null = null;

  constructor(directory: string) {
    const all = new Map(
      list(directory).map((name) => [name, new Uint8Array(readFileSync(join(directory, name)))]),
    );
    const index = all.get("index.html");
    this.#index = index === undefined ? null : new TextDecoder().decode(index);
    for (const [name, plain] of all) {
      // What is packed is served under its own name alone.
      if (name === "index.html" || codingOf(name, all) !== null) continue;
      const coded = new Map<Coding, Uint8Array<ArrayBuffer>>();
      for (const [ending, coding] of Object.entries(endings)) {
        const body = all.get(`${name}.${ending}`);
        if (body !== undefined) coded.set(coding, body);
      }
      this.#files.set(name, { hash: hashOf(plain), plain, coded });
    }
  }

  /** A file by its name below the base path. */
  file(name: string, request: Headers): Response | null {
    const file = this.#files.get(name);
    if (file === undefined) return null;
    return answer(file, request, {
      "content-type": types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
      "cache-control": name.startsWith("assets/") ? "private, max-age=31536000, immutable" : "no-cache",
    });
  }

  /**
   * The page, for an address that is one of its screens. Who reads HTML gets it with a 404 for any other address too, where it
   * says so in its own words; below the files' folder nobody does.
   */
  page(name: string, basePath: string, settings: object, request: Headers): Response | null {
    const found = isScreen(name);
    if (!found && (name.startsWith("assets/") || !readsHtml(request))) return null;
    if (this.#index === null)
      return new Response("The dashboard's page is not built: run `npm run build`. Its API works.\n", {
        status: 503,
        headers: { ...SECURITY_HEADERS, "content-type": "text/plain; charset=utf-8" },
      });
    const html = this.#index
      .replaceAll(/(src|href)="\.\//g, (_whole, attribute: string) => `${attribute}="${escape(basePath)}/`)
      .replace("<!--settings-->", () => scriptJson(settings));
    if (this.#page?.html !== html) this.#page = { html, packed: pack(html) };
    const asked = new Headers(request);
    // A page that is not there is never "unchanged".
    if (!found) asked.delete("if-none-match");
    const response = answer(this.#page.packed, asked, { "content-type": "text/html; charset=utf-8" });
    return found ? response : new Response(response.body, { status: 404, headers: response.headers });
  }
}

/** A browser that opens an address names HTML; scripts and tools that take anything do not. */
function readsHtml(request: Headers): boolean {
  return /(?:^|,)\s*text\/html\s*(?:[;,]|$)/i.test(request.get("accept") ?? "");
}

function answer({ hash, plain, coded }: Packed, request: Headers, headers: Record<string, string>): Response {
  const coding = codings.find((one) => coded.has(one) && takes(request.get("accept-encoding"), one));
  const body = coding === undefined ? plain : (coded.get(coding) ?? plain);
  const etag = `"${hash}${coding === undefined ? "" : `-${coding}`}"`;
  const all = {
    ...SECURITY_HEADERS,
    ...headers,
    etag,
    ...(coded.size === 0 ? {} : { vary: "accept-encoding" }),
  };
  const known = request.get("if-none-match");
  if (known !== null && known.split(",").some((one) => one.trim().replace(/^W\//, "") === etag))
    return new Response(null, { status: 304, headers: all });
  return new Response(body, {
    headers: {
      ...all,
      "content-length": String(body.byteLength),
      ...(coding === undefined ? {} : { "content-encoding": coding }),
    },
  });
}

/** Whether the asker takes this coding: named, or by `*`, and not with a weight of 0. */
export function takes(accepted: string | null, coding: Coding): boolean {
  const weights = new Map<string, number>();
  for (const one of (accepted ?? "").toLowerCase().split(",")) {
    const [name = "", ...rest] = one.split(";").map((part) => part.trim());
    const weight = rest.map((part) => /^q=([\d.]+)$/.exec(part)?.[1]).find((value) => value !== undefined);
    if (name !== "") weights.set(name, weight === undefined ? 1 : Number(weight));
  }
  return (weights.get(coding) ?? weights.get("*") ?? 0) > 0;
}

function pack(text: string): Packed {
  const plain = new TextEncoder().encode(text);
  return {
    hash: hashOf(plain),
    plain,
    coded: new Map([
      ["br", new Uint8Array(brotliCompressSync(plain))],
      ["gzip", new Uint8Array(gzipSync(plain))],
    ]),
  };
}

function hashOf(body: Uint8Array): string {
  return createHash("sha256").update(body).digest("base64url").slice(0, 22);
}

/** The coding of a file that lies beside what it was made of; null: it is a file of its own. */
function codingOf(name: string, all: ReadonlyMap<string, unknown>): Coding | null {
  const dot = name.lastIndexOf(".");
  const coding = endings[name.slice(dot + 1)];
  return coding !== undefined && all.has(name.slice(0, dot)) ? coding : null;
}
function list(directory: string): string[] {
  try {
    return readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(directory.length + 1)
          .replaceAll("\\", "/"),
      );
  } catch {
    return [];
  }
}

/** JSON in HTML: nothing in it can end the element, and no line separator ends a line. */
function scriptJson(value: object): string {
  const text = JSON.stringify(value).replaceAll(
    /[<>&\u2028\u2029]/g,
    (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
  return `<script type="application/json" id="settings">${text}</script>`;
}

function escape(text: string): string {
  return text.replaceAll(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
