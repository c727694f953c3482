// What is taken out before a byte leaves: secrets in payloads, errors, filters and the audit trail; faults of the inside.
import { describe, expect, test } from "vitest";
import { defineJob, silentLogger, StoreError } from "../../src/index.ts";
import type { AuditLine, JobDetail, Operation } from "../../src/dashboard/api/contract.ts";
import { Redactor } from "../../src/dashboard/access/redact.ts";
import { shownFilter, shownTarget } from "../../src/dashboard/audit/shown-filter.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Answer, api, code, over } from "./support.ts";
import { growth, LINEAR } from "../support/growth.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const header = { "x-holdfast": "1" };

onEveryStore((target) => {
  describe("what is shown", () => {
    const secrets = {
      user: "ann",
      password: "hunter2",
      nested: [{ apiKey: "hunter2", "X-Auth-Token": "hunter2", deep: { client_secret: { a: "hunter2" } } }],
      Authorization: "Bearer hunter2hunter2",
      url: "postgres://ann:hunter2@db/app",
      cookie: ["hunter2"],
      note: "the token=hunter2 was refused",
      ssn: "hunter2",
    };

    test("redaction takes secrets out of lists, details, errors, groups and bulk samples", async () => {
      const { hf } = await api(target);
      const { get, send } = over(hf, { redact: ["ssn"] });
      const { id } = await hf.enqueue(plain, secrets, { context: "password: hunter2" });
      const [lease] = await hf.lease({ limit: 1, for: "1m" });
      const error = new Error(
        "login failed: password=hunter2, Authorization: Bearer hunter2hunter2 for postgres://ann:hunter2@db",
      );
      await lease!.dead(error.message);
      const { id: done } = await hf.enqueue(plain, 1);
      const [second] = await hf.lease({ limit: 1, for: "1m" });
      await second!.done(secrets);
      const answers = [
        await get(`/jobs/${id}`),
        await get(`/jobs/${done}`),
        await get("/jobs"),
        await get("/errors"),
        await send("POST", "/jobs/bulk", { action: "delete", filter: { name: ["plain"] }, dryRun: true }),
      ];
      for (const answer of answers) {
        expect(answer.status).toBe(200);
        expect(JSON.stringify(answer.body)).not.toContain("hunter2");
        expect(JSON.stringify(answer.body)).toContain("[redacted]");
      }
      expect((answers[0]!.body as JobDetail).input).toContain('"user": "ann"');
    });

    /** Reasons, notes and filters with secrets in them, all of them really done. */
    async function act(send: ReturnType<typeof over>["send"], group: string): Promise<Operation> {
      const ok = (answer: Answer): void =>
        expect([200, 202], JSON.stringify(answer.body)).toContain(answer.status);
      ok(await send("PUT", "/holds/h", { reason: "the bank: password=hunter2 expired" }, header));
      ok(await send("PATCH", `/errors/${group}`, { note: "token: hunter2 was wrong" }, header));
      ok(await send("POST", "/signals", { name: "go", key: "token=hunter2" }, header));
      const filter = {
        name: ["plain"],
        search: "password=hunter2",
        error: "secret: hunter2",
        payload: ["login.password:hunter2", "city:Ulm"],
      };
      const rate = { limit: 1, per: "1h" };
      const answer = await send<Operation>("POST", "/jobs/bulk", { action: "retry", filter, rate }, header);
      ok(answer);
      return answer.body;
    }

    test("redaction takes them out of the audit trail and of the filters of bulk actions, but not what else was looked for", async () => {
      const { hf } = await api(target);
      const { get, send } = over(hf, {});
      await hf.enqueue(plain, { login: { password: "hunter2" }, city: "Ulm" });
      const [lease] = await hf.lease({ limit: 1, for: "1m" });
      await lease!.dead("secret: hunter2");
      const { group } = (await hf.errors.list())[0]!;
      const started = await act(send, group);
      const trail = (await get<{ entries: AuditLine[] }>("/audit")).body.entries;
      // It may be over already.
      const entries = trail.filter(({ outcome }) => outcome !== "done");
      expect(entries.map(({ action }) => action)).toEqual([
        "jobs.retry",
        "workflows.signal",
        "errors.note",
        "holds.set",
      ]);
      const answers = [
        started,
        (await get("/operations")).body,
        (await get(`/operations/${started.id}`)).body,
      ];
      for (const body of [trail, ...answers]) {
        expect(JSON.stringify(body)).not.toContain("hunter2");
        expect(JSON.stringify(body)).toContain("[redacted]");
      }
      const [retry, , note, hold] = entries;
      expect(hold!.details).toContain("the bank: password=[redacted] expired");
      expect(note!.details).toContain("token: [redacted] was wrong");
      expect(started.filter).toMatchObject({
        name: ["plain"],
        search: "password=[redacted]",
        error: "secret: [redacted]",
        payload: ["login.password:[redacted]", "city:Ulm"],
      });
      expect(JSON.parse(retry!.target!)).toMatchObject({ payload: started.filter.payload });
    });

    test("what was looked for in payloads is hidden from who may not look for it, and that something was is not", async () => {
      const { hf } = await api(target);
      await hf.enqueue(plain, { city: "Ulm" });
      const [lease] = await hf.lease({ limit: 1, for: "1m" });
      await lease!.dead("no road to Ulm");
      const filter = { name: ["plain"], search: "Ulm", error: "to Ulm", payload: ["city:Ulm"] };
      const task = { action: "retry", filter, rate: { limit: 1, per: "1h" } };
      const admin = over(hf);
      const { id } = (await admin.send<Operation>("POST", "/jobs/bulk", task)).body;
      expect(JSON.stringify((await admin.get("/operations")).body)).toContain("Ulm");
      for (const permissions of [
        ["view", "audit:view"],
        ["view", "audit:view", "jobs:search"],
        ["view", "audit:view", "view:payload"],
      ] as const) {
        const { get } = over(hf, { auth: () => ({ name: "eve", permissions }) });
        for (const path of ["/operations", `/operations/${id}`, "/audit"]) {
          const answer = await get(path);
          expect([answer.status, path]).toEqual([200, path]);
          expect(JSON.stringify(answer.body), path).not.toContain("Ulm");
        }
        expect((await get<Operation>(`/operations/${id}`)).body.filter).toMatchObject({
          name: ["plain"],
          search: "[redacted]",
          error: "[redacted]",
          payload: ["[redacted]"],
        });
      }
    });

    test("who may not see payloads sees none, nor texts that quote them, and cannot search them", async () => {
      const { hf } = await api(target);
      const { id } = await hf.enqueue(plain, { mail: "ann@example.org" }, { context: "for ann@example.org" });
      const [lease] = await hf.lease({ limit: 1, for: "1m" });
      await lease!.dead("no such user ann ann@example.org");
      const { get } = over(hf, { auth: () => ({ name: "eve", permissions: ["view", "jobs:search"] }) });
      for (const path of [`/jobs/${id}`, "/jobs", "/errors"]) {
        const answer = await get(path);
        expect(answer.status).toBe(200);
        expect(JSON.stringify(answer.body)).not.toMatch(/\bann\b|example\.org/);
      }
      expect((await get<JobDetail>(`/jobs/${id}`)).body.why.text).toMatch(/^Died at .* after 1 attempt: …$/);
      expect((await get<JobDetail>(`/jobs/${id}`)).body).toMatchObject({ payloadHidden: true, input: null });
      expect((await get("/jobs?search=ann")).status).toBe(403);
    });

    test("a fault inside is 500 with an id and no word of what it was; a database that is away is 503", async () => {
      const logged: unknown[] = [];
      const logger = { ...silentLogger, error: (details: unknown) => void logged.push(details) };
      const { hf, get } = await api(target, {}, { logger });
      const { insight } = operatorOf(hf).store;
      const real = insight.health.bind(insight);
      insight.health = () => Promise.reject(new Error("ENOENT ~ann/.pgpass password hunter2"));
      const answer = await get("/database");
      expect(answer.status).toBe(500);
      expect(JSON.stringify(answer.body)).not.toMatch(/hunter2|ENOENT|pgpass|at /);
      expect(logged).toHaveLength(1);
      insight.health = () => Promise.reject(new StoreError("CONNECTION_LOST", "10.0.0.1 hunter2"));
      const away = await get("/database");
      expect([away.status, code(away), away.headers.get("retry-after")]).toEqual([503, "UNAVAILABLE", "1"]);
      expect(JSON.stringify(away.body)).not.toMatch(/hunter2|10\.0/);
      insight.health = real;
      await hf.close();
      const closed = await get("/database");
      expect([closed.status, code(closed)]).toEqual([503, "UNAVAILABLE"]);
      expect(JSON.stringify(closed.body)).not.toMatch(/sqlite|postgres/i);
    });
  });
});

