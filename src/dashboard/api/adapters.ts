/**
 * Schedules, flows, limits and series of a client, in the contract's JSON: one small adapter for each turns the client's
 * own words into what the page reads. The routes ask them, audit what was done, and redact.
 *
 * Not here: jobs and queues (shapes.ts, overview.ts).
 */
import { readDatabaseSeries, readHostSeries } from "./machine-charts.ts";
import { stepsBefore } from "./step-order.ts";
import { stepFor, stepsOf } from "./time-steps.ts";
import { FEWEST_ATTEMPTS, type Usual } from "./stuck.ts";
import { checkName } from "../../values/name.ts";
import type { CappedCount, LineTally } from "../../operate/browse.ts";
import type {
  BackfillAnswer,
  BreakerLine,
  BudgetLine,
  Calendar,
  DatabaseSeries,
  Deploy,
  FlowHistory,
  FlowNode,
  FlowStep,
  HostSeries,
  LaneLine,
  LaneList,
  LimitUse,
  Load,
  OverrideLine,
  ScheduleLine,
  ScheduleRunLine,
  Series,
  TimingPreview,
} from "./contract.ts";
import {
  type BreakerState,
  defineSchedule,
  type Hold,
  type Holdfast,
  type Job,
  type LaneState,
  type LoadPoint,
  type MetricPoint,
  type MetricSeries,
  type OverrideOptions,
  type ScheduleState,
  UsageError,
} from "../../index.ts";
import {
  historyPage,
  type HistoryPage,
  type LocalSlot,
  localSlots,
  operatorOf,
  passedCron,
  timingInWords,
  topicOf,
} from "../../operate/index.ts";

/** A change of a schedule; what is not given stays. */
export interface ScheduleChange {
  readonly cron?: string;
  readonly every?: string;
  readonly timezone?: string;
  readonly missed?: "skip" | "one" | "all";
  readonly overlap?: "allow" | "skip" | "queue";
  readonly jitter?: string;
}

/** A change of a lane; what is not given stays, null takes a limit away. */
export interface LaneChange {
  readonly concurrency?: number | null;
  readonly rate?: { readonly limit: number; readonly per: string } | null;
  readonly weight?: number | null;
  readonly paused?: boolean;
}

/** JSON texts (`output`, `data`) are given raw: the routes redact them. */
export interface Adapters {
  readonly flows: {
    /** The last steps before a number. The graph is drawn of as many as can be drawn. */
    history(id: string, page: { before: number; limit: number }): Promise<FlowHistory | null>;
    signal(name: string, signal: { key: string | null; data: unknown }): Promise<void>;
    /** Runs that wait for it: at most 100, and whether there are more. */
    waiting(
      name: string,
      key: string | null,
    ): Promise<{
      readonly jobs: readonly { id: string; queue: string; name: string }[];
      readonly more: boolean;
    }>;
  };
  readonly schedules: {
    list(): Promise<readonly ScheduleLine[]>;
    preview(name: string, n: number): Promise<readonly LocalSlot[]>;
    /** Of a timing that nobody has saved. What is wrong with it is said, not thrown. */
    tryOut(timing: { cron?: string; every?: string; timezone?: string }, n: number): Promise<TimingPreview>;
    /** The newest jobs of each schedule, newest last. */
    recent(): Promise<ReadonlyMap<string, readonly { readonly id: string; readonly at: number }[]>>;
    runs(name: string, limit: number): Promise<readonly ScheduleRunLine[]>;
    calendar(): Promise<Calendar>;
    change(name: string, change: ScheduleChange): Promise<void>;
    pause(name: string): Promise<void>;
    resume(name: string): Promise<void>;
    reset(name: string): Promise<void>;
    /** Gives the id of the job that it made. */
    trigger(name: string): Promise<string>;
    remove(name: string): Promise<boolean>;
    backfill(
      name: string,
      range: { from: number; to?: number; limit?: number; dryRun: boolean },
    ): Promise<BackfillAnswer>;
  };
  readonly lanes: {
    list(page: { queue: string | null; limit: number; cursor: string | null }): Promise<LaneList>;
    set(queue: string, lane: string, change: LaneChange, when: OverrideOptions): Promise<void>;
    throttled(limit: number): Promise<readonly LaneLine[]>;
  };
  readonly overrides: {
    list(): Promise<readonly OverrideLine[]>;
    end(kind: OverrideLine["kind"], name: string, lane: string | null): Promise<boolean>;
  };
  readonly use: (minutes: number) => Promise<LimitUse>;
  readonly budgets: {
    list(): Promise<readonly BudgetLine[]>;
    set(
      name: string,
      budget: { limit: number; per: string; burst?: number },
      when: OverrideOptions,
    ): Promise<void>;
    drain(name: string): Promise<boolean>;
    reset(name: string): Promise<boolean>;
    remove(name: string): Promise<boolean>;
  };
  readonly breakers: {
    list(): Promise<readonly BreakerLine[]>;
    reset(key: string): Promise<boolean>;
  };
  /** Builds by when their first worker started, oldest first, of the last 30 days. */
  readonly deploys: () => Promise<readonly Deploy[]>;
  /** How long attempts of these kinds took in the last 24 hours. */
  readonly usual: (names: readonly string[]) => Promise<ReadonlyMap<string, Usual>>;
  /** What waited, and slots; of one queue what waited in it alone. */
  readonly load: (query: {
    readonly from: number;
    readonly to: number;
    readonly queue?: string | null;
  }) => Promise<Load>;
  /** How the database and the workers' machines were. */
  readonly resources: {
    database(range: { readonly from: number; readonly to: number }): Promise<DatabaseSeries>;
    hosts(range: { readonly from: number; readonly to: number }): Promise<HostSeries>;
  };
  readonly series: (query: {
    queue: string | null;
    name: string | null;
    from: number;
    to: number;
  }) => Promise<Series>;
}

