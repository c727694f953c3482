/**
 * Two spans for each job: PRODUCER `send <queue>` around the enqueue, CONSUMER `process <queue>` around each run.
 *
 *   process A: request span ─▶ send mail ──(traceparent in the job's extras)──▶ process B: process mail (attempt 1)
 *                                                                                        process mail (attempt 2)
 *
 * A run continues the enqueue's trace as its child and carries a link to it; with `parent: false` it begins a trace of its
 * own and has the link alone, which suits jobs that run long after their request. Names of attributes are those of
 * OpenTelemetry's messaging conventions, which are still experimental there.
 * Invariants: inputs and outputs never become attributes; a job's context, the text that its enqueuer wrote, does; tracing that is off (no SDK) costs a no-op span.
 */
import {
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
  type TracerProvider,
} from "@opentelemetry/api";
import type { EnqueueRequest, Middleware, RunRequest } from "../index.ts";
import { Release, Throttled } from "../index.ts";
import { VERSION } from "../version.ts";

/** What `otel` takes. */
export interface OtelOptions {
  /** Default: the global one. */
  readonly tracerProvider?: TracerProvider | undefined;
  /** Whether a run continues the trace of its enqueue (default), or begins one of its own and links to it. */
  readonly parent?: boolean | undefined;
}

/**
 * Middleware that traces.
 *
 * @example
 * hf.use(otel());
 */
export function otel(options: OtelOptions = {}): Middleware {
  const tracer = (): Tracer =>
    (options.tracerProvider ?? trace.getTracerProvider()).getTracer("holdfast", VERSION);
  const continues = options.parent ?? true;
  return {
    enqueue: (request, next) => sending(tracer(), request, next),
    run: (attempt, next) => processing(tracer(), attempt, next, continues),
  };
}

async function sending<T extends { readonly id: string; readonly status: string }>(
  tracer: Tracer,
  request: EnqueueRequest,
  next: () => Promise<T>,
): Promise<T> {
  const queue = request.queue ?? "default";
  const span = tracer.startSpan(`send ${queue}`, {
    kind: SpanKind.PRODUCER,
    attributes: {
      "messaging.system": "holdfast",
      "messaging.operation.name": "send",
      "messaging.operation.type": "send",
      "messaging.destination.name": queue,
      "holdfast.job.name": request.name,
    },
  });
  const within = trace.setSpan(context.active(), span);
  propagation.inject(within, request.carrier);
  try {
    const enqueued = await context.with(within, next);
    span.setAttribute("messaging.message.id", enqueued.id);
    span.setAttribute("holdfast.enqueue.status", enqueued.status);
    return enqueued;
  } catch (error) {
    failed(span, error);
    throw error;
  } finally {
    span.end();
  }
}

async function processing(
  tracer: Tracer,
  attempt: RunRequest,
  next: () => Promise<unknown>,
  continues: boolean,
): Promise<unknown> {
  const sent = propagation.extract(ROOT_CONTEXT, attempt.carrier);
  const producer = trace.getSpanContext(sent);
  const span = tracer.startSpan(
    `process ${attempt.queue}`,
    {
      kind: SpanKind.CONSUMER,
      attributes: {
        "messaging.system": "holdfast",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": attempt.queue,
        "messaging.message.id": attempt.id,
        "messaging.client.id": attempt.ctx.workerId,
        "holdfast.job.name": attempt.name,
        "holdfast.job.attempt": attempt.attempt,
        "holdfast.job.priority": attempt.priority,
        "holdfast.job.due_at": attempt.runAt.toISOString(),
        "holdfast.job.created_at": attempt.createdAt.toISOString(),
        ...(attempt.context === null ? null : { "holdfast.job.context": attempt.context }),
      },
      links: producer === undefined ? [] : [{ context: producer }],
    },
    continues ? sent : ROOT_CONTEXT,
  );
  const within = trace.setSpan(continues ? sent : ROOT_CONTEXT, span);
  try {
    return await context.with(within, next);
  } catch (error) {
    // Given back on purpose: no fault of the job.
    if (error instanceof Throttled || error instanceof Release)
      span.setAttribute("holdfast.outcome", "given back");
    else failed(span, error);
    throw error;
  } finally {
    span.end();
  }
}

function failed(span: Span, error: unknown): void {
  const message = error instanceof Error ? error.message : String(error);
  span.recordException(error instanceof Error ? error : message);
  span.setStatus({ code: SpanStatusCode.ERROR, message });
}
