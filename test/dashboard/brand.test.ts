// The dashboard in somebody's own dress: what a brand may say, what its stylesheet has of it, and that nothing else gets in.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { dashboardWith } from "../../src/dashboard/handler.ts";
import { open, silentLogger } from "../../src/index.ts";
import { accentIn, type Brand, dressOf, SURFACES } from "../../src/dashboard/appearance/brand.ts";
import { contrast } from "../../src/dashboard/appearance/contrast.ts";
import { coded } from "../support/test-clients.ts";
import { TOKEN } from "./support.ts";

const svg =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8"><path d="M0 0h8v8z" fill="#0f766e"/></svg>';
const pixel =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const style = readFileSync(new URL("../../ui/src/style/tokens.css", import.meta.url), "utf8");

/** A colour of the page's own stylesheet, in both themes. */
function token(name: string): readonly [light: string, dark: string] {
  const [, light, dark] =
    new RegExp(`^  --${name}: light-dark\\((#\\w{6}), (#\\w{6})\\);$`, "m").exec(style) ?? [];
  return [light ?? "", dark ?? ""];
}

describe("[K2] a brand's stylesheet", () => {
  test("has the tokens of the page's own by name, and nothing where nothing is said", () => {
    expect(dressOf(undefined)).toBeNull();
    expect(dressOf({ name: "Acme" })).toEqual({ name: "Acme", css: null, logo: null });
    const { css } = dressOf({ accent: "#0F766E", radius: 0, font: "Acme Sans, Inter" })!;
    expect(css).toMatch(/^:root \{\n(?: {2}--[a-z-]+: [^;{}]+;\n)+\}\n$/);
    expect(css).toContain("--primary: light-dark(#0f766e,");
    expect(css).toContain("--radius: 0px;");
    expect(css).toContain('--font-sans: "Acme Sans", "Inter", Inter, system-ui');
    const set = [...css!.matchAll(/--[a-z-]+(?=:)/g)].map(([name]) => name);
    for (const name of set) expect(style, name).toContain(`\n  ${name}:`);
    expect(dressOf({ accent: { light: "#0f766e", dark: "#5eead4" } })!.css).toContain(
      "--primary: light-dark(#0f766e, #5eead4);",
    );
  });

  test("knows the surfaces that the page has", () => {
    const names = ["background", "card", "popover", "sunken", "hover"];
    expect(names.map((name) => token(name)[0])).toEqual(SURFACES.light);
    expect(names.map((name) => token(name)[1])).toEqual(SURFACES.dark);
  });

  test("can be read on every surface of both themes, whatever the accent", () => {
    const steps = ["00", "55", "aa", "ff"];
    const colors = steps.flatMap((r) => steps.flatMap((g) => steps.map((b) => `#${r}${g}${b}`)));
    const words = ["foreground", "muted-foreground", "good", "warn", "bad", "info", "violet"];
    for (const color of [...colors, "#facc15", "#4f46e5", "#777777"])
      for (const [i, theme] of (["light", "dark"] as const).entries()) {
        const { fill, ink, text, soft } = accentIn(theme, color);
        const least = (of: string, on: readonly string[]): number =>
          Math.min(...on.map((one) => contrast(of, one)));
        expect([color, theme, least(text, [...SURFACES[theme], soft]) >= 4.5]).toEqual([color, theme, true]);
        expect([color, theme, least(fill, SURFACES[theme]) >= 3]).toEqual([color, theme, true]);
        expect([color, theme, contrast(ink, fill) >= 4.5]).toEqual([color, theme, true]);
        // What is selected has text of every colour on it.
        for (const word of words)
          expect([color, theme, word, contrast(token(word)[i]!, soft) >= 4.5]).toEqual([
            color,
            theme,
            word,
            true,
          ]);
      }
    // One that can be read stays as it is.
    expect(accentIn("light", "#0f766e").fill).toBe("#0f766e");
    expect(accentIn("light", "#facc15").fill).not.toBe("#facc15");
  });

  test.for<[keyof Brand | "accent.dark" | "style", unknown]>([
    ["accent", "red; } body { display: none } :root { --x: y"],
    ["accent", "#0f766e; background: url(https://evil.example)"],
    ["accent", "#0f766e\n}"],
    ["accent", "url(javascript:alert(1))"],
    ["accent", "var(--x)"],
    ["accent", "#0f766"],
    ["accent", "rgb(1 2 3)"],
    ["accent", 123],
    ["accent.dark", { light: "#0f766e" }],
    ["accent.dark", { light: "#0f766e", dark: "#000000}*{x:y" }],
    ["radius", "4px"],
    ["radius", "0;} * { display: none"],
    ["radius", 1.5],
    ["radius", -1],
    ["radius", 99],
    ["radius", Number.NaN],
    ["font", 'Inter"; } * { color: red'],
    ["font", "Inter; src: url(https://evil.example)"],
    ["font", "url(https://evil.example/f.woff2)"],
    ["font", "Inter\\22 }"],
    ["font", "expression(alert(1))"],
    ["font", ""],
    ["font", ["Inter"]],
    ["name", ""],
    ["name", "x".repeat(41)],
    ["name", "Acme\nJobs"],
    ["name", "Acme\u202egro.live"],
    ["name", 1],
    ["logo", "https://evil.example/logo.svg"],
    ["logo", "//evil.example/logo.svg"],
    ["logo", "/\\evil.example/logo.svg"],
    ["logo", 'javascript:alert("x")'],
    ["logo", "data:text/html;base64,PHNjcmlwdD4="],
    ["logo", "data:image/svg+xml,<svg onload=alert(1)>"],
    ["logo", `data:image/svg+xml;base64,${btoa("<svg><script>alert(1)</script></svg>")}`],
    ["logo", `data:image/svg+xml;base64,${btoa("<html><body>hello</body></html>")}`],
    ["logo", "<svg><script>alert(1)</script></svg>"],
    ["logo", "<svg><a:script xmlns:a='x'>alert(1)</a:script></svg>"],
    ["logo", "<svg onload='alert(1)'></svg>"],
    ["logo", "<svg/onload=alert(1)></svg>"],
    ["logo", '<svg><image href="https://evil.example/x.png"/></svg>'],
    ["logo", '<svg><use xlink:href="https://evil.example/x.svg#y"/></svg>'],
    ["logo", "<svg><style>@import 'https://evil.example/x.css'</style></svg>"],
    ["logo", '<svg><rect fill="url(https://evil.example/#x)"/></svg>'],
    ["logo", "<svg><foreignObject><body/></foreignObject></svg>"],
    ["logo", "<!DOCTYPE svg><svg></svg>"],
    ["logo", '<svg>]><!ENTITY x SYSTEM "file:///etc/passwd"></svg>'],
    ["logo", `<svg>${" ".repeat(70_000)}</svg>`],
    ["logo", 5],
  ])("%s: %j is refused", ([option, value]) => {
    const brand = option === "accent.dark" ? { accent: value } : { [option]: value };
    expect(() => dressOf(brand)).toThrow(coded("BAD_OPTION"));
  });

  test("what is no option of it is refused by name", () => {
    expect(() => dressOf({ css: "body { display: none }" })).toThrow(coded("UNKNOWN_OPTION"));
    expect(() => dressOf("Acme")).toThrow(coded("BAD_OPTION"));
  });
});

