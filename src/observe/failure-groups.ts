/**
 * `hf.errors`: failures by cause, and what is decided about them.
 *
 * Jobs of one name whose latest failures differ only in what varies from job to job (numbers, ids, quoted values) are one
 * group. A group is open until somebody resolves or ignores it; one that was resolved and fails again is `regressed`.
 * Invariants: options are checked before anything is written; a group that nobody failed of is refused (false), not made.
 * Not here: what makes a group (jobs/fingerprint.ts), what a decision has come to (failure-decision.ts), the jobs themselves (operate/jobs-client.ts).
 */
import { shown, UsageError } from "../errors.ts";
import type { FailureGroup as Stored, FailureGroupDetail, FailuresBy } from "../operate/browse.ts";
import { type Duration, durationMs, instantMs } from "../values/duration.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkInteger, checkOptions } from "../values/options.ts";
import {
  type Decision,
  type FailureGroupChange,
  FAILURE_GROUP_STATES,
  type FailureGroupState,
} from "./failure-decision.ts";
import type { Retry } from "../storage/retry-calls.ts";
import type { Store } from "../storage/store.ts";

type Dated<T> = {
  readonly [K in keyof T]: K extends "decidedAt" | "untilAt" | "firstAt" | "lastAt" ? Date | null : T[K];
};

/** A group of failures: how many, since when, where, and what was decided. */
export type FailureGroup = Dated<Stored>;

/** Which groups. */
export interface FailureGroupQuery {
  readonly queue?: string | readonly string[] | undefined;
  readonly name?: string | readonly string[] | undefined;
  /** Without it: all of them. */
  readonly state?: FailureGroupState | readonly FailureGroupState[] | undefined;
}

/** What `hf.errors.counts` takes. */
export interface FailureCountQuery {
  readonly by: FailuresBy["by"];
  /** Default: a day ago. */
  readonly since?: Date | number | undefined;
}

/** Failures of one name, queue, worker, version or hour. */
export interface FailureCount {
  /** Of an hour: when it began, in epoch milliseconds. */
  readonly value: string;
  /** Of a version: the name whose version it is. */
  readonly name: string | null;
  readonly failures: number;
  readonly groups: number;
  readonly lastAt: Date;
}

/** What can be noted with every decision. */
export interface FailureGroupNote {
  /** For whoever looks next. Null takes it away. */
  readonly note?: string | null | undefined;
  /** Where it is seen to: http or https. Null takes it away. */
  readonly link?: string | null | undefined;
}

/** What can be said of a decision. */
export interface DecisionOptions extends FailureGroupNote {
  /** Who decided. */
  readonly by?: string | undefined;
}

/** How long a group is ignored: for good, unless something is said. */
export interface IgnoreOptions extends DecisionOptions {
  /** So long from now. */
  readonly for?: Duration | undefined;
  /** Until this instant, in place of `for`. */
  readonly until?: Date | number | undefined;
  /** Until it has failed so many times more. */
  readonly count?: number | undefined;
}

export interface ErrorsDeps {
  readonly store: Store;
  readonly retry: Retry;
  readonly checkOpen: () => void;
}

const noteOptions = ["note", "link"];
const mostNote = 4_096;
const mostLink = 2_048;

/** `hf.errors`. */
export class Errors {
  readonly #deps: ErrorsDeps;

  constructor(deps: ErrorsDeps) {
    this.#deps = deps;
  }

  /**
   * Groups of failures: regressed and open ones first, then those with the most jobs. Among the newest 50,000 jobs that ended
   * unhappily, and what workers counted in 30 days.
   *
   * @example
   * for (const { group, name, message, dead } of await hf.errors.list({ state: ["open", "regressed"] }))
   *   console.log(group, name, dead, message);
   */
  async list(query: FailureGroupQuery = {}): Promise<FailureGroup[]> {
    this.#deps.checkOpen();
    const filter = checkGroupQuery(query);
    const { store, retry } = this.#deps;
    const { groups } = await retry.repeatable(() => store.insight.failureGroups(filter));
    return groups.map(dated);
  }

