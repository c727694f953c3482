// SQL in every field that becomes part of a statement: it is a value, finds what has that very value, and harms nothing.
import { describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/index.ts";
import type { JobList } from "../../src/dashboard/api/contract.ts";
import { onEveryStore } from "../support/stores.ts";
import { rows } from "../support/test-clients.ts";
import { api } from "./support.ts";

const corpus = [
  `' or 1=1 --`,
  `') or ('1'='1`,
  `'; drop table holdfast_job; --`,
  `"; drop schema public cascade; --`,
  `' union select null, null --`,
  `\\`,
  `\\' or 1=1 --`,
  `%`,
  `_`,
  `a%b_c\\d`,
  `$1`,
  `:now`,
  `?`,
  `$$ || pg_sleep(60) || $$`,
  `{"a":1}`,
  `"]') or 1=1 --`,
  `/* */`,
  `\u2019 or 1=1`,
] as const;
/** No text column takes it, so that nothing has it. */
const never = ["\u0000", "a\u0000b"] as const;

async function fill(hf: Holdfast): Promise<Map<string, string>> {
  const made = await hf.enqueueMany(
    corpus.map((text) => ({
      job: "plain",
      input: { [text]: `<${text}>`, city: text },
      lane: text,
      key: text,
    })),
  );
  await hf.enqueueMany([1, 2, 3].map((n) => ({ job: "plain", input: { city: "Ulm", n }, lane: "ulm" })));
  return new Map(corpus.map((text, i) => [text, made[i]!.id]));
}

onEveryStore((target) => {
  describe("SQL injection", () => {
    test("lane, key, search and payload find the job that has the very text, and no other", async () => {
      const { hf, get, store } = await api(target);
      const ids = await fill(hf);
      const before = await rows(store, "job");
      const found = async (query: string): Promise<readonly string[]> => {
        const { status, body } = await get<JobList>(`/jobs?${query}&limit=200`);
        expect(status, query).toBe(200);
        return body.jobs.map(({ id }) => id);
      };
      for (const text of corpus) {
        const given = encodeURIComponent(text);
        const own = [ids.get(text)!];
        for (const field of ["lane", "key"])
          expect(await found(`${field}=${given}`), `${field} ${text}`).toEqual(own);
        expect(await found(`payload=${encodeURIComponent(`city:${text}`)}`), `payload ${text}`).toEqual(own);
        // Nothing is a wildcard.
        expect(await found(`search=${encodeURIComponent(`<${text}>`)}`), `search ${text}`).toEqual(own);
      }
      expect(await rows(store, "job")).toBe(before);
    });

    test("every other field refuses it or finds nothing, and all tables stand", async () => {
      const { hf, get, send, store } = await api(target);
      await fill(hf);
      const before = await rows(store, "job");
      const refusedOrEmpty = async (path: string): Promise<void> => {
        const { status, body } = await get<Record<string, unknown>>(path);
        expect([200, 400, 404], `${path}: ${JSON.stringify(body)}`).toContain(status);
        if (status !== 200) return;
        for (const field of ["jobs", "runs", "groups", "lanes"])
          if (body[field] !== undefined) expect(body[field], path).toEqual([]);
      };
      for (const text of [...corpus, ...never]) {
        const given = encodeURIComponent(text);
        for (const field of [
          "queue",
          "name",
          "worker",
          "error",
          "workflow",
          "trace",
          "failureGroup",
          "state",
          "ids",
          "attempt",
          "age",
          "run",
          "ended",
          "cursor",
          "order",
          "since",
        ])
          await refusedOrEmpty(`/jobs?${field}=${given}`);
        for (const path of [text, `a.${text}`, `${text}.b`])
          await refusedOrEmpty(`/jobs?payload=${encodeURIComponent(`${path}:nowhere`)}`);
        for (const path of [
          "/jobs/count?lane=",
          "/jobs/facets?key=",
          "/jobs/export?format=ndjson&name=",
          "/runs?name=",
          "/runs?cursor=",
          "/errors?queue=",
          "/errors?name=",
          "/failures?by=",
          "/lanes?queue=",
          "/lanes?cursor=",
          "/latency?queue=",
          "/series?queue=",
          "/audit?before=",
          "/jobs/",
          "/queues/",
          "/definitions/",
          "/errors/",
          "/operations/",
        ]) {
          const { status } = await get(`${path}${given}`);
          expect([200, 400, 403, 404], `${path}${given}`).toContain(status);
        }
        for (const [method, path, body] of [
          ["POST", `/queues/${given}/pause`, undefined],
          ["PUT", `/holds/${given}`, { reason: text }],
          ["DELETE", `/budgets/${given}`, undefined],
          ["POST", `/breakers/${given}/reset`, undefined],
          ["DELETE", `/schedules/${given}`, undefined],
          ["POST", `/workers/${given}/stop`, undefined],
          ["POST", "/signals", { name: "s", key: text }],
          ["POST", "/jobs/bulk", { action: "delete", filter: { lane: `${text}!` } }],
          ["POST", "/jobs/bulk", { action: "delete", filter: { search: `${text}!` } }],
          ["POST", "/jobs/bulk", { action: "delete", filter: { payload: [`${text}:${text}!`] } }],
        ] as const) {
          const { status } = await send(method, path, body);
          expect([200, 202, 400, 404, 409], `${method} ${path} ${text}`).toContain(status);
        }
      }
      expect(await rows(store, "job")).toBe(before);
      expect((await get<JobList>("/jobs?lane=ulm")).body.jobs).toHaveLength(3);
    }, 60_000);
  });
});
