// Health and readiness without a token, for orchestrators; latency and metrics with one, for autoscalers and Prometheus.
import { describe, expect, test, vi } from "vitest";
import { dashboard } from "../../src/dashboard/handler.ts";
import { defineJob, StoreError } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { api, over, TOKEN } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const authorization = `Bearer ${TOKEN}`;

onEveryStore((target) => {
  describe("probes", () => {
    test("/health and /ready say yes or no to everybody, and not a word more", async () => {
      const { hf, handler } = await api(target);
      const ask = async (path: string, init: RequestInit = {}): Promise<[number, unknown]> => {
        const response = await handler(new Request(`http://localhost/api/v1${path}`, init));
        expect(response.headers.get("content-security-policy")).toContain("default-src 'none'");
        return [response.status, await response.json()];
      };
      for (const path of ["/health", "/ready"]) {
        expect(await ask(path)).toEqual([200, { ok: true }]);
        expect(await ask(path, { headers: { authorization } })).toEqual([200, { ok: true }]);
        // A wrong token is no guess here.
        for (let n = 0; n < 12; n += 1) await ask(path, { headers: { authorization: "Bearer wrong" } });
        expect((await ask(path, { method: "POST", headers: { "x-holdfast": "1" } }))[0]).toBe(401);
        expect((await ask(path, { headers: { "sec-fetch-site": "cross-site" } }))[0]).toBe(403);
        expect((await ask(`${path}?x=1`))[0]).toBe(400);
      }
      for (const path of ["/latency", "/metrics", "/overview", "/me"]) expect((await ask(path))[0]).toBe(401);
      await hf.close();
    });

    test("both say no when the database is away, and whoever asks often asks the database once a second", async () => {
      const clock = new FakeClock();
      const { hf } = await fresh(target, { clock });
      const { get } = over(hf);
      const { store } = operatorOf(hf);
      const now = vi.spyOn(store, "now");
      for (let n = 0; n < 20; n += 1) expect((await get("/health")).status).toBe(200);
      expect(now.mock.calls.length).toBeLessThanOrEqual(1);
      const asked = vi
        .spyOn(hf, "databaseNow")
        .mockRejectedValue(new StoreError("CONNECTION_LOST", "10.0.0.1"));
      expect((await get("/health")).status).toBe(200);
      await clock.advance("1s");
      for (let n = 0; n < 20; n += 1)
        for (const path of ["/health", "/ready"]) {
          const { status, body } = await get(path);
          expect([status, body]).toEqual([503, { ok: false }]);
        }
      expect(asked).toHaveBeenCalledTimes(1);
      asked.mockRestore();
      await clock.advance("1s");
      expect((await get("/ready")).status).toBe(200);
    });

    test("a process whose worker is stopping is healthy and not ready", async () => {
      const { hf, get } = await api(target);
      const { promise: held, resolve: letGo } = Promise.withResolvers<void>();
      const slow = defineJob({ name: "slow", run: () => held });
      await hf.enqueue(slow, null);
      const worker = hf.work([slow], { queues: ["default"] });
      await waitFor(() => worker.running === 1, { what: "the job to run" });
      const stopping = worker.stop();
      await waitFor(async () => (await get("/ready")).status === 503, { what: "not ready" });
      expect((await get("/health")).status).toBe(200);
      letGo();
      await stopping;
    });

    test("/latency and /metrics tell who is signed in what the worker's own server tells", async () => {
      const { hf, get, handler } = await api(target);
      await hf.enqueueMany([
        { job: "plain", input: 1, queue: "mail" },
        { job: "plain", input: 2, queue: "mail" },
        { job: "plain", input: 3, queue: "other" },
      ]);
      const { body: all } = await get<{ ready: number; lagMs: number; queues: { queue: string }[] }>(
        "/latency",
      );
      expect([all.ready, all.queues.map(({ queue }) => queue).sort()]).toEqual([3, ["mail", "other"]]);
      expect((await get("/latency?queue=mail")).body).toMatchObject({
        ready: 2,
        queues: [{ queue: "mail" }],
      });
      expect((await get("/latency?queue=mail&queue=other")).body).toMatchObject({ ready: 3 });
      const metrics = await handler(
        new Request("http://localhost/api/v1/metrics", { headers: { authorization } }),
      );
      expect([metrics.status, metrics.headers.get("content-type")]).toEqual([
        200,
        "text/plain; version=0.0.4; charset=utf-8",
      ]);
      const text = await metrics.text();
      expect(text).toContain("holdfast_up 1\n");
      expect(text).toContain('holdfast_queue_depth{queue="mail",state="ready"} 2\n');
      const blind = over(hf, { auth: () => ({ name: "eve", permissions: [] }) });
      for (const path of ["/latency", "/metrics"]) expect((await blind.get(path)).status).toBe(403);
    });

    test("of several databases, the process is well when all are", async () => {
      const [{ hf: main }, { hf: other }] = [await fresh(target), await fresh(target)];
      const handler = dashboard({ main, other }, { auth: { token: TOKEN }, basePath: "/jobs" });
      const ask = async (path: string): Promise<number> =>
        (await handler(new Request(`http://localhost/jobs${path}`))).status;
      for (const path of ["/api/v1/health", "/api/v1/ready", "/db/main/api/v1/health"])
        expect([path, await ask(path)]).toEqual([path, 200]);
      expect(await ask("/api/v1/me")).toBe(401);
      await other.close();
      await waitFor(async () => (await ask("/api/v1/health")) === 503, { what: "the process to be unwell" });
      expect(await ask("/db/main/api/v1/health")).toBe(200);
      expect(await ask("/db/other/api/v1/ready")).toBe(503);
      handler.close();
    });
  });
});