  /**
   * One group, or null where nothing has failed so.
   *
   * @example
   * const group = await hf.errors.get("3f0c2a9d51b7e684");
   */
  async get(group: string): Promise<Dated<FailureGroupDetail> | null> {
    this.#deps.checkOpen();
    const id = checkGroup(group);
    const { store, retry } = this.#deps;
    const found = await retry.repeatable(() => store.insight.failureGroup(id));
    return found === null ? null : dated(found);
  }

  /**
   * Failures by something else than their cause, the most first: attempts that failed, as workers counted them, in the last day
   * or since another instant (30 days are kept). Which worker it was is known of the last hour or two.
   *
   * @example
   * for (const { value, failures } of await hf.errors.counts({ by: "queue" })) console.log(value, failures);
   */
  async counts(query: FailureCountQuery): Promise<FailureCount[]> {
    this.#deps.checkOpen();
    const given: Record<string, unknown> = checkOptions(query, ["by", "since"], "errors.counts");
    const by = checkBy(given["by"]);
    const since = given["since"] as FailureCountQuery["since"];
    const from = since === undefined ? null : instantMs(since, "since");
    const { store, retry } = this.#deps;
    const { lines } = await retry.repeatable(async () =>
      store.insight.failuresBy(by, from ?? (await store.now()) - 86_400_000),
    );
    return lines.map(({ lastAt, ...line }) => ({ ...line, lastAt: new Date(lastAt) }));
  }

  /**
   * It is mended. If it fails so again, the group is `regressed`. False: nothing has failed so.
   *
   * @example
   * await hf.errors.resolve(group, { note: "fixed in 2.4.1", link: "https://github.com/acme/shop/pull/812" });
   */
  resolve(group: string, options?: DecisionOptions): Promise<boolean> {
    return this.#decide(group, "resolved", options, "errors.resolve");
  }

  /**
   * It is known and can wait: for good, for a while, or until it has failed so many times more; then it is open again.
   *
   * @example
   * await hf.errors.ignore(group, { for: "7d", count: 1_000, note: "the bank's test system" });
   */
  async ignore(group: string, options: IgnoreOptions = {}): Promise<boolean> {
    const given = checkOptions(
      options,
      ["for", "until", "count", "by", ...noteOptions],
      "errors.ignore",
    ) as IgnoreOptions;
    const { for: delay, until, count, ...rest } = given;
    if (delay !== undefined && until !== undefined)
      throw new UsageError("BAD_OPTION", "Give either for (a duration) or until (an instant), not both.");
    return this.#decide(group, "ignored", rest, "errors.ignore", {
      untilDelayMs: delay === undefined ? null : durationMs(delay, "for"),
      untilAt: until === undefined ? null : instantMs(until, "until"),
      untilCount: count === undefined ? null : checkInteger(count, "count", { min: 1, max: 1_000_000_000 }),
    });
  }

  /**
   * It is neither mended nor to be ignored after all.
   *
   * @example
   * await hf.errors.reopen(group);
   */
  reopen(group: string, options?: DecisionOptions): Promise<boolean> {
    return this.#decide(group, "open", options, "errors.reopen");
  }

  /**
   * Notes something without deciding anything.
   *
   * @example
   * await hf.errors.set(group, { note: "asked the bank", link: null });
   */
  async set(group: string, note: FailureGroupNote): Promise<boolean> {
    const given = checkOptions(note, noteOptions, "errors.set") as FailureGroupNote;
    return this.#write(group, checkNote(given));
  }

  #decide(
    group: string,
    state: Decision,
    options: DecisionOptions | undefined,
    what: string,
    bounds: { untilAt: number | null; untilDelayMs: number | null; untilCount: number | null } = {
      untilAt: null,
      untilDelayMs: null,
      untilCount: null,
    },
  ): Promise<boolean> {
    const given = checkOptions(options, ["by", ...noteOptions], what) as DecisionOptions;
    const by = given.by === undefined ? null : checkText(given.by, "by", 1_024);
    return this.#write(group, { ...checkNote(given), decision: { state, by, ...bounds } });
  }

  async #write(group: string, change: FailureGroupChange): Promise<boolean> {
    this.#deps.checkOpen();
    const id = checkGroup(group);
    const { store, retry } = this.#deps;
    return retry.repeatable(() => store.insight.decideOn(id, change));
  }
}

