/**
 * What a run has done before, and how far its handler has been led through it again.
 *
 *   records ─▶ by name and by number: is what the handler asks for what it asked for then?
 *           └▶ by place: in which order was it given?  ── a cursor: `next`, `advance`
 *
 * Invariants: the n-th thing that a run asks for has the same name and kind as the n-th of its history, or the run has
 * diverged; a step that failed for good in an earlier attempt of the job is tried again in this one, unless the handler
 * had an answer to the failure and went on.
 * Not here: giving and doing (run.ts, execute.ts).
 */
import { JobError } from "../errors.ts";
import type { ClaimedJob } from "../jobs/job.ts";
import type { StepRecord } from "./store.ts";
import { type Ask, shownName } from "./request.ts";

/** How many steps an error names. */
const mostShown = 5;

export class Replay {
  readonly #job: ClaimedJob;
  readonly #byName = new Map<string, StepRecord>();
  readonly #bySeq = new Map<number, StepRecord>();
  /** What was given before, in order. */
  readonly given: readonly StepRecord[];
  /** Set while the run only undoes what it did: how it ends then. */
  readonly undoMarker: StepRecord | null;
  /** A machine wrote this history: no handler can be led through it. */
  readonly ofMachine: boolean;
  /** Everything, in the order in which it was asked for. */
  readonly records: readonly StepRecord[];
  /** What the code must ask for before it ends: everything but steps that failed for good and are tried again. */
  readonly required: readonly StepRecord[];
  /** Whether a step that can be undone was done. */
  readonly undoable: boolean;
  /** Failed steps of earlier attempts to which the handler had an answer: they stay failed. */
  readonly #answered: ReadonlySet<string>;
  #lastSeq = -1;
  #next = 0;

  constructor(job: ClaimedJob, records: readonly StepRecord[]) {
    this.#job = job;
    this.records = records;
    this.undoMarker = records.find((record) => record.name === "$undo") ?? null;
    this.ofMachine = records.some((record) => record.kind === "machine");
    this.#answered = answered(records);
    const given: StepRecord[] = [];
    const required: StepRecord[] = [];
    let undoable = false;
    for (const record of records) {
      if (record.kind === "undo" || record.kind === "machine") continue;
      this.#byName.set(record.name, record);
      this.#bySeq.set(record.seq, record);
      this.#lastSeq = Math.max(this.#lastSeq, record.seq);
      if (record.undo && record.state === "done") undoable = true;
      if (this.#again(record)) continue;
      required.push(record);
      if (record.givenOrder !== null) given.push(record);
    }
    this.required = required;
    this.given = given.sort((a, b) => (a.givenOrder ?? 0) - (b.givenOrder ?? 0));
    this.undoable = undoable;
  }

  /** What was given next; undefined once all has been given again. */
  get next(): StepRecord | undefined {
    return this.given[this.#next];
  }

  advance(): void {
    this.#next += 1;
  }

  /** The place that the next new thing gets. */
  get nextGivenOrder(): number {
    return (this.given.at(-1)?.givenOrder ?? -1) + 1;
  }

  /** Whether the run had come further than this number before: something was given or asked for after it. */
  isBeyond(seq: number): boolean {
    return this.next !== undefined || seq <= this.#lastSeq;
  }

  byName(name: string): StepRecord | null {
    return this.#byName.get(name) ?? null;
  }

  /** What the history has in place of what was asked for; undefined if they agree. */
  mismatch(ask: Ask): { readonly record: StepRecord | null } | undefined {
    const { record, seq, doing } = ask;
    const there = this.#bySeq.get(seq);
    const agree = record === null ? there === undefined : record.seq === seq && record.kind === doing.kind;
    return agree ? undefined : { record: there ?? record };
  }

  /** Where something stands that was just asked for. */
  standing({ doing, record }: Ask): Ask["state"] {
    if (record === null) return "held";
    const past = record.wakeAt !== null && record.wakeAt <= this.#job.startedAt;
    switch (record.state) {
      case "done":
        return record.givenOrder === null ? "met" : "held";
      case "failed":
        return this.#again(record) || record.givenOrder !== null ? "held" : "met";
      case "open":
        if (doing.kind === "sleep") return past ? "met" : "waits";
        if (doing.kind === "step") return past ? "held" : "waits";
        return doing.kind === "call" ? "waits" : "held";
    }
  }

  /** The handler asks for something else than it did. */
  diverged(ask: Ask, record: StepRecord | null): JobError {
    const asked = `${shownName(ask.doing.kind)} "${ask.name}"`;
    const has =
      record === null ? "nothing" : `${shownName(record.kind)} "${record.name}" (number ${record.seq + 1})`;
    return this.divergence(
      ask.name,
      `as number ${ask.seq + 1} the code asks for ${asked}, but the history has ${has}`,
    );
  }

  /** The handler has come to its end and has not asked for these. */
  unasked(records: readonly StepRecord[]): JobError | null {
    if (this.ofMachine)
      return this.divergence(
        this.records.find(({ name }) => name === "$machine")?.label ?? "$machine",
        "the history belongs to a machine, but the code is a job",
      );
    const [first] = records;
    if (first === undefined) return null;
    const shown = records.slice(0, mostShown).map(({ kind, name }) => `${shownName(kind)} "${name}"`);
    if (records.length > mostShown) shown.push(`${records.length - mostShown} more`);
    const last = shown.pop();
    const all = shown.length === 0 ? last : `${shown.join(", ")} and ${last}`;
    return this.divergence(
      first.name,
      `the history has ${all}, but the code ended without asking for ${records.length === 1 ? "it" : "them"}`,
    );
  }

  divergence(step: string, what: string): JobError {
    return new JobError(
      "DIVERGED",
      `Step "${step}": the code no longer matches the run's history: ${what}. ` +
        `Nothing was run. Deploy matching code (ctx.version keeps both paths), then retry the job.`,
      { details: { job: this.#job.id, step } },
    );
  }

  /** It failed for good in an earlier attempt of the job, and failed it: it is tried again in this one. */
  #again(record: StepRecord): boolean {
    return (
      record.state === "failed" &&
      record.attempt !== this.#job.attempt &&
      this.undoMarker === null &&
      !this.#answered.has(record.name)
    );
  }
}

/** Failures after which the handler asked for something more: each record says how many had been given before it. */
function answered(records: readonly StepRecord[]): ReadonlySet<string> {
  const names = new Set<string>();
  let failures = 0;
  for (const record of records) {
    if (record.state !== "failed" || record.kind === "undo") continue;
    failures += 1; // in the order in which they were asked for
    const nth = failures;
    if (records.some((later) => later.seq > record.seq && later.fails >= nth && later.kind !== "undo"))
      names.add(record.name);
  }
  return names;
}