const minuteMs = 60_000;
const hourMs = 3_600_000;
const dayMs = 86_400_000;
const mostPoints = 720;
/** So many queues of each minute are kept by name (upkeep/gauges.ts). */
const mostNamed = 20;
/** Of what has a value for each queue. */
const fewerPoints = 240;
/** A chart has a colour for each. */
const mostLines = 4;
const mostCounted = 10_000;
const mostDrawn = 1_000;
const mostWaiting = 100;

/** The adapters of a client. */
export function adaptersOf(hf: Holdfast): Adapters {
  const { schedules, lanes, budgets, breakers } = hf;
  return {
    flows: {
      history: async (id, page) => {
        const job = await hf.jobs.get(id);
        if (job === null) return null;
        const limit = Math.max(page.limit, mostDrawn);
        return flowOf(job, await historyPage(operatorOf(hf).store, job, { ...page, limit }), page.limit);
      },
      signal: (name, { key, data }) => hf.signal(name, { data, ...(key === null ? {} : { key }) }),
      waiting: async (name, key) => {
        const { store } = operatorOf(hf);
        const ids = await store.workflows.waitersFor(
          topicOf(checkName(name, "The name of a signal"), key ?? undefined),
          mostWaiting + 1,
        );
        const { jobs } = await store.insight.browse({ ids }, { limit: ids.length, cursor: null });
        return { jobs: jobs.slice(0, mostWaiting), more: ids.length > mostWaiting };
      },
    },
    schedules: {
      list: async () => {
        const { store } = operatorOf(hf);
        const [all, rows, holds] = await Promise.all([
          schedules.list(),
          store.insight.queueRows(),
          store.holds.list(),
        ]);
        return all.map((one) => scheduleLine(one, obstaclesOf(one.queue, rows, holds)));
      },
      tryOut: async (timing, n) => {
        try {
          const draft = defineSchedule({ name: "draft", job: "draft", input: null, ...timing });
          const slots = await schedules.preview(draft, n);
          const { cron, timezone } = draft.timing;
          if (slots.length === 0) throw passedCron(cron);
          return {
            words: timingInWords(draft.timing),
            error: null,
            runs: localSlots(
              slots.map((at) => at.getTime()),
              timezone ?? "UTC",
              operatorOf(hf).env.clock.now(),
            ),
          };
        } catch (error) {
          if (!(error instanceof UsageError)) throw error;
          const said = error.message.replace(/ of schedule "draft"/, "").replace(/^Schedule "draft"/, "It");
          return { words: null, error: said, runs: [] };
        }
      },
      preview: async (name, n) => {
        const [state, slots] = await Promise.all([schedules.get(name), schedules.preview(name, n)]);
        const zone = state === null || state.cron === null ? "UTC" : (state.timezone ?? "UTC");
        const now = operatorOf(hf).env.clock.now();
        return localSlots(
          slots.map((at) => at.getTime()),
          zone,
          now,
        );
      },
      recent: async () =>
        new Map(
          (await schedules.list()).map(({ name, recent }) => [
            name,
            recent.map(({ jobId, at }) => ({ id: jobId, at: at.getTime() })),
          ]),
        ),
      runs: async (name, limit) =>
        (await schedules.runs(name, { limit })).map((run) => ({
          ...run,
          at: run.at.getTime(),
          startedAt: ms(run.startedAt),
          endedAt: ms(run.endedAt),
        })),
      calendar: async () => {
        const { from, stepMs, pieces, estimated } = await schedules.calendar();
        return {
          from: from.getTime(),
          stepMs,
          estimated,
          pieces: pieces.map(({ count, schedules: those }) => ({ count, most: those.slice(0, 5) })),
        };
      },
      change: async (name, change) => void (await schedules.edit(name, change)),
      pause: async (name) => void (await schedules.pause(name)),
      resume: async (name) => void (await schedules.resume(name)),
      reset: async (name) => void (await schedules.reset(name)),
      trigger: async (name) => (await schedules.trigger(name)).id,
      remove: (name) => schedules.remove(name),
      backfill: async (name, range) => {
        const { slots, ...rest } = await schedules.backfill(name, range);
        return {
          ...rest,
          dryRun: range.dryRun,
          slots: slots.map((slot) => ({ ...slot, at: slot.at.getTime() })),
        };
      },
    },
    lanes: {
      list: async ({ queue, limit, cursor }) => {
        const page = await lanes.list({ limit, cursor, ...(queue === null ? {} : { queue }) });
        return { lanes: page.lanes.map(laneLine), cursor: page.cursor };
      },
      set: async (queue, lane, { paused, ...limits }, when) => {
        await lanes.set(queue, lane, limits, when);
        if (paused !== undefined) await (paused ? lanes.pause(queue, lane) : lanes.resume(queue, lane));
      },
      throttled: async (limit) => (await operatorOf(hf).store.lanes.throttled(limit)).map(laneLine),
    },
    overrides: {
      list: async () =>
        (await hf.overrides.list()).map(({ kind, name, key, setAt, untilAt, back }) => ({
          kind,
          name,
          lane: key,
          setAt: setAt.getTime(),
          untilAt: untilAt.getTime(),
          back,
        })),
      end: (kind, name, lane) => hf.overrides.end({ kind, name, key: lane }),
    },
    use: async (minutes) => {
      const now = operatorOf(hf).env.clock.now();
      const from = Math.floor(now / minuteMs) * minuteMs - (minutes - 1) * minuteMs;
      const at = Array.from({ length: minutes }, (_, i) => from + i * minuteMs);
      const { store } = operatorOf(hf);
      const [queues, known] = await Promise.all([
        store.queues.use(),
        hf.metrics.gauges({ name: ["running", "started", "tokens"], since: from }),
      ]);
      // Those with limits alone: elsewhere nobody asks what waits for them.
      const limited = queues.map(({ name }) => name);
      const lines = limited.length === 0 ? [] : (await store.insight.lines({ queues: limited })).lines;
      const then = (source: string, name: string): (number | null)[] => {
        const points = known.find((one) => one.source === source && one.name === name)?.points ?? [];
        const byAt = new Map(points.map((point) => [point.at.getTime(), point.value]));
        return at.map((one) => byAt.get(one) ?? null);
      };
      const budgetNames = known.filter(({ source }) => source.startsWith("budget:"));
      return {
        at,
        queues: queues.map((queue) => ({
          ...queue,
          waiting: readyOf(lines.filter((line) => line.queue === queue.name)),
          runningThen: then(`queue:${queue.name}`, "running"),
          startedThen: then(`queue:${queue.name}`, "started"),
        })),
        budgets: Object.fromEntries(
          budgetNames.map(({ source }) => [source.slice("budget:".length), then(source, "tokens")]),
        ),
      };
    },
    budgets: {
      list: async () => {
        const { store, env } = operatorOf(hf);
        const [all, kinds] = await Promise.all([budgets.list(), store.kinds.list()]);
        const at = env.clock.now();
        const takers = new Map<string, string>();
        for (const [kind, { budget }] of kinds) if (budget) takers.set(kind, budget.name);
        const names = [...takers.keys()];
        const lines = names.length === 0 ? [] : (await store.insight.lines({ names })).lines;
        return all.map(({ per, ...budget }) => ({
          ...budget,
          perMs: per,
          at,
          waiting: [...takers.values()].includes(budget.name)
            ? readyOf(lines.filter(({ name }) => takers.get(name) === budget.name))
            : null,
        }));
      },
      set: (name, budget, when) => budgets.set(name, budget, when),
      drain: (name) => budgets.drain(name),
      reset: (name) => budgets.reset(name),
      remove: (name) => budgets.remove(name),
    },
    breakers: {
      list: async () => (await breakers.list()).map(breakerLine).sort(byState),
      reset: (key) => breakers.reset(key),
    },
    deploys: () => deploysIn(hf, 0, operatorOf(hf).env.clock.now()),
    usual: async (names) => {
      const now = operatorOf(hf).env.clock.now();
      const known = new Map<string, Usual>();
      const learn = (found: readonly MetricSeries[]): void => {
        for (const { name, points } of found) {
          // A day may be two points, by where midnight lies: the one with more attempts says more.
          const [most] = [...points].sort((a, b) => b.ran.count - a.ran.count);
          if (name !== null && most?.ran.p95 !== null && most !== undefined)
            known.set(name, { count: most.ran.count, p95Ms: most.ran.p95 });
        }
      };
      // Hours that are over are a row each. Only kinds that were not there yet are looked up by the minute.
      const until = Math.floor(now / hourMs) * hourMs - hourMs;
      learn(await hf.metrics.series({ name: names, since: now - dayMs, until, step: dayMs, by: "name" }));
      const others = names.filter((name) => (known.get(name)?.count ?? 0) < FEWEST_ATTEMPTS);
      if (others.length > 0)
        learn(
          await hf.metrics.series({ name: others, since: now - hourMs / 2, step: hourMs / 2, by: "name" }),
        );
      return known;
    },
    load: async ({ from, to, queue = null }) => {
      const stepMs = stepFor(from, to, fewerPoints);
      const points = await hf.metrics.load({ since: from, until: to, step: stepMs });
      return queue === null ? loadOf(points, from, to, stepMs) : loadIn(queue, points, from, to, stepMs);
    },
    resources: {
      database: (range) => readDatabaseSeries(operatorOf(hf).store, range),
      hosts: async (range) =>
        readHostSeries(operatorOf(hf).store, range, await deploysIn(hf, range.from, range.to)),
    },
    series: async ({ queue, name, from, to }) => {
      const stepMs = stepFor(from, to, mostPoints);
      const [all] = await hf.metrics.series({
        since: from,
        until: to,
        step: stepMs,
        ...(queue === null ? {} : { queue }),
        ...(name === null ? {} : { name }),
      });
      return { ...seriesOf(all?.points ?? [], from, to, stepMs), deploys: await deploysIn(hf, from, to) };
    },
  };
}