/** Whether a text can name a group. */
export function isGroup(text: unknown): text is string {
  return typeof text === "string" && /^[0-9a-f]{16}$/.test(text);
}

/** @throws UsageError */
export function checkGroup(group: unknown): string {
  if (isGroup(group)) return group;
  throw new UsageError(
    "BAD_OPTION",
    `A failure group is named by 16 hexadecimal digits (hf.errors.list() or \`holdfast errors list\`); got ${shown(group)}.`,
  );
}

function checkGroupQuery(query: FailureGroupQuery): Parameters<Store["insight"]["failureGroups"]>[0] {
  const { queue, name, state } = checkOptions(
    query,
    ["queue", "name", "state"],
    "errors.list",
  ) as FailureGroupQuery;
  const list = <T extends string>(value: T | readonly T[]): readonly T[] =>
    typeof value === "string" ? [value] : value;
  return {
    ...(queue === undefined ? {} : { queues: list(queue).map((one) => checkName(one, "queue")) }),
    ...(name === undefined ? {} : { names: list(name).map((one) => checkName(one, "name")) }),
    ...(state === undefined ? {} : { states: list(state).map(checkFailureGroupState) }),
  };
}

const sides: readonly FailuresBy["by"][] = ["name", "queue", "worker", "version", "hour"];

/** @throws UsageError */
export function checkBy(by: unknown): FailuresBy["by"] {
  if (sides.includes(by as FailuresBy["by"])) return by as FailuresBy["by"];
  throw new UsageError("BAD_OPTION", `by must be one of ${sides.join(", ")}; got ${shown(by)}.`, {
    details: { option: "by" },
  });
}

/** @throws UsageError */
export function checkFailureGroupState(state: unknown): FailureGroupState {
  if (FAILURE_GROUP_STATES.includes(state as FailureGroupState)) return state as FailureGroupState;
  throw new UsageError(
    "BAD_OPTION",
    `state must be one of ${FAILURE_GROUP_STATES.join(", ")}; got ${shown(state)}.`,
    {
      details: { option: "state" },
    },
  );
}

function checkNote({ note, link }: FailureGroupNote): Pick<FailureGroupChange, "note" | "link"> {
  return {
    ...(note === undefined ? {} : { note: blank(note) ? null : checkText(note, "note", mostNote) }),
    ...(link === undefined ? {} : { link: blank(link) ? null : checkLink(link) }),
  };
}

function blank(text: unknown): text is null | "" {
  return text === null || text === "";
}

/** Only what a browser opens as a page: `javascript:` and its kin would run in the dashboard. */
function checkLink(link: unknown): string {
  const text = checkText(link, "link", mostLink);
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === "https:" || url.protocol === "http:")) return url.href;
  throw new UsageError("BAD_OPTION", `link must be an address with http or https; got ${shown(link)}.`, {
    details: { option: "link" },
  });
}

function dated<T extends Stored>(group: T): Dated<T> {
  const date = (at: number | null): Date | null => (at === null ? null : new Date(at));
  return {
    ...group,
    decidedAt: date(group.decidedAt),
    untilAt: date(group.untilAt),
    firstAt: date(group.firstAt),
    lastAt: date(group.lastAt),
  } as Dated<T>;
}
