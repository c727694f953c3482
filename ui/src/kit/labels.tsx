// Inline labels: states, ages, counts, gauges, names. Text from jobs is always rendered as text.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { CappedCount, JobLine } from "../../../src/dashboard/api/contract.ts";
import { now } from "../data/page-clock.ts";
import { times } from "../data/page-settings.ts";
import { href } from "../data/router.ts";
import { ago, count, instant } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";

const icons: Readonly<Record<string, IconName>> = {
  scheduled: "clock",
  ready: "dot",
  running: "play",
  waiting: "wait",
  done: "check",
  dead: "dead",
  failed: "dead",
  lost: "workers",
  cancelled: "minus",
  retrying: "retry",
  paused: "pause",
  draining: "drain",
  quiet: "moon",
  stopping: "wait",
  pending: "minus",
  open: "dead",
  "half-open": "retry",
  closed: "check",
  regressed: "retry",
  ignored: "minus",
  resolved: "check",
  stopped: "minus",
  "stands still": "wait",
};

export function stateIcon(state: string): IconName {
  return icons[state] ?? "dot";
}

export function State({ state }: { state: string }) {
  return (
    <span class={`state ${state}`}>
      <Icon name={stateIcon(state)} size={12} />
      {state}
    </span>
  );
}

/** Shows "retrying" and "paused", which the states scheduled and waiting do not tell. */
export function JobStateOf({ job }: { job: Pick<JobLine, "state" | "failureGroup" | "paused"> }) {
  const retrying = job.failureGroup !== null && (job.state === "scheduled" || job.state === "ready");
  return <State state={job.paused ? "paused" : retrying ? "retrying" : job.state} />;
}

export function Ago({ at }: { at: number | null }) {
  if (at === null) return <span class="muted">—</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={instant(at)} class="nowrap">
      {times.value === "absolute" ? instant(at) : ago(at, now.value)}
    </time>
  );
}

export function Count({ of, quiet = true }: { of: CappedCount | number; quiet?: boolean }) {
  const value = typeof of === "number" ? { count: of, more: false } : of;
  return <span class={quiet && value.count === 0 && !value.more ? "muted" : ""}>{count(value)}</span>;
}

/** `left`: a remaining amount, bad when empty; else a used amount, bad when full. */
export function Gauge({
  used,
  of,
  label,
  left = false,
}: {
  used: number;
  of: number;
  label: string;
  left?: boolean;
}) {
  const share = of === 0 ? 0 : Math.max(0, Math.min(1, used / of));
  const alarming = left ? share < 0.1 : share >= 1;
  return (
    <span class="gauge" role="img" aria-label={`${label}: ${Math.floor(used)} of ${of}`}>
      <i class={alarming ? "full" : ""} style={{ width: `${share * 100}%` }} />
    </span>
  );
}

/** Long names wrap, so that the other columns stay visible. */
export function nameClass(name: string, like = "main-link"): string {
  return name.length > 40 ? `${like} long-name` : like;
}

/** The beginning of an error, and the rest on request. */
export function LongText({ of: text }: { of: string }) {
  const whole = useSignal(false);
  if (whole.value || text.length <= 600) return <>{text}</>;
  return (
    <>
      {text.slice(0, 500).replace(/[\ud800-\udbff]$/, "")}…{" "}
      <button type="button" class="button small" onClick={() => (whole.value = true)}>
        Show all
      </button>
    </>
  );
}

export function JobLink({ id, children }: { id: string; children: ComponentChildren }) {
  return (
    <a class="main-link" href={href(`/jobs/${id}`)}>
      {children}
    </a>
  );
}

/** Shown for an unset value. */
export const dash = <span class="muted">—</span>;
