// The page: built into dist/dashboard/page, beside the compiled handler that serves it. Relative addresses, because the
// handler puts the base path in at run time; no inline script or style, because the content security policy allows none.
// Texts are packed here, once and as small as they get, so that no server has to do it for each asker.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

/** What is smaller goes into one packet anyway. */
const leastBytes = 1_024;

function packed(): Plugin {
  return {
    name: "packed",
    apply: "build",
    writeBundle: ({ dir = "" }) => {
      for (const entry of readdirSync(dir, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name);
        if (!entry.isFile() || !/\.(?:js|css|svg)$/.test(entry.name)) continue;
        const body = readFileSync(path);
        if (body.length < leastBytes) continue;
        const size = { [constants.BROTLI_PARAM_SIZE_HINT]: body.length };
        writeFileSync(`${path}.br`, brotliCompressSync(body, { params: size }));
        writeFileSync(`${path}.gz`, gzipSync(body, { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  base: "./",
  plugins: [packed()],
  build: {
    outDir: fileURLToPath(new URL("../dist/dashboard/page", import.meta.url)),
    emptyOutDir: true,
    target: "es2023",
    cssTarget: ["chrome123", "firefox121", "safari17.5"],
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Packing takes most of a small build: that is known.
    rolldownOptions: { checks: { pluginTimings: false } },
  },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
});