test("a filter on the audit trail that was cut is shown only where nothing of payloads can be in it", () => {
  const redactor = new Redactor(undefined);
  const show = (target: string) => shownTarget(target, (filter) => shownFilter(filter, redactor), redactor);
  const cut = JSON.stringify({ states: ["dead"], ids: Array(50).fill("x".repeat(36)) }).slice(0, 500);
  expect(show(cut)).toBe(cut);
  expect(show(JSON.stringify({ search: "hunter2".repeat(100) }).slice(0, 500))).toBe("[redacted]");
  expect(show("a queue")).toBe("a queue");
});

describe("redaction", () => {
  const job = { name: "plain", queue: "default" };

  test("keeps numbers exact, keys in order, and what is not JSON as text", () => {
    const redactor = new Redactor(undefined);
    expect(redactor.json('{"b":12345678901234567890,"a":1e400,"password":1.50}', job)).toBe(
      '{"b":12345678901234567890,"a":1e400,"password":"[redacted]"}',
    );
    expect(redactor.json("token=abc not json", job)).toBe('"token=[redacted] not json"');
  });

  test("a function decides for every value; one that throws shows nothing", () => {
    const byPath = new Redactor((value, { path }) => (path.join(".") === "card.number" ? "****" : value));
    expect(byPath.json('{"card":{"number":"4111","year":30}}', job)).toBe(
      '{"card":{"number":"****","year":30}}',
    );
    const broken = new Redactor(() => {
      throw new Error("oops");
    });
    expect(broken.json('{"a":"visible"}', job)).not.toContain("visible");
  });

  test("false turns it off, and a wrong option is refused", () => {
    expect(new Redactor(false).json('{"password":"x"}', job)).toBe('{"password":"x"}');
    expect(() => new Redactor("password" as never)).toThrow(/redact/);
  });

  test.each(["token", "password=", "bearer ", "a://", "token-", '"token":'])(
    "what a text of many %s costs grows with its length alone",
    (part) => {
      const redactor = new Redactor(undefined);
      const texts = (size: number): string => part.repeat(Math.ceil(size / part.length));
      expect(growth(texts, 4_000, (text) => redactor.text(text))).toBeLessThan(LINEAR);
    },
  );
});
