/** Schedules in the contract's JSON. */
import {
  defineSchedule,
  type Hold,
  type Holdfast,
  type ScheduleRun,
  type ScheduleState,
  UsageError,
} from "../../index.ts";
import {
  localOccurrences,
  type Operator,
  passedCron,
  type Store,
  timingInWords,
} from "../../operate/index.ts";
import type { ScheduleLine, ScheduleRunLine, TimingPreview } from "./contract.ts";
import { ms } from "./shapes.ts";

export async function readSchedules(hf: Holdfast, store: Store): Promise<readonly ScheduleLine[]> {
  const [all, rows, holds] = await Promise.all([
    hf.schedules.list(),
    store.insight.queueRows(),
    store.holds.list(),
  ]);
  return all.map((one) => scheduleLine(one, obstaclesOf(one.queue, rows, holds)));
}

/** The next runs of a timing that is not saved. An error in the timing is part of the answer. */
export async function previewTiming(
  hf: Holdfast,
  operator: Operator,
  timing: { readonly cron?: string; readonly every?: string; readonly timezone?: string },
  n: number,
): Promise<TimingPreview> {
  try {
    const draft = defineSchedule({ name: "draft", job: "draft", input: null, ...timing });
    const occurrences = (await hf.schedules.preview(draft, n)).map((at) => at.getTime());
    const { cron, timezone } = draft.timing;
    if (occurrences.length === 0) throw passedCron(cron);
    return {
      words: timingInWords(draft.timing),
      error: null,
      runs: localOccurrences(occurrences, timezone ?? "UTC", operator.env.clock.now()),
    };
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    const said = error.message.replace(/ of schedule "draft"/, "").replace(/^Schedule "draft"/, "It");
    return { words: null, error: said, runs: [] };
  }
}

export function runLine({ at, startedAt, endedAt, ...run }: ScheduleRun): ScheduleRunLine {
  return { ...run, at: at.getTime(), startedAt: ms(startedAt), endedAt: ms(endedAt) };
}

/** Why a job that the schedule makes would wait in its queue. */
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
