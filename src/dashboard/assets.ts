/**
 * The page's files: read once from the package, looked up in a map by their exact name, so that no path of a request
 * ever meets the file system.
 *
 * index.html is a template: the base path and a few settings are put in at run time, the settings as JSON in a script
 * element that no browser runs.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SECURITY_HEADERS } from "./http.ts";

const types: Readonly<Record<string, string>> = {
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml",
  png: "image/png",
  ico: "image/x-icon",
  woff2: "font/woff2",
};

/** The page's own addresses; anything else is 404. */
const screens =
  /^(?:|jobs(?:\/[0-9A-Fa-f-]{1,64})?|errors(?:\/[0-9a-f]{1,64})?|queues(?:\/[A-Za-z0-9._:-]{1,128})?|workflows|scheduled|retries|schedules|workers|limits|database|operations|audit)$/;

export class Assets {
  readonly #files = new Map<string, { body: Uint8Array<ArrayBuffer>; type: string }>();
  readonly #index: string | null;

  constructor(directory: string) {
    let index: string | null = null;
    for (const name of list(directory)) {
      const body = new Uint8Array(readFileSync(join(directory, name)));
      if (name === "index.html") index = new TextDecoder().decode(body);
      else
        this.#files.set(name, {
          body,
          type: types[name.split(".").at(-1) ?? ""] ?? "application/octet-stream",
        });
    }
    this.#index = index;
  }

  /** A file by its name below the base path. */
  file(name: string): Response | null {
    const file = this.#files.get(name);
    if (file === undefined) return null;
    return new Response(file.body, {
      headers: {
        ...SECURITY_HEADERS,
        "content-type": file.type,
        "cache-control": name.startsWith("assets/") ? "private, max-age=31536000, immutable" : "no-cache",
      },
    });
  }

  /** The page, for an address that is one of its screens. */
  page(name: string, basePath: string, settings: object): Response | null {
    if (!screens.test(name)) return null;
    if (this.#index === null)
      return new Response("The dashboard's page is not built: run `npm run build`. Its API works.\n", {
        status: 503,
        headers: { ...SECURITY_HEADERS, "content-type": "text/plain; charset=utf-8" },
      });
    const html = this.#index
      .replaceAll(/(src|href)="\.\//g, (_whole, attribute: string) => `${attribute}="${escape(basePath)}/`)
      .replace("<!--settings-->", () => scriptJson(settings));
    return new Response(html, {
      headers: { ...SECURITY_HEADERS, "content-type": "text/html; charset=utf-8" },
    });
  }
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
