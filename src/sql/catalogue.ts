/**
 * The catalogue: every statement that Holdfast sends, by name, with its parameters.
 *
 * Two dialects fill it in (sqlite/statements.ts, postgres/statements.ts) under the same names, in the same order,
 * with the same parameters, so that the two files can be read side by side; a missing one does not compile.
 *
 * How a statement is written:
 *   :name        a parameter, one of the call's `params`.
 *   :rows.id     the column `id` of the list of rows `rows`: in Postgres as one array for unnest(), in SQLite row by
 *                row (the statement runs once for each row, and the rows of all runs are the answer).
 *   :rows        SQLite: the whole list as one JSON text for json_each().
 * An entry that is a list of texts is run in order in one transaction; the rows of all of them are the answer.
 * Table names are given by `Tables`, quoted once; no other text is ever put into a statement.
 */

/** A value that every driver and every user's handle can bind. */
export type Value = string | number | boolean | null | readonly string[] | readonly number[];
/** A list of rows, bound column by column (Postgres) or as one JSON text (SQLite). */
export type RowList = readonly Readonly<Record<string, string | number | boolean | null>>[];
export type Params = Readonly<Record<string, Value | RowList>>;
export type Row = Record<string, unknown>;

/** One statement with its values: what a script yields to the driver. */
export interface Call {
  readonly name: StatementName;
  readonly params: Params;
}

/**
 * A transaction's body: yields calls, gets their rows, returns its result. A generator, because one body must run
 * synchronously inside SQLite's transaction (nothing may come between) and asynchronously inside Postgres's.
 */
export type Script<T> = Generator<Call, T, Row[]>;

export const TABLES = [
  "line",
  "job",
  "ready",
  "history",
  "session",
  "claim",
  "cancel",
  "unique_key",
  // flows
  "step",
  "signal",
  "dependency",
  "batch",
  "member",
  "queue",
  "hold",
  "state",
  "kind",
  "duty",
  "schedule",
  "budget",
  "pass",
  "metric",
  "metric_sum",
  "override",
  "slot",
  "gauge",
  "event",
  "log",
  "audit",
  // failures by cause
  "error_group",
  "failure",
  "meta",
  "migration",
  // Limits.
  "lane",
  "turn",
  "bell",
  "refund",
  "ghost",
  "breaker",
  // Postgres: the sequence that tokens are drawn from. SQLite draws them from claim's own counter.
  "token",
] as const;
export type TableName = (typeof TABLES)[number];
/** Quoted, qualified names. */
export type Tables = Readonly<Record<TableName, string>>;

export function tableNames(quoted: (table: TableName) => string): Tables {
  return Object.fromEntries(TABLES.map((table) => [table, quoted(table)])) as unknown as Tables;
}

/** Lanes, limits and breakers: their texts are in limits.ts of each dialect. */
const LIMIT_STATEMENTS = [
  "gates",
  "addLanes",
  "findLanes",
  "ringJobs",
  "lockGates",
  "adopt",
  "ghosts",
  "hearBells",
  "wakeTurns",
  "pickTurns",
  "takeLaned",
  "takeGated",
  "laneHeads",
  "turned",
  "gated",
  "peekGated",
  "refundLanes",
  "refundQueues",
  "foldRefunds",
  "lockLanes",
  "laneStarts",
  "lockQueues",
  "queueStarts",
  "setLane",
  "ringLane",
  "tuneLanes",
  "laneRows",
  "overrides",
  "lockOverride",
  "putOverride",
  "dropOverride",
  "untuneLane",
  "laneDefaults",
  "resetLane",
  "queueUse",
  "throttledLanes",
  "forgetLanes",
  "whyJob",
  "breakerRows",
  "addBreakers",
  "lockBreakers",
  "writeBreakers",
  "probeBreaker",
  "unprobeBreaker",
  "resetBreaker",
] as const;
export type LimitStatementName = (typeof LIMIT_STATEMENTS)[number];

