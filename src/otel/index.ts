/**
 * `holdfast/otel`: OpenTelemetry spans for enqueues and runs, linked across processes.
 *
 * Needs the optional peer `@opentelemetry/api`, and an SDK of your choice that is set up before.
 */
export { otel, type OtelOptions } from "./spans.ts";
