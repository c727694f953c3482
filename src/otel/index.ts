/**
 * `holdfast/otel`: OpenTelemetry spans for enqueues and runs, linked across processes.
 *
 * Needs the optional peer `@opentelemetry/api`, and an SDK of your choice that is set up before.
 */
import "../supported-node.ts"; // first

export { otel, type OtelOptions } from "./spans.ts";