/** A job that is made for such a queue waits there. */
function obstaclesOf(
  queue: string | null,
  rows: readonly {
    readonly name: string;
    readonly pausedAt: number | null;
    readonly drainingAt: number | null;
  }[],
  holds: readonly Hold[],
): string[] {
  if (queue === null) return [];
  const row = rows.find(({ name }) => name === queue);
  return [
    ...(row !== undefined && row.pausedAt !== null ? [`queue ${queue} is paused`] : []),
    ...(row !== undefined && row.drainingAt !== null ? [`queue ${queue} is draining`] : []),
    ...holds
      .filter(({ queues }) => queues === null || queues.includes(queue))
      .map(({ name }) => `queue ${queue} is held by ${name}`),
  ];
}

function scheduleLine(schedule: ScheduleState, obstacles: readonly string[]): ScheduleLine {
  const { name, job, queue, cron, every, timezone, paused, missed, overlap, jitter, counts } = schedule;
  return {
    name,
    job,
    queue,
    cron,
    everyMs: every,
    timezone: cron === null ? null : timezone,
    words: timingInWords({ cron, everyMs: every, timezone }),
    paused,
    nextAt: ms(schedule.nextAt),
    waitingAt: ms(schedule.waitingAt),
    lastAt: ms(schedule.lastRunAt),
    lastJobId: schedule.lastJobId,
    missed,
    overlap,
    jitterMs: jitter,
    fired: counts.fired,
    skipped: counts.skipped,
    passed: counts.missed,
    error: schedule.fault,
    edited: schedule.edited,
    unserved: schedule.unserved,
    obstacles,
  };
}

