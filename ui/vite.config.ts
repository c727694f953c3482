// The page: built into dist/dashboard/page, beside the compiled handler that serves it. Relative addresses, because the
// handler puts the base path in at run time; no inline script or style, because the content security policy allows none.
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "./",
  build: {
    outDir: fileURLToPath(new URL("../dist/dashboard/page", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
