// A header that does not come does not hold a socket: the server's own settings, and how often it looks.
import { createServer } from "node:http";
import { expect, onTestFinished, test, vi } from "vitest";
import { serve } from "../../src/dashboard/serve.ts";
import { open, silentLogger } from "../../src/index.ts";

vi.mock("node:http", { spy: true });

test("[O18] a header that does not come ends its connection after 10 s, and the server looks every second", async () => {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  onTestFinished(() => hf.close());
  const server = await serve(hf, { port: 0 });
  onTestFinished(() => server.close());
  const [options] = vi.mocked(createServer).mock.calls[0] as [{ connectionsCheckingInterval: number }];
  const made = vi.mocked(createServer).mock.results[0]!.value as ReturnType<typeof createServer>;
  expect(options.connectionsCheckingInterval).toBe(1_000);
  expect([made.headersTimeout, made.requestTimeout]).toEqual([10_000, 30_000]);
});
