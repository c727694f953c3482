// The page's files over real HTTP: packed as the asker takes them, each coding with its own mark.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { takes } from "../../src/dashboard/appearance/assets.ts";
import { dashboardWith } from "../../src/dashboard/handler.ts";
import { toNodeHandler } from "../../src/dashboard/node.ts";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";

const script = `export const words = "${"holdfast ".repeat(400)}";\n`;
const directory = mkdtempSync(join(tmpdir(), "holdfast-page-"));
const server = createServer((incoming, outgoing) => handle?.(incoming, outgoing));
let handle: ReturnType<typeof toNodeHandler> | undefined;
let hf: Holdfast;
let close: () => void;

beforeAll(async () => {
  mkdirSync(join(directory, "assets"));
  const put = (name: string, body: string | Uint8Array): void => writeFileSync(join(directory, name), body);
  put("index.html", `<!doctype html><title>t</title><script src="./assets/a.js"></script><!--settings-->`);
  put("assets/a.js", script);
  put("assets/a.js.br", brotliCompressSync(script));
  put("assets/a.js.gz", gzipSync(script));
  put("assets/small.css", "a{}");
  hf = await open("sqlite::memory:", { logger: silentLogger });
  const handler = dashboardWith(hf, { auth: { token: "0123456789abcdef" } }, directory);
  close = () => handler.close();
  handle = toNodeHandler(handler);
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
});

afterAll(async () => {
  close();
  server.closeAllConnections();
  server.close();
  await hf.close();
  rmSync(directory, { recursive: true });
});

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

function ask(path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Answer> {
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve, reject) => {
    const sent = request({ host: "127.0.0.1", port, path, headers, method }, (answer) => {
      const chunks: Buffer[] = [];
      answer.on("data", (chunk: Buffer) => chunks.push(chunk));
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, headers: answer.headers, body: Buffer.concat(chunks) }),
      );
    });
    sent.on("error", reject);
    sent.end();
  });
}

test("a script comes packed as small as the asker takes it, and is the same when unpacked", async () => {
  const plain = await ask("/assets/a.js");
  expect(plain.headers["content-encoding"]).toBeUndefined();
  expect(plain.body.toString()).toBe(script);
  const brotli = await ask("/assets/a.js", { "accept-encoding": "gzip, deflate, br, zstd" });
  expect(brotli.headers["content-encoding"]).toBe("br");
  expect(brotliDecompressSync(brotli.body).toString()).toBe(script);
  const gzip = await ask("/assets/a.js", { "accept-encoding": "gzip, br;q=0" });
  expect(gzip.headers["content-encoding"]).toBe("gzip");
  expect(gunzipSync(gzip.body).toString()).toBe(script);
  for (const { headers, body } of [plain, brotli, gzip]) {
    expect(headers["vary"]).toBe("accept-encoding");
    expect(headers["content-type"]).toBe("text/javascript; charset=utf-8");
    expect(headers["cache-control"]).toContain("immutable");
    expect(headers["content-security-policy"]).toContain("default-src 'none'");
    expect(headers["content-length"]).toBe(String(body.length));
  }
  expect(new Set([plain, brotli, gzip].map(({ headers }) => headers["etag"])).size).toBe(3);
  expect(brotli.body.length).toBeLessThan(script.length / 4);
});

test("who has it already gets 304, and only for the coding that they have", async () => {
  const br = { "accept-encoding": "br" };
  const { headers } = await ask("/assets/a.js", br);
  const etag = String(headers["etag"]);
  const again = await ask("/assets/a.js", { ...br, "if-none-match": `"other", W/${etag}` });
  expect([again.status, again.body.length, again.headers["etag"]]).toEqual([304, 0, etag]);
  expect(again.headers["content-security-policy"]).toContain("default-src 'none'");
  expect((await ask("/assets/a.js", { "accept-encoding": "gzip", "if-none-match": etag })).status).toBe(200);
});

test("the page itself is packed too, at every address of it", async () => {
  const plain = await ask("/jobs");
  expect(plain.body.toString()).toContain(`src="/assets/a.js"`);
  for (const [coding, unpack] of [
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync],
  ] as const) {
    const { headers, body } = await ask("/queues/mail", { "accept-encoding": coding });
    expect([headers["content-encoding"], headers["vary"]]).toEqual([coding, "accept-encoding"]);
    expect(unpack(body)).toEqual(plain.body);
  }
});

test("what is not packed comes as it is, HEAD has no body, and packed files have no address of their own", async () => {
  const small = await ask("/assets/small.css", { "accept-encoding": "br" });
  expect([small.headers["content-encoding"], small.headers["vary"], small.body.toString()]).toEqual([
    undefined,
    undefined,
    "a{}",
  ]);
  const head = await ask("/assets/a.js", { "accept-encoding": "br" }, "HEAD");
  expect([head.status, head.headers["content-encoding"], head.body.length]).toEqual([200, "br", 0]);
  expect((await ask("/assets/a.js.br")).status).toBe(404);
});

test("a coding is taken when it is named or by *, unless its weight is 0", () => {
  const cases = [
    ["br", true],
    ["gzip;q=1.0, BR;q=0.5", true],
    ["*", true],
    ["*;q=0", false],
    ["*, br;q=0", false],
    ["br;q=0.000", false],
    ["gzip", false],
    ["", false],
    [null, false],
  ] as const;
  for (const [accepted, expected] of cases)
    expect([accepted, takes(accepted, "br")]).toEqual([accepted, expected]);
});