describe("[K2] a branded page", () => {
  async function asked(brand: Brand, path: string): Promise<Response> {
    const directory = mkdtempSync(join(tmpdir(), "page-"));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    writeFileSync(
      join(directory, "index.html"),
      '<html><head><title>Holdfast</title><link rel="icon" href="./icon.svg" type="image/svg+xml" /><!--settings--><link rel="stylesheet" href="./assets/a.css"></head></html>',
    );
    const hf = await open("sqlite::memory:", { logger: silentLogger });
    onTestFinished(() => hf.close());
    const options = { auth: { token: TOKEN }, basePath: "/admin", brand };
    const handler = dashboardWith(hf, options, directory);
    onTestFinished(() => handler.close());
    return handler(new Request(`http://localhost/admin/${path}`, { headers: { accept: "text/html" } }));
  }

  test("has its name as text, its logo as icon, and its stylesheet last, from our own server and without a style of its own", async () => {
    const brand = { name: 'A</title><script>x("y")', logo: svg, accent: "#0f766e" };
    const html = await (await asked(brand, "jobs")).text();
    expect(html).toContain("<title>A&#60;/title&#62;&#60;script&#62;x(&#34;y&#34;)</title>");
    expect(html).toContain('<link rel="icon" href="/admin/brand-logo.svg" />');
    expect(html.indexOf("/admin/brand.css")).toBeGreaterThan(html.indexOf("/admin/assets/a.css"));
    expect(html).not.toMatch(/<style|style=/);
    const settings = JSON.parse(/id="settings">(.*?)<\/script>/.exec(html)![1]!) as { brand: unknown };
    expect(settings.brand).toEqual({ name: brand.name, logo: "/admin/brand-logo.svg" });

    const css = await asked(brand, "brand.css");
    expect([css.status, css.headers.get("content-type")]).toEqual([200, "text/css; charset=utf-8"]);
    expect(await css.text()).toBe(dressOf(brand)!.css);
    const logo = await asked(brand, "brand-logo.svg");
    expect(logo.headers.get("content-type")).toBe("image/svg+xml");
    for (const header of ["content-security-policy", "x-content-type-options"])
      expect(logo.headers.get(header), header).not.toBeNull();
    expect(logo.headers.get("content-security-policy")).toContain("script-src 'self'");
    expect(await logo.text()).toBe(svg);
  });

  test("takes a logo as a data: URL or from a path of its own origin; without a brand nothing is added", async () => {
    expect((await asked({ logo: pixel }, "brand-logo.png")).headers.get("content-type")).toBe("image/png");
    expect(await (await asked({ logo: "/static/logo.svg" }, "jobs")).text()).toContain(
      '<link rel="icon" href="/static/logo.svg" />',
    );
    const plain = await (await asked({}, "jobs")).text();
    expect(plain).toContain("<title>Holdfast</title>");
    expect(plain).not.toContain("brand.css");
    expect((await asked({}, "brand.css")).status).toBe(404);
  });
});