export function laneLine({ key, waiting, pausedAt: _, rateOpensAt, ...lane }: LaneState): LaneLine {
  return {
    ...lane,
    lane: key,
    waiting: { count: waiting, more: waiting >= mostCounted },
    rateOpensAt: ms(rateOpensAt),
  };
}

function readyOf(lines: readonly LineTally[]): CappedCount {
  return lines.reduce<CappedCount>(
    (sum, { ready }) => ({ count: sum.count + ready.count, more: sum.more || ready.more }),
    { count: 0, more: false },
  );
}

function breakerLine({ openedAt, openUntil, ...breaker }: BreakerState): BreakerLine {
  return { ...breaker, openedAt: ms(openedAt), openUntil: ms(openUntil) };
}

const stateOrder = { open: 0, "half-open": 1, closed: 2 } as const;

function byState(a: BreakerLine, b: BreakerLine): number {
  return stateOrder[a.state] - stateOrder[b.state] || a.key.localeCompare(b.key);
}

/** Minutes are kept 30 days: what was seen before is not new, as far as anybody can tell. */
async function deploysIn(hf: Holdfast, from: number, to: number): Promise<readonly Deploy[]> {
  const seen = await hf.metrics.gauges({ name: "release", since: Math.max(0, to - 30 * dayMs), until: to });
  return seen
    .map(({ source, points }) => ({ release: source, at: points[0]?.at.getTime() ?? 0 }))
    .filter(({ at }) => at >= from)
    .sort((a, b) => a.at - b.at)
    .slice(-50);
}

