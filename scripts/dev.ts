// `npm run dev`: the dashboard's page from ui/ with hot reload, on a temporary SQLite file with the shop of `holdfast demo`.
// A change below ui/ reaches the browser at once. A change below src/ starts this script again (node --watch), with a new file.
// The port is 5173, or PORT. LOG=debug prints all log lines.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createServer } from "vite";
import { openShop } from "../src/cli/start/demo-shop.ts";
import { dashboard, type NodeRequest, toNodeHandler } from "../src/dashboard/index.ts";
import { consoleLogger, open, silentLogger } from "../src/index.ts";

const port = Number(process.env["PORT"] ?? 5173);
const folder = mkdtempSync(join(tmpdir(), "holdfast-dev-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

// Most of the shop's jobs fail on purpose: without LOG nothing is logged.
const logger =
  process.env["LOG"] === "debug"
    ? {
        ...consoleLogger,
        debug: (details: object, message: string) => console.debug(message, details),
        info: (details: object, message: string) => console.info(message, details),
      }
    : silentLogger;
const hf = await open(`sqlite:${join(folder, "jobs.db")}`, { logger, metrics: true });
const shop = await openShop(hf);
const api = dashboard(hf, {
  label: "dev",
  auth: () => ({ name: "dev" }),
  hosts: [`localhost:${port}`, `127.0.0.1:${port}`],
});
const handle = toNodeHandler(api);
// As the handler puts them into the built page (src/dashboard/appearance/assets.ts).
const settings = JSON.stringify({ basePath: "", label: "dev", auth: "page" });

const server = await createServer({
  configFile: join(import.meta.dirname, "../ui/vite.config.ts"),
  configLoader: "native", // without a temporary file, which node --watch would take for a change
  server: { host: "127.0.0.1", port, strictPort: true },
  plugins: [
    {
      name: "dashboard-api",
      configureServer: ({ middlewares }) => {
        middlewares.use((request, response, next) => {
          if (request.url?.startsWith("/api/") === true) handle(request as NodeRequest, response, next);
          else next();
        });
      },
      transformIndexHtml: (html) =>
        html.replace("<!--settings-->", `<script type="application/json" id="settings">${settings}</script>`),
    },
  ],
});
await server.listen();
console.log(`Dashboard: http://localhost:${port}/`);

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  api.close();
  await Promise.all([server.close(), shop.stop()]);
  await hf.close();
  process.exit();
}
process.on("SIGINT", () => void stop());
process.on("SIGTERM", () => void stop());
