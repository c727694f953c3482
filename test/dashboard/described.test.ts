// The OpenAPI file is true: every route is asked for, and every answer held against its schema; so are the refusals.
import { describe, expect, test } from "vitest";
import type { Operation } from "../../src/dashboard/api/contract.ts";
import { StoreError } from "../../src/index.ts";
import { openapi, schemas } from "../../src/dashboard/api/openapi.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { onEveryStore } from "../support/stores.ts";
import { addressOf, type Call, changes, reads, routeOf, world } from "./every-route.ts";
import { misfits } from "./misfits.ts";
import { type Answer, api, TOKEN } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

interface Described {
  readonly operationId: string;
  readonly security?: readonly unknown[];
  readonly responses: Readonly<Record<string, { content?: Record<string, { schema: { $ref: string } }> }>>;
}
const document = openapi("") as { readonly paths: Readonly<Record<string, Record<string, Described>>> };

function described(id: string): Described {
  const { path, method } = routeOf(id);
  const all = document.paths[path.replaceAll(/:(\w+)/g, "{$1}")];
  const found = all?.[method.toLowerCase()];
  expect(found?.operationId).toBe(id);
  return found!;
}

/** What the description says of an answer with this status and content type. */
function wrongs(id: string, { status, body, headers }: Answer): string[] {
  const response = described(id).responses[String(status)];
  if (response === undefined) return [`${id}: ${status} is not described: ${JSON.stringify(body)}`];
  const type = (headers.get("content-type") ?? "").split(";")[0]!;
  if (response.content === undefined) return body === null ? [] : [`${id}: a body with ${status}`];
  const content = response.content[type];
  if (content === undefined)
    return [`${id}: ${status} is ${type}, not ${Object.keys(response.content).join()}`];
  return misfits(schemas[content.schema.$ref.split("/").at(-1)!]!, body, id);
}