/** Every step of the range has a point: zero where nothing happened, null where nothing was measured. Pure. */
export function seriesOf(
  points: readonly MetricPoint[],
  from: number,
  to: number,
  stepMs: number,
): Omit<Series, "deploys"> {
  const { at, found } = stepped(points, from, to, stepMs);
  const percentiles = (of: "ran" | "waited") => ({
    p50: found.map((point) => point?.[of].p50 ?? null),
    p95: found.map((point) => point?.[of].p95 ?? null),
    p99: found.map((point) => point?.[of].p99 ?? null),
  });
  return {
    stepMs,
    at,
    done: found.map((point) => point?.done ?? 0),
    retried: found.map((point) => point?.failed ?? 0),
    dead: found.map((point) => point?.dead ?? 0),
    waitMs: percentiles("waited"),
    runMs: percentiles("ran"),
  };
}

/** The fullest queues by name, and the rest together. Pure. */
export function loadOf(points: readonly LoadPoint[], from: number, to: number, stepMs: number): Load {
  const { at, found } = stepped(points, from, to, stepMs);
  const sums = new Map<string, number>();
  for (const { queues } of points)
    for (const [name, ready] of Object.entries(queues)) sums.set(name, (sums.get(name) ?? 0) + ready);
  const fullest = [...sums]
    .sort(([a, most], [b, more]) => more - most || (a < b ? -1 : 1))
    .slice(0, mostLines)
    .map(([name]) => name);
  const readyOf = (point: LoadPoint | undefined, name: string): number | null =>
    (point?.ready ?? null) === null ? null : (point?.queues[name] ?? 0);
  return {
    stepMs,
    at,
    queues: fullest.map((name) => ({ name, ready: found.map((point) => readyOf(point, name)) })),
    other: found.map((point) => {
      const shown = fullest.reduce((sum, name) => sum + (readyOf(point, name) ?? 0), 0);
      const all = point?.ready ?? null;
      return all === null ? null : Math.max(0, Math.round((all - shown) * 10) / 10);
    }),
    running: found.map((point) => point?.running ?? null),
    slots: found.map((point) => point?.slots ?? null),
  };
}

/** What waited in one queue. Only the 20 fullest of a minute are known by name: beyond them it is not known. Pure. */
export function loadIn(
  queue: string,
  points: readonly LoadPoint[],
  from: number,
  to: number,
  stepMs: number,
): Load {
  const { at, found } = stepped(points, from, to, stepMs);
  const ready = found.map((point) => {
    if ((point?.ready ?? null) === null) return null;
    const names = Object.keys(point?.queues ?? {});
    return point?.queues[queue] ?? (names.length >= mostNamed ? null : 0);
  });
  const other = found.map((point, i) => {
    const all = point?.ready ?? null;
    return all === null ? null : Math.max(0, Math.round((all - (ready[i] ?? 0)) * 10) / 10);
  });
  const unknown = found.map(() => null);
  return { stepMs, at, queues: [{ name: queue, ready }], other, running: unknown, slots: unknown };
}

/** Every step of the range, with its point where there is one. */
function stepped<Point extends { readonly at: Date }>(
  points: readonly Point[],
  from: number,
  to: number,
  stepMs: number,
): { at: number[]; found: (Point | undefined)[] } {
  const byAt = new Map(points.map((point) => [point.at.getTime(), point]));
  const at = stepsOf(from, to, stepMs);
  return { at, found: at.map((one) => byAt.get(one)) };
}

