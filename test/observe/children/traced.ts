// A worker in a process of its own, with an OpenTelemetry SDK of its own.
import { context, propagation } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { BasicTracerProvider, type ReadableSpan, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { defineJob, open } from "../../../src/index.ts";
import { otel } from "../../../src/otel/index.ts";

const [url = "", schema = ""] = process.argv.slice(2);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
propagation.setGlobalPropagator(new W3CTraceContextPropagator());
const exporter = {
  export(spans: ReadableSpan[], done: (result: { code: number }) => void): void {
    for (const span of spans)
      console.log(
        JSON.stringify({
          type: "span",
          job: span.attributes["messaging.message.id"],
          traceId: span.spanContext().traceId,
          parent: span.parentSpanContext?.spanId,
          pid: process.pid,
        }),
      );
    done({ code: 0 });
  },
  shutdown: () => Promise.resolve(),
};
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
const hf = await open(url, schema === "" ? {} : { schema });
hf.use(otel({ tracerProvider: provider }));
const worker = hf.work([defineJob({ name: "traced", queue: "far", run: () => null })], { queues: ["far"] });
await worker.ready;
console.log(JSON.stringify({ type: "ready" }));
