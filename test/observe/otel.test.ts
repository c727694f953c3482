// Spans with the real OpenTelemetry SDK: linked from the enqueue in one process to the run in another.
import { context, propagation, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { otel } from "holdfast/otel";
import { defineJob, type RunRequest } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { spawnNode } from "../support/process.ts";
import { connect, fresh } from "../support/test-clients.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
});
afterAll(() => {
  context.disable();
  propagation.disable();
  trace.disable();
});
beforeEach(() => exporter.reset());

const inner = defineJob({ name: "inner", queue: "second", run: () => null });
const outer = defineJob({
  name: "outer",
  queue: "first",
  retry: { attempts: 2, backoff: () => 0 },
  run: async (input: { secret: string }, ctx) => {
    if (ctx.attempt === 1) throw new Error("once more");
    await ctx.enqueue(inner, null);
    return input.secret.length;
  },
});

onEveryStore((target) => {
  test("[N25] one trace goes from a request through an enqueue, its retries and the jobs it enqueues", async () => {
    const { hf } = await fresh(target);
    hf.use(otel());
    const worker = hf.work([outer, inner], { queues: ["first", "second"] });
    await worker.ready;
    const tracer = provider.getTracer("test");
    const { id } = await tracer.startActiveSpan("request", async (span) => {
      const enqueued = await hf.enqueue(outer, { secret: "hunter2" });
      span.end();
      return enqueued;
    });
    await hf.result(id);
    await worker.idle();
    const spans = exporter.getFinishedSpans();
    const named = (name: string) => spans.filter((span) => span.name === name);
    const [request] = named("request");
    const [send] = named("send first");
    const runs = named("process first");
    expect(send?.kind).toBe(SpanKind.PRODUCER);
    expect(send?.parentSpanContext?.spanId).toBe(request?.spanContext().spanId);
    expect(send?.attributes).toMatchObject({
      "messaging.message.id": id,
      "messaging.destination.name": "first",
    });
    expect(runs).toHaveLength(2);
    for (const run of runs) {
      expect(run.kind).toBe(SpanKind.CONSUMER);
      expect(run.spanContext().traceId).toBe(request?.spanContext().traceId);
      expect(run.parentSpanContext?.spanId).toBe(send?.spanContext().spanId);
      expect(run.links.map((link) => link.context.spanId)).toEqual([send?.spanContext().spanId]);
    }
    expect(runs.map((run) => run.status.code)).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET]);
    expect(runs[0]?.events.map((event) => event.name)).toContain("exception");
    const [sendInner] = named("send second");
    expect(sendInner?.parentSpanContext?.spanId).toBe(runs[1]?.spanContext().spanId);
    expect(named("process second")[0]?.spanContext().traceId).toBe(request?.spanContext().traceId);
    expect(JSON.stringify(spans.map((span) => span.attributes))).not.toContain("hunter2");
  });

  test("[O13] the span of an attempt has the job's priority, due time, creation time and context", async () => {
    const { hf } = await fresh(target);
    const requests: RunRequest[] = [];
    hf.use(otel()).use({ run: (attempt, next) => (requests.push(attempt), next()) });
    const at = new Date(Date.now() + 300);
    const { id } = await hf.enqueue(inner, null, { at, priority: 7, context: "nightly import" });
    const plain = await hf.enqueue(inner, null);
    const worker = hf.work([inner], { queues: ["second"] });
    await Promise.all([hf.result(id), hf.result(plain.id)]);
    await worker.stop();
    const runOf = (job: string) =>
      exporter
        .getFinishedSpans()
        .find(
          ({ name, attributes }) => name === "process second" && attributes["messaging.message.id"] === job,
        )!;
    const [job, other] = [(await hf.jobs.get(id))!, (await hf.jobs.get(plain.id))!];
    expect(runOf(id).attributes).toMatchObject({
      "holdfast.job.priority": 7,
      "holdfast.job.due_at": at.toISOString(),
      "holdfast.job.context": "nightly import",
    });
    const createdAt = new Date(String(runOf(id).attributes["holdfast.job.created_at"]));
    expect(Math.abs(createdAt.getTime() - job.createdAt.getTime())).toBeLessThan(1_000);
    expect(runOf(plain.id).attributes).toMatchObject({
      "holdfast.job.priority": 0,
      "holdfast.job.due_at": other.runAt!.toISOString(),
    });
    expect(runOf(plain.id).attributes).not.toHaveProperty(["holdfast.job.context"]);
    const request = requests.find((attempt) => attempt.id === id);
    expect(request).toMatchObject({ priority: 7, runAt: at, createdAt, context: "nightly import" });
  });

  test("[N25] the trace crosses to another process", async () => {
    const { hf, store } = await fresh(target);
    hf.use(otel());
    await using child = spawnNode("test/observe/children/traced.ts", [store.url, store.options.schema ?? ""]);
    await child.message("ready", { deadlineMs: 30_000 });
    const { id } = await hf.enqueue("traced", null, { queue: "far" });
    const span = await child.message("span", { where: (message) => message["job"] === id });
    const send = exporter.getFinishedSpans().find(({ name }) => name === "send far");
    expect(span["traceId"]).toBe(send?.spanContext().traceId);
    expect(span["parent"]).toBe(send?.spanContext().spanId);
    expect(span["pid"]).not.toBe(process.pid);
  });

  test("[N25] with parent: false a run begins its own trace and links to the enqueue", async () => {
    const { hf, store } = await fresh(target);
    hf.use(otel({ parent: false, tracerProvider: provider }));
    const other = await connect(store);
    other.use(otel({ parent: false, tracerProvider: provider }));
    const worker = other.work([inner], { queues: ["second"] });
    await worker.ready;
    const enqueued = await hf.enqueue(inner, null);
    await hf.result(enqueued.id);
    await worker.idle();
    const spans = exporter.getFinishedSpans();
    const send = spans.find(({ name }) => name === "send second");
    const run = spans.find(({ name }) => name === "process second");
    expect(run?.parentSpanContext).toBeUndefined();
    expect(run?.spanContext().traceId).not.toBe(send?.spanContext().traceId);
    expect(run?.links[0]?.context.spanId).toBe(send?.spanContext().spanId);
  });

  test("[N25] a job without tracing has no extras, and a carrier that is no text or too long is refused", async () => {
    const { hf, store } = await fresh(target);
    const { id } = await hf.enqueue(inner, null);
    expect(await store.query(`select extras from ${store.table("job")} where id = ?`, [id])).toEqual([
      { extras: null },
    ]);
    const bad: unknown[] = [7, "x".repeat(10_000)];
    hf.use({
      enqueue: (request, next) => {
        request.carrier["key"] = bad.shift() as string;
        return next();
      },
    });
    await expect(hf.enqueue(inner, null)).rejects.toMatchObject({ code: "BAD_OPTION" });
    await expect(hf.enqueue(inner, null)).rejects.toMatchObject({ code: "BAD_OPTION" });
    bad.push(7);
    await expect(hf.enqueueMany([{ job: inner, input: null }])).rejects.toMatchObject({ code: "BAD_OPTION" });
  });
});
