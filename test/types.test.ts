// What the compiler promises to users. These tests run nothing of the database: they compile, or `npm run typecheck` fails.
import * as v from "valibot";
import { describe, expectTypeOf, test } from "vitest";
import * as z from "zod";
import {
  defineJob,
  type EnqueueResult,
  type Holdfast,
  type JobContext,
  type JobDefinition,
  presets,
} from "../src/index.ts";

declare const hf: Holdfast;
const never = (): boolean => false;

describe("types", () => {
  test("with a schema, enqueue takes its input and run gets its output", () => {
    const job = defineJob({
      name: "resize",
      input: z.object({ at: z.string().transform((text) => new Date(text)), size: z.number().default(1) }),
      unique: (input) => {
        expectTypeOf(input).toEqualTypeOf<{ at: string; size?: number | undefined }>();
        return input.at;
      },
      run: async (input, ctx) => {
        expectTypeOf(input).toEqualTypeOf<{ at: Date; size: number }>();
        expectTypeOf(ctx).toEqualTypeOf<JobContext>();
        return { url: "…" };
      },
    });
    expectTypeOf(job).toEqualTypeOf<
      JobDefinition<
        "resize",
        { at: string; size?: number | undefined },
        { at: Date; size: number },
        { url: string }
      >
    >();
    if (never()) {
      void hf.enqueue(job, { at: "2026-01-01" });
      // @ts-expect-error: the schema's output is not its input
      void hf.enqueue(job, { at: new Date() });
      // @ts-expect-error: not an option
      void hf.enqueue(job, { at: "" }, { dealy: "5m" });
      void hf
        .enqueue(job, { at: "" })
        .then((result) =>
          hf.result(result).then((output) => expectTypeOf(output).toEqualTypeOf<{ url: string }>()),
        );
    }
  });

  test("valibot works the same", () => {
    const job = defineJob({
      name: "mail",
      input: v.object({ to: v.pipe(v.string(), v.email()), tenant: v.optional(v.string(), "none") }),
      lane: (input) => input.tenant ?? null,
      run: (input) => input.tenant.length,
    });
    expectTypeOf(job).toEqualTypeOf<
      JobDefinition<
        "mail",
        { to: string; tenant?: string | undefined },
        { to: string; tenant: string },
        number
      >
    >();
  });

  test("without a schema, the input is what run takes", () => {
    const job = defineJob({
      name: "sum",
      ...presets.forge.job,
      run: async (input: { a: number; b: number }, ctx) => input.a + input.b + ctx.attempt,
    });
    expectTypeOf(job).toEqualTypeOf<
      JobDefinition<"sum", { a: number; b: number }, { a: number; b: number }, number>
    >();
    if (never()) {
      // @ts-expect-error: b is missing
      void hf.enqueue(job, { a: 1 });
    }
  });

  test("a contract without a schema or handler can be given its types, and its handler later", () => {
    const contract = defineJob<"note", { text: string }>({ name: "note", unique: "text" });
    const handled = contract.handle(async (input) => input.text.length);
    expectTypeOf(handled).toEqualTypeOf<JobDefinition<"note", { text: string }, { text: string }, number>>();
    // @ts-expect-error: no such field
    defineJob<"note", { text: string }>({ name: "note", unique: "txet" });
  });

  test("the name of a field alone says nothing about the input", () => {
    const chapter = defineJob({ name: "chapter", unique: "chapterId" });
    expectTypeOf(chapter).toEqualTypeOf<JobDefinition<"chapter">>();
    if (never()) void hf.enqueue(chapter, { chapterId: 7, url: "…" });
  });

  test("[N3] the result of an enqueue is a union that a switch can exhaust", () => {
    const told = (result: EnqueueResult): string => {
      switch (result.status) {
        case "enqueued":
        case "duplicate":
        case "replaced":
        case "debounced":
          return result.id;
      }
    };
    expectTypeOf(told).returns.toBeString();
    expectTypeOf<EnqueueResult["status"]>().toEqualTypeOf<
      "enqueued" | "duplicate" | "replaced" | "debounced"
    >();
  });

  test("enqueueMany checks each item against its own job", () => {
    const mail = defineJob({ name: "mail", run: async (_input: { to: string }) => {} });
    const sum = defineJob({ name: "sum", run: async (_input: { a: number }) => {} });
    if (never()) {
      void hf.enqueueMany([
        { job: mail, input: { to: "a" }, delay: "5m" },
        { job: sum, input: { a: 1 } },
        { job: "by-name", input: [1, 2] },
      ]);
      void hf
        .enqueueMany([
          { job: mail, input: { to: "a" } },
          { job: "by-name", input: 1 },
        ])
        .then((results) => {
          expectTypeOf(results).toEqualTypeOf<[EnqueueResult<void>, EnqueueResult]>();
        });
      // @ts-expect-error: a mail has no a
      void hf.enqueueMany([{ job: mail, input: { a: 1 } }]);
      const items = [1, 2].map((a) => ({ job: sum, input: { a } }));
      void hf.enqueueMany(items);
    }
  });

  test("definitions of different inputs go into one worker", () => {
    const mail = defineJob({
      name: "mail",
      input: z.object({ to: z.string() }),
      run: async (input) => input.to,
    });
    const sum = defineJob({ name: "sum", run: async (input: { a: number }) => input.a });
    if (never()) hf.work([mail, sum], { queues: ["default"] });
  });

  test("events are typed by their name", () => {
    if (never()) {
      hf.on("job.failed", (event) => expectTypeOf(event.delayMs).toBeNumber());
      // @ts-expect-error: no such event
      hf.on("job.exploded", () => {});
    }
  });
});
