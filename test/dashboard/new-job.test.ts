// What the dialog for a new job asks the server: kinds, their schemas, and an enqueue that is checked as the code's own would be.
import * as v from "valibot";
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import type {
  ErrorBody,
  JobDetail,
  DefinitionDetail,
  DefinitionList,
} from "../../src/dashboard/api/contract.ts";
import { type DashboardOptions, serve } from "../../src/dashboard/index.ts";
import { schemas } from "../../src/dashboard/api/openapi.ts";
import { defineJob, defineSignal, type StandardSchemaV1 } from "../../src/index.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { misfits } from "./misfits.ts";
import { api, code, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const invite = defineJob({
  name: "invite",
  queue: "mail",
  priority: 4,
  version: 3,
  input: z.object({ to: z.email(), seats: z.int().optional(), "a b": z.array(z.string()).optional() }),
  unique: (input) => input.to,
  lane: (input) => input.to.split("@")[1] ?? null,
  run: () => {},
});
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

/** A schema of our own making. */
function schemaOf(
  validate: StandardSchemaV1["~standard"]["validate"],
  input?: () => Record<string, unknown>,
): StandardSchemaV1 {
  return {
    "~standard": {
      version: 1,
      vendor: "test",
      validate,
      ...(input === undefined ? {} : { jsonSchema: { input } }),
    },
  };
}
const fine = (value: unknown) => ({ value });

onEveryStore((target) => {
  describe("[K3] a signal over the API", () => {
    const packed = defineSignal({
      name: "packed",
      data: z.object({ boxes: z.int(), by: z.string().optional() }),
    });
    const order = defineJob({
      name: "order",
      signals: [packed, defineSignal({ name: "plain" })],
      run: async (key: string, ctx) => ctx.waitFor("packed", { key }),
    });
    const pallet = defineJob({
      name: "pallet",
      signals: [defineSignal({ name: "packed", data: z.object({ pallets: z.int() }) })],
      run: async (key: string, ctx) => ctx.waitFor("packed", { key }),
    });

    test("is held against what the run that waits declares, and says what is wrong where; a kind tells its signals' schemas", async () => {
      const { hf, get } = await api(target);
      const worker = hf.work([order], { queues: { default: 2 } });
      onTestFinished(() => worker.stop());
      const { id } = await hf.enqueue(order, "o-1");
      while ((await hf.jobs.get(id))?.waitsFor !== "signal")
        await new Promise((resolve) => setTimeout(resolve, 5));
      // Another process, which has the definitions and works on nothing.
      const { send, get: ask } = over(hf, { jobs: [order, pallet] });
      const signal = (data: unknown, key = "o-1") =>
        send<ErrorBody>("POST", "/signals", { name: "packed", key, data });

      const refused = await signal({ boxes: "two", by: 1 });
      expect(refused.status).toBe(400);
      expect(refused.body.error).toMatchObject({
        code: "SIGNAL_INVALID",
        field: "data",
        issues: [{ path: ".boxes" }, { path: ".by" }],
      });
      expect(misfits(schemas["ErrorBody"]!, refused.body, "")).toEqual([]);
      // It fits another kind, which does not wait.
      expect((await signal({ pallets: 1 })).status).toBe(400);
      expect((await hf.jobs.get(id))?.waitsFor).toBe("signal");
      expect((await get<{ entries: unknown[] }>("/audit")).body.entries).toEqual([]);
      expect((await signal({ boxes: 2 })).status).toBe(200);
      expect(await hf.result(id, { timeout: "30s" })).toEqual({ boxes: 2 });

      const kind = (await ask<DefinitionDetail>("/definitions/order")).body;
      expect(misfits(schemas["DefinitionDetail"]!, kind, "")).toEqual([]);
      expect(kind.signals).toMatchObject([
        { name: "packed", checked: true, schema: { type: "object", required: ["boxes"] } },
        { name: "plain", checked: false, schema: null },
      ]);
      expect((await send("POST", "/signals", { name: "pa\u0000cked", data: 1 })).status).toBe(400);
    });

    test("with nobody waiting must fit one kind that declares it; what nobody declares is not checked", async () => {
      const { hf } = await api(target);
      const { send } = over(hf, { jobs: [order, pallet] });
      const status = async (name: string, data: unknown): Promise<number> =>
        (await send("POST", "/signals", { name, data })).status;
      expect(await status("packed", { boxes: 1 })).toBe(200);
      expect(await status("packed", { pallets: 1 })).toBe(200);
      expect(await status("packed", { crates: 1 })).toBe(400);
      expect(await status("plain", { crates: 1 })).toBe(200);
      expect(await status("other", 1)).toBe(200);
    });
  });

  describe("[K3] an enqueue over the API", () => {
    test("is held against the schema, and says what is wrong where; nothing is enqueued, and nothing is on the trail", async () => {
      const { hf, get, send } = await api(target, { jobs: [invite] });
      const answer = await send<ErrorBody>("POST", "/jobs", {
        name: "invite",
        input: { to: "nobody", "a b": ["x", 1] },
      });
      expect(answer.status).toBe(400);
      expect(answer.body.error).toMatchObject({
        code: "INPUT_INVALID",
        field: "input",
        issues: [
          { path: ".to", message: "Invalid email address" },
          { path: '["a b"][1]', message: "Invalid input: expected string, received number" },
        ],
      });
      expect(misfits(schemas["ErrorBody"]!, answer.body, "")).toEqual([]);
      expect(await hf.jobs.count()).toBe(0);
      expect((await get<{ entries: unknown[] }>("/audit")).body.entries).toEqual([]);
    });

    test("is what the definition makes of it, and what was given besides", async () => {
      const { get, send } = await api(target, { jobs: [invite] });
      const made = async (more: object): Promise<JobDetail> => {
        const { body } = await send<{ status: string; id: string }>("POST", "/jobs", {
          name: "invite",
          ...more,
        });
        return (await get<JobDetail>(`/jobs/${body.id}`)).body;
      };
      expect(await made({ input: { to: "ann@example.org" } })).toMatchObject({
        queue: "mail",
        priority: 4,
        key: "ann@example.org",
        lane: "example.org",
      });
      expect(
        await made({
          input: { to: "bob@example.org" },
          key: "k",
          lane: "l",
          queue: "q",
          priority: -1,
          deadline: "1h",
        }),
      ).toMatchObject({ queue: "q", priority: -1, key: "k", lane: "l" });
      const twice = await send<{ status: string }>("POST", "/jobs", {
        name: "invite",
        input: { to: "ann@example.org" },
      });
      expect(twice.body.status).toBe("duplicate");
    });

    test("by a definition that a worker of this process has, as by one that the dashboard was given", async () => {
      const { hf, get, send } = await api(target);
      const bad = { name: "invite", input: { to: "nobody" }, key: "k", lane: "l" };
      // Nobody here knows it: whoever runs it will look.
      expect((await send("POST", "/jobs", bad)).status).toBe(200);
      expect((await get<DefinitionDetail>("/definitions/invite")).body).toMatchObject({
        here: false,
        checked: false,
        schema: null,
      });
      const worker = hf.work([invite], { queues: ["elsewhere"] });
      await worker.ready;
      await worker.stop();
      expect(code(await send("POST", "/jobs", bad))).toBe("INPUT_INVALID");
      const other = over(hf, { jobs: [defineJob({ name: "invite", run: async (_input: unknown) => {} })] });
      expect((await other.send("POST", "/jobs", { ...bad, key: "other" })).status).toBe(200);
    });

    test("a schema that answers later or throws is waited for, or told of", async () => {
      const late = defineJob({
        name: "late",
        input: schemaOf(async () => ({ issues: [{ message: "too late", path: [{ key: "at" }] }] })),
      });
      const broken = defineJob({
        name: "broken",
        input: schemaOf(() => {
          throw new Error("secret of the schema");
        }),
      });
      const { hf, send } = await api(target, { jobs: [late, broken] });
      const told = await send<ErrorBody>("POST", "/jobs", { name: "late", input: {} });
      expect(told.body.error.issues).toEqual([{ path: ".at", message: "too late" }]);
      const thrown = await send<ErrorBody>("POST", "/jobs", { name: "broken", input: {} });
      expect(thrown.status).toBe(400);
      expect(JSON.stringify(thrown.body)).not.toContain("secret");
      expect(await hf.jobs.count()).toBe(0);
    });

    test("keeps digits that no number holds, where nothing here must read the input", async () => {
      const { hf, send } = await api(target, {
        jobs: [plain, defineJob({ name: "read", input: schemaOf(fine) })],
      });
      const stored = async (name: string): Promise<string> => {
        const { body } = await send<{ id: string }>(
          "POST",
          "/jobs",
          `{"name":"${name}","input":{"n":12345678901234567890}}`,
        );
        return (await operatorOf(hf).store.insight.inspect(body.id))!.input;
      };
      expect(await stored("unknown")).toBe('{"n":12345678901234567890}');
      expect(await stored("plain")).toBe('{"n":12345678901234567890}');
      expect(await stored("read")).toBe('{"n":12345678901234567000}');
      expect(code(await send("POST", "/jobs", '{"name":"unknown","input":1e400}'))).toBe("INPUT_NOT_JSON");
    });
  });

  describe("[K3] kinds", () => {
    test("those that workers registered and those that are defined here, each with what it takes", async () => {
      const { hf, get } = await api(
        target,
        { jobs: [invite, defineJob({ name: "routed" })] },
        { route: (name) => `q-${name}` },
      );
      const worker = hf.work([plain], { queues: ["elsewhere"] });
      await worker.ready;
      await worker.stop();
      const list = (await get<DefinitionList>("/definitions")).body;
      expect(misfits(schemas["DefinitionList"]!, list, "")).toEqual([]);
      expect(list.names).toEqual([
        { name: "invite", unique: true, lane: true, here: true },
        { name: "plain", unique: false, lane: false, here: true },
        { name: "routed", unique: false, lane: false, here: true },
      ]);
      const { body } = await get<DefinitionDetail>("/definitions/invite");
      expect(misfits(schemas["DefinitionDetail"]!, body, "")).toEqual([]);
      expect(body).toMatchObject({
        name: "invite",
        here: true,
        queue: "mail",
        unique: true,
        lane: true,
        checked: true,
      });
      expect(body.schema).toMatchObject({
        type: "object",
        properties: { to: { type: "string", format: "email" } },
        required: ["to"],
      });
      expect((await get<DefinitionDetail>("/definitions/routed")).body).toMatchObject({
        queue: "q-routed",
        checked: false,
      });
      expect((await get<DefinitionDetail>("/definitions/nobody-knows")).body).toEqual({
        name: "nobody-knows",
        here: false,
        queue: "q-nobody-knows",
        unique: false,
        lane: false,
        checked: false,
        schema: null,
        signals: [],
      });
      expect((await get("/definitions/a%20b")).status).toBe(400);
      // Another process knows what a worker registered: that a key must be given.
      await operatorOf(hf).store.definitions.register(new Map([["far", { unique: true, lane: false }]]));
      expect((await get<DefinitionDetail>("/definitions/far")).body).toMatchObject({
        here: false,
        unique: true,
        lane: false,
      });
    });

    test("a schema without JSON Schema, one that throws, and one that is too large or none at all give none", async () => {
      const circle: Record<string, unknown> = {};
      circle["self"] = circle;
      const odd: Record<string, StandardSchemaV1> = {
        valibot: v.object({ to: v.string() }),
        dates: z.object({ at: z.date() }),
        huge: schemaOf(fine, () => ({ type: "object", description: "x".repeat(70_000) })),
        circle: schemaOf(fine, () => circle),
        none: schemaOf(fine, () => undefined as never),
        list: schemaOf(fine, () => [] as never),
      };
      const jobs = Object.entries(odd).map(([name, input]) => defineJob({ name, input }));
      const { get } = await api(target, { jobs });
      for (const name of Object.keys(odd))
        expect((await get<DefinitionDetail>(`/definitions/${name}`)).body, name).toMatchObject({
          checked: true,
          schema: null,
        });
    });
  });

  describe("[K3] what was redacted of an input", () => {
    const placesOf = async (
      input: unknown,
      options: Partial<DashboardOptions> = {},
    ): Promise<JobDetail["masked"]> => {
      const { hf, get } = await api(target, options);
      const { id } = await hf.enqueue("j", input);
      const { body } = await get<JobDetail>(`/jobs/${id}`);
      expect(misfits(schemas["JobDetail"]!, body, "")).toEqual([]);
      return body.masked;
    };

    test("is said by its places", async () => {
      expect(await placesOf({ to: "ann", n: 1 })).toEqual([]);
      expect(
        await placesOf({
          user: { password: "x", secret: null },
          list: [{ token: 1 }, "Bearer abcdefgh1234"],
        }),
      ).toEqual([
        ["user", "password"],
        ["list", "0", "token"],
        ["list", "1"],
      ]);
    });

    test("also by a function of the user's, which may give an object anew", async () => {
      const redact: DashboardOptions["redact"] = (value, { key }) =>
        key === "iban" ? "DE**" : typeof value === "object" && value !== null ? { ...value } : value;
      expect(await placesOf({ iban: "DE1", a: { b: 1 } }, { redact })).toEqual([["iban"]]);
      expect(await placesOf({ a: 1 }, { redact: () => undefined })).toEqual([[]]);
      expect(await placesOf({ password: 1 }, { redact: false })).toEqual([]);
    });

    test("more than a hundred places are all of it; who sees no payload is told no place", async () => {
      expect(await placesOf(Array.from({ length: 101 }, () => ({ token: 1 })))).toEqual([[]]);
      const auth = (): { name: string; permissions: ["view"] } => ({ name: "vera", permissions: ["view"] });
      expect(await placesOf({ password: 1 }, { auth })).toEqual([]);
    });
  });

  test("[K3] `jobs` takes definitions alone, and a server of its own takes them too", async () => {
    const { hf } = await fresh(target);
    expect(() => over(hf, { jobs: ["invite"] as never })).toThrow(/jobs must be an array of definitions/);
    expect(() => over(hf, { jobs: invite as never })).toThrow(/jobs must be an array of definitions/);
    await using server = await serve(hf, {
      port: 0,
      auth: "none",
      jobs: [invite],
      traceLink: "https://jaeger.example.org/trace/{traceId}",
    });
    const kind = (await (await fetch(`${server.url}api/v1/definitions/invite`)).json()) as DefinitionDetail;
    expect(kind).toMatchObject({ here: true, checked: true });
  });
});
