/**
 * `holdfast/prometheus`: what Holdfast knows, as the text that Prometheus scrapes.
 *
 * Gauges are the cluster's (every process tells the same; scrape one or take the max), counters and histograms are of this
 * process's own workers and calls, as Prometheus wants them. Nothing here scans ended jobs.
 */
import "../supported-node.ts"; // first

export { prometheus, type Prometheus, type PrometheusOptions } from "./exposition.ts";