/** A job's history as the page draws it: the last steps of what was read, and a graph of all of it. Pure. */
export function flowOf(
  job: Pick<Job, "id" | "name" | "state">,
  history: HistoryPage,
  limit: number,
): FlowHistory {
  const drawn = history.steps.map((step): FlowStep => ({
    seq: step.seq,
    name: step.name,
    kind: step.kind,
    state: stepState(step, job.state),
    attempt: step.attempt,
    tries: step.tries,
    triedAt: step.triedAt.map((one) => ({
      startedAt: one.startedAt.getTime(),
      endedAt: one.endedAt.getTime(),
    })),
    startedAt: step.startedAt.getTime(),
    endedAt: ms(step.endedAt),
    until: ms(step.wakeAt),
    output: text(step.output),
    error: step.error,
    jobId: step.child,
  }));
  const steps = drawn.slice(-limit);
  const children = history.children.map(({ id, name, relation, state, step, error }) => ({
    id,
    name,
    relation,
    state,
    step,
    error,
    hidden: false,
  }));
  return {
    attempts: history.attempts.map(({ attempt, startedAt, endedAt, error, lost }) => ({
      attempt,
      startedAt: ms(startedAt),
      endedAt: ms(endedAt),
      error,
      lost,
    })),
    steps,
    stepCount: history.stepCount,
    stepCountMore: history.stepCountMore,
    earlier: history.more || steps.length < drawn.length ? (steps[0]?.seq ?? null) : null,
    signals: history.signals.map(({ since, takenAt, data, ...signal }) => ({
      ...signal,
      since: since.getTime(),
      takenAt: ms(takenAt),
      data: text(data),
    })),
    children,
    graph: { ...graphOf(job, drawn, stepsBefore(history.steps), children), cut: history.more },
  };
}

function stepState({ kind, state }: HistoryPage["steps"][number], job: Job["state"]): FlowStep["state"] {
  if (state !== "open") return state;
  if (job === "done" || job === "dead" || job === "cancelled") return "cancelled";
  const waits = kind === "sleep" || kind === "signal" || kind === "call";
  return job === "running" && !waits ? "running" : "waiting";
}

/**
 * What waits for what: jobs before this one → this one → its steps, each behind what the run had seen when it asked for
 * it → what they called; what the job enqueued hangs on the job itself.
 */
function graphOf(
  job: Pick<Job, "id" | "name" | "state">,
  drawn: readonly FlowStep[],
  before: readonly (readonly number[])[],
  children: FlowHistory["children"],
): Omit<FlowHistory["graph"], "cut"> {
  const nodes: FlowNode[] = [
    { id: job.id, label: job.name, kind: "job", state: job.state, jobId: null, seq: null },
  ];
  const edges: { from: string; to: string }[] = [];
  const ids = stepIds(drawn);
  const idOf = (i: number): string => ids[i] as string;
  for (const [i, { name, kind, state, seq }] of drawn.entries()) {
    nodes.push({ id: idOf(i), label: name, kind, state, jobId: null, seq });
    const those = before[i] ?? [];
    if (those.length === 0) edges.push({ from: job.id, to: idOf(i) });
    for (const one of those) edges.push({ from: idOf(one), to: idOf(i) });
  }
  for (const { id, name, relation, state, step } of children) {
    const jobId = state === null ? null : id;
    nodes.push({ id, label: name ?? "(deleted)", kind: "job", state, jobId, seq: null });
    const caller = drawn.findIndex((one) => one.jobId === id || (step !== null && one.name === step));
    if (relation === "after") edges.push({ from: id, to: job.id });
    else edges.push({ from: caller === -1 ? job.id : idOf(caller), to: id });
  }
  return { nodes, edges };
}

/**
 * By name, not by number: a step that is over later than one behind it would move all numbers, and with them the focus.
 * A machine comes to a step more than once.
 */
function stepIds(steps: readonly FlowStep[]): string[] {
  const seen = new Map<string, number>();
  return steps.map(({ name }) => {
    const times = seen.get(name) ?? 0;
    seen.set(name, times + 1);
    return times === 0 ? `step ${name}` : `step ${name} ${times}`;
  });
}

function text(value: unknown): string | null {
  return value === null || value === undefined ? null : JSON.stringify(value);
}

function ms(date: Date | null): number | null {
  return date === null ? null : date.getTime();
}