onEveryStore((target) => {
  describe("the OpenAPI file", () => {
    test("[K1] every answer of every route is as it is described", async () => {
      const { hf, store, get, send, handler } = await api(target, {}, { jobLog: true });
      const there = await world(hf);
      // A worker that died, as its process leaves it.
      const same = "kind, name, host, pid, version, queues, names, runtime, release, versions, started_at";
      await store.query(
        `insert into ${store.table("session")} (id, ${same}, worker_id, beat_at, lease_until, lease_ms)
         select 1, ${same}, 'gone', started_at, started_at + 1, 1 from ${store.table("session")} where kind = 'worker' limit 1`,
      );
      const minute = Math.floor(Date.now() / 60_000 - 2) * 60_000;
      await operatorOf(hf).store.series.putGauges(
        (
          [
            ["web-1-10-00000000000a", "cpu"],
            ["v42", "release"],
            ["queues", "ready"],
            ["queue:mail", "ready"],
          ] as const
        ).map(([source, name]) => ({ minute, source, name, value: 1 })),
      );
      const asked = new Set<string>();
      const wrong: string[] = [];
      const ask = async (call: Call): Promise<Answer> => {
        const leave = new AbortController();
        const response = await handler(
          new Request(`http://localhost/api/v1${addressOf(call)}`, {
            headers: { authorization: `Bearer ${TOKEN}` },
            signal: leave.signal,
          }),
        );
        const { status, headers } = response;
        if (headers.get("content-type")?.includes("json;") !== true && call.id === "stream") {
          const reader = response.body!.getReader();
          const first = (await reader.read()).value as Uint8Array;
          await reader.cancel();
          return { status, headers, body: new TextDecoder().decode(first) };
        }
        const text = await response.text();
        const isJson = (headers.get("content-type") ?? "").startsWith("application/json");
        return { status, headers, body: isJson ? JSON.parse(text) : text };
      };
      const [lists, filled] = [new Set<string>(), new Set<string>()];
      const lookAtAll = async (operation: string): Promise<void> => {
        for (const call of reads(there, operation)) {
          asked.add(call.id);
          const answer = await ask(call);
          expect(answer.status, `${call.id}: ${JSON.stringify(answer.body)}`).toBe(200);
          wrong.push(...wrongs(call.id, answer));
          for (const [name, value] of Object.entries(answer.body as object))
            if (Array.isArray(value)) (value.length > 0 ? filled : lists).add(`${call.id}.${name}`);
        }
      };
      // It has ended, so that there is a refusal to tell of.
      const task = { action: "cancel", filter: { ids: [there.ids["dead"]] } };
      await lookAtAll((await send<Operation>("POST", "/jobs/bulk", task)).body.id);
      let operation = "";
      await changes(there, { get, send }, (call, answer) => {
        asked.add(call.id);
        expect([200, 202], `${call.id}: ${JSON.stringify(answer.body)}`).toContain(answer.status);
        wrong.push(...wrongs(call.id, answer));
        if (call.id === "pauseOperation") operation = (answer.body as { id: string }).id;
      });
      await hf.queues.set("spare", { concurrency: 2 }, { for: "1h" });
      await lookAtAll(operation);
      expect(wrong).toEqual([]);
      // An empty list fits every schema. These need minutes of work, many dead jobs, or databases that there is one of.
      expect([...lists].filter((one) => !filled.has(one)).sort()).toEqual([
        "about.databases",
        "checkInput.issues",
        "listWorkers.upkeepTasks",
        "stuckJobs.jobs",
      ]);
      expect([...asked].sort()).toEqual(routes.map(({ id }) => id).sort());
    }, 120_000);

    test("[K1] every refusal is described, and is as it is described", async () => {
      const { hf, get, send, handler } = await api(target, { maxBody: 200 });
      const { id } = await hf.enqueue("plain", 1);
      const wrong: string[] = [];
      const seen = new Set<number>();
      const is = (route: string, status: number, answer: Answer): void => {
        expect(answer.status, `${route} ${JSON.stringify(answer.body)}`).toBe(status);
        seen.add(status);
        wrong.push(...wrongs(route, answer));
      };
      const bare = async (path: string, init: RequestInit = {}): Promise<Answer> => {
        const response = await handler(new Request(`http://localhost/api/v1${path}`, init));
        const text = await response.text();
        return {
          status: response.status,
          headers: response.headers,
          body: text === "" ? null : JSON.parse(text),
        };
      };
      is("listJobs", 400, await get("/jobs?nonsense=1"));
      is("enqueue", 400, await send("POST", "/jobs", { name: "" }));
      is("listJobs", 401, await bare("/jobs"));
      is(
        "pauseQueue",
        403,
        await bare("/queues/x/pause", { method: "POST", headers: { "sec-fetch-site": "cross-site" } }),
      );
      is("getJob", 404, await get("/jobs/0199c1d8-7c00-7000-8000-000000000000"));
      is("listJobs", 405, await send("DELETE", "/jobs"));
      is("health", 405, await send("DELETE", "/health"));
      is("retryJob", 409, await send("POST", `/jobs/${id}/retry`));
      is("enqueue", 413, await send("POST", "/jobs", { name: "plain", input: "x".repeat(300) }));
      is("enqueue", 415, await send("POST", "/jobs", "{}", { "content-type": "text/plain" }));
      const wrongToken = { headers: { authorization: "Bearer not-this-one" } };
      for (let n = 0; n < 10; n += 1) await bare("/jobs", wrongToken);
      is("listJobs", 429, await bare("/jobs", wrongToken));
      const etag = async (): Promise<string> => (await get("/overview")).headers.get("etag")!;
      // Ages make it new every 5 s: the second time is in the same piece, unless the machine stands still.
      let same = await get("/overview", { "if-none-match": await etag() });
      if (same.status !== 304) same = await get("/overview", { "if-none-match": await etag() });
      is("overview", 304, same);
      const { insight } = operatorOf(hf).store;
      insight.health = () => Promise.reject(new Error("a fault"));
      is("database", 500, await get("/database"));
      insight.health = () => Promise.reject(new StoreError("CONNECTION_LOST", "gone"));
      is("database", 503, await get("/database"));
      await hf.close();
      is("health", 503, await bare("/health"));
      is("ready", 503, await bare("/ready"));
      expect(wrong).toEqual([]);
      const all = routes.flatMap((route) => Object.keys(described(route.id).responses).map(Number));
      expect(new Set([...seen, 200, 202])).toEqual(new Set(all));
      expect(described("health").security).toEqual([]);
      expect(described("metrics").security).toBeUndefined();
    });
  });
});