export const STATEMENTS = [
  // enqueue
  "addLines",
  "findLines",
  "namesOfLines",
  "insertAlike",
  "insertNew",
  "insertJobs",
  "takeKeys",
  "findKeys",
  "takeStaleKeys",
  "findJobs",
  "replaceQueued",
  // claim
  "claimLevel",
  "claim",
  "sweep",
  "peek",
  // sessions
  "openSession",
  "renew",
  "closeSession",
  "orphans",
  "heldJobs",
  "bury",
  "refile",
  // settle
  "doneAlike",
  "done",
  "end",
  "again",
  "endOrphans",
  "againOrphans",
  "coolDown",
  "progress",
  // read
  "get",
  "list",
  "ids",
  "count",
  "listChildren",
  "idsOfChildren",
  "countChildren",
  "listMembers",
  "idsOfMembers",
  "countMembers",
  // act on jobs
  "lockQueued",
  "endQueued",
  "askHolder",
  "wishesOf",
  "strayWishes",
  "withdraw",
  "pauseQueued",
  "resumeQueued",
  "forget",
  "findEnded",
  "revive",
  "inputsOf",
  "setInputs",
  "runNow",
  "editable",
  "lockEditable",
  "editQueued",
  "editEnded",
  // queues, holds, workers, state
  "queueRows",
  "queueCounts",
  "setQueue",
  "endDrains",
  "holds",
  "setHold",
  "clearHold",
  "workers",
  "lostWorkers",
  "overdueClaims",
  "stopWorkers",
  "quietWorkers",
  "resumeWorkers",
  "kinds",
  "registerKinds",
  "getState",
  "setState",
  "deleteState",
  "stateRow",
  "stateRows",
  "swapState",
  // schedules, budgets, passes
  "scheduleRows",
  "dueSchedules",
  "lockSchedule",
  "claimSchedule",
  "addSchedule",
  "setSchedule",
  "advanceSchedule",
  "disableSchedule",
  "slotsMade",
  "newestSlots",
  "slotsAround",
  "slotJobs",
  "addSlots",
  "removeSchedule",
  "liveJobs",
  "budgetRows",
  "lockBudget",
  "addBudget",
  "setBudget",
  "removeBudget",
  "passRows",
  "lockPass",
  "addPass",
  "setPass",
  // series and the event log
  "putMetrics",
  "metrics",
  "metricsTogether",
  "queueMinutes",
  "putMetricSums",
  "metricSums",
  "summedHours",
  "dropMetrics",
  "putGauges",
  "gauges",
  "namedGauges",
  "load",
  "gaugeSteps",
  "putEvents",
  "events",
  "putLogLines",
  "trimLogLines",
  "logLines",
  "forgetSeries",
  // flows
  "recordSteps",
  "findSteps",
  "stepsBefore",
  "openSteps",
  "countSteps",
  "forkable",
  "copySteps",
  "markBegun",
  "findStep",
  "holdRow",
  "nameChild",
  "suspend",
  "lockTopics",
  "takeSignal",
  "sendSignal",
  "waitersFor",
  "wakeWaiters",
  "expireSignals",
  "strays",
  "over",
  "watch",
  "endsOf",
  "addDependencies",
  "placeDependents",
  "awaited",
  "meet",
  "release",
  "dependenciesOf",
  "childrenOf",
  "undoable",
  "startUndo",
  "forgetFailed",
  "saveMachine",
  "advance",
  "stillHeld",
  "liveFlows",
  "flowRow",
  // batches
  "addBatch",
  "addMembers",
  "walkBatches",
  "tallyBatches",
  "batchesOf",
  "forgetBatches",
  // insight: the dashboard's bounded looks
  "browseLive",
  "browseHeld",
  "browseTroubled",
  "browseEnded",
  "browseUnhappy",
  "browseChildren",
  "browseNamed",
  "browseMembers",
  "tallyLive",
  "tallyHeld",
  "tallyTroubled",
  "tallyEnded",
  "tallyUnhappy",
  "tallyChildren",
  "tallyMembers",
  "lineUp",
  "idsFrom",
  "walkIds",
  "summaries",
  "inspect",
  "walkRuns",
  "runSteps",
  "stepOutline",
  "tallyLines",
  "tallyRunning",
  "lineNames",
  "topLanes",
  "groupDead",
  "groupTroubled",
  "addAudit",
  "dropAudit",
  "listAudit",
  "auditOf",
  "health",
  "tables",
  // failures by cause
  "putFailures",
  "putErrorGroups",
  "errorGroupRows",
  "failureHours",
  "failurePlaces",
  "failuresBy",
  "failuresSince",
  "setErrorGroup",
  "forgetFailures",
  "failuresOf",
  "dropFailures",
  // upkeep
  "duty",
  "duties",
  "expired",
  "instance",
  "schemaState",
  "writable",
  "now",
  ...LIMIT_STATEMENTS,
] as const;
export type StatementName = (typeof STATEMENTS)[number];
export type Statements = Readonly<Record<StatementName, string | readonly string[]>>;

/** A statement cut up for a driver: text pieces between parameters. */
export interface Parsed {
  readonly pieces: readonly string[];
  readonly slots: readonly Slot[];
}
export interface Slot {
  readonly param: string;
  /** A column of a list of rows. */
  readonly column: string | null;
  /** The type of its elements, where a cast says that it is an array: `::uuid[]`. */
  readonly array: string | null;
}

/** Cuts `:name` and `:name.column` out of a statement; leaves `::casts` and quoted text alone. */
export function parse(text: string): Parsed {
  const pieces: string[] = [];
  const slots: Slot[] = [];
  let from = 0;
  for (const match of text.matchAll(/'[^']*'|::|:([a-zA-Z]+)(?:\.([a-zA-Z]+))?(?=(?:::([a-z]+)\[\])?)/g)) {
    const param = match[1];
    if (param === undefined) continue;
    pieces.push(text.slice(from, match.index));
    slots.push({ param, column: match[2] ?? null, array: match[3] ?? null });
    from = match.index + match[0].length;
  }
  pieces.push(text.slice(from));
  return { pieces, slots };
}

/** Gathers a statement's values in order; throws on one that the call does not have (a bug of ours). */
export function bind(
  parsed: Parsed,
  params: Params,
  encode: (value: Value | RowList, slot: Slot) => unknown,
): unknown[] {
  return parsed.slots.map((slot) => {
    const value = params[slot.param];
    if (value === undefined) throw new TypeError(`the call lacks the parameter :${slot.param}`);
    return encode(value, slot);
  });
}

/** One column of a list of rows, as an array. */
export function column(rows: RowList, name: string): (string | number | boolean | null)[] {
  return rows.map((row) => {
    const value = row[name];
    if (value === undefined) throw new TypeError(`a row lacks the column ${name}`);
    return value;
  });
}
