/**
 * The catalogue: every statement that Holdfast sends, by name, with its parameters.
 *
 * Two dialects fill it in (storage/sqlite/statements/jobs.ts, storage/postgres/statements/jobs.ts) under the same names, in the same order,
 * with the same parameters, so that the two files can be read side by side; a missing one does not compile.
 *
 * How a statement is written:
 *   :name        a parameter, one of the call's `params`.
 *   :rows.id     the column `id` of the list of rows `rows`: in Postgres as one array for unnest(), in SQLite row by
 *                row (the statement runs once for each row, and the rows of all runs are the answer).
 *   :rows        SQLite: the whole list as one JSON text for json_each().
 * An entry that is a function composes its text from the parameters that the call gives (`composed`), so that a filter has
 * conditions for its own fields alone.
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
export interface Call<Name extends StatementName = StatementName> {
  readonly name: Name;
  readonly params: Params;
}

/**
 * A transaction's body: yields calls, gets their rows, returns its result. A generator, because one body must run
 * synchronously inside SQLite's transaction (nothing may come between) and asynchronously inside Postgres's.
 */
export type Script<T> = Generator<Call, T, Row[]>;

export const TABLES = [
  "job_type",
  "job",
  "ready",
  "history",
  "session",
  "claim",
  "cancel",
  "unique_key",
  "used_id",
  // workflows
  "step",
  "signal",
  "dependency",
  "batch",
  "member",
  "queue",
  "hold",
  "state",
  "definition",
  "upkeep_task",
  "schedule",
  "budget",
  "pass",
  "metric",
  "metric_sum",
  "temporary_limit",
  "occurrence",
  "gauge",
  "event",
  "log",
  "audit",
  // failures by cause
  "failure_group",
  "failure",
  "meta",
  "migration",
  // Limits.
  "lane",
  "lane_rotation",
  "lane_wakeup",
  "returned_capacity",
  "uncounted_job",
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

/**
 * An enqueue whose answer was lost is sent again, for `retryFor` (30 s by default). Its id is kept for this long where no job has it any
 * more: the job was deleted, or the enqueue rewrote another job. So the second sending does not run the job again.
 */
export const RESENT_MS = 3_600_000;

/**
 * What a lost answer means: nobody knows whether the statement, or the transaction, was committed.
 *
 *   reads          nothing: it writes nothing
 *   inTransaction  it is only sent inside a transaction, and `TRANSACTIONS` says it for that
 *   again          it may be sent again; why
 *   foundBy        sent again it would do or say something else; who finds out
 *
 * A statement or a transaction without an entry does not compile. A user's own transaction is not here: it is theirs, and
 * nothing of it is sent again.
 */
type AfterLoss = "reads" | "inTransaction" | { readonly again: string } | { readonly foundBy: string };

/** Lanes, limits and breakers: their texts are in limits.ts of each dialect. */
const LIMIT_STATEMENTS = {
  limitedQueues: "reads",
  addLanes: "inTransaction",
  findLanes: "reads",
  wakeLanesOfJobs: "inTransaction",
  lockLimitedQueues: "reads",
  adopt: "inTransaction",
  uncountedJobs: "inTransaction",
  takeWakeups: "inTransaction",
  scheduleRotations: "inTransaction",
  pickRotations: "reads",
  takeLaned: "inTransaction",
  takeLimited: "inTransaction",
  dropStrays: "inTransaction",
  laneHeads: "reads",
  moveRotations: "inTransaction",
  updateLimitedQueues: "inTransaction",
  checkLimitedDue: "reads",
  returnLaneCapacity: "inTransaction",
  returnQueueCapacity: "inTransaction",
  takeReturnedCapacity: "inTransaction",
  lockLanes: "reads",
  laneStarts: "inTransaction",
  lockQueues: "reads",
  queueStarts: "inTransaction",
  setLane: "inTransaction",
  wakeLane: "inTransaction",
  tuneLanes: { again: "It writes the same limits." },
  laneRows: "reads",
  temporaryLimits: "reads",
  lockTemporaryLimit: "reads",
  putTemporaryLimit: "inTransaction",
  deleteTemporaryLimit: "inTransaction",
  untuneLane: { again: "It writes the same mark." },
  laneDefaults: "reads",
  resetLane: "inTransaction",
  queueUse: "reads",
  throttledLanes: "reads",
  deleteUnusedLanes: { again: "It deletes only lanes that nothing uses." },
  whyJob: "reads",
  breakerRows: "reads",
  addBreakers: "inTransaction",
  lockBreakers: "reads",
  writeBreakers: "inTransaction",
  probeBreaker: {
    foundBy: "worker/guards/breaker-guard.ts gives the probe back until the database answers.",
  },
  unprobeBreaker: { again: "A session gives back only its own probe." },
  resetBreaker: {
    foundBy:
      "The caller, who is told that the answer was lost: a repeat would say that there was no breaker.",
  },
} as const satisfies Readonly<Record<string, AfterLoss>>;
export type LimitStatementName = keyof typeof LIMIT_STATEMENTS;

export const STATEMENTS = {
  // enqueue
  addJobTypes: { again: "A line that is there stays as it is." },
  findJobTypes: "reads",
  jobTypesById: "reads",
  insertAlike: {
    again: "The client makes the ids; a repeat meets them and passes them over (sql-store.ts).",
  },
  insertNew: { again: "The client makes the ids; a repeat meets them and passes them over (sql-store.ts)." },
  insertJobs: "inTransaction",
  takeKeys: "inTransaction",
  findKeys: "reads",
  takeStaleKeys: "inTransaction",
  findJobs: "reads",
  findUsed: "reads",
  replaceQueued: "inTransaction",
  // claim
  claimLevel: { foundBy: "lease/reconciler.ts compares what the session holds with what its worker knows." },
  claim: { foundBy: "lease/reconciler.ts compares what the session holds with what its worker knows." },
  checkDue: { again: "It sends at most a proof of listening, and two prove the same." },
  // sessions
  openSession: { again: "A session whose opener does not know it holds nothing and expires." },
  renew: { again: "A later renewal only moves the lease further." },
  findSession: "reads",
  closeSession: { again: "A closed session keeps the instant at which it was closed." },
  orphans: "reads",
  heldJobs: "reads",
  heldUnder: "reads",
  deleteEndedSessions: { again: "It touches only empty claims and sessions that have ended." },
  refile: { again: "It files only jobs that no claim names." },
  // settle
  doneAlike: {
    again:
      "The fence lets a repeat change nothing; lease/settle-faults.ts then reads what the first one wrote.",
  },
  done: {
    again:
      "The fence lets a repeat change nothing; lease/settle-faults.ts then reads what the first one wrote.",
  },
  end: {
    again:
      "The fence lets a repeat change nothing; lease/settle-faults.ts then reads what the first one wrote.",
  },
  again: {
    again:
      "The fence lets a repeat change nothing; lease/settle-faults.ts then reads what the first one wrote.",
  },
  endOrphans: { again: "A repeat finds no orphan any more." },
  againOrphans: { again: "A repeat finds no orphan any more." },
  coolDown: "inTransaction",
  progress: { again: "It writes the same value under the fence." },
  // read
  get: "reads",
  list: "reads",
  ids: "reads",
  count: "reads",
  listChildren: "reads",
  idsOfChildren: "reads",
  countChildren: "reads",
  listMembers: "reads",
  idsOfMembers: "reads",
  countMembers: "reads",
  // act on jobs
  lockQueued: "reads",
  endQueued: "inTransaction",
  askHolder: "inTransaction",
  requestsOf: "reads",
  strayRequests: "reads",
  withdraw: "inTransaction",
  pauseQueued: "inTransaction",
  resumeQueued: "inTransaction",
  forget: {
    again: "It deletes by id; the ids of young jobs are kept, so that no repeated enqueue brings them back.",
  },
  deleteExpiredIds: { again: "It deletes only expired rows." },
  expiredKeys: "reads",
  deleteExpiredKeys: { again: "It deletes only keys that are expired and whose jobs have ended." },
  findEnded: "reads",
  revive: "inTransaction",
  inputsOf: "reads",
  setInputs: "inTransaction",
  runNow: "inTransaction",
  editable: "reads",
  lockEditable: "reads",
  editQueued: "inTransaction",
  editEnded: "inTransaction",
  // queues, holds, workers, state
  queueRows: "reads",
  queueCounts: "reads",
  setQueue: "inTransaction",
  endDrains: "inTransaction",
  holds: "reads",
  setHold: { again: "It writes the same hold." },
  clearHold: {
    foundBy: "The caller, who is told that the answer was lost: a repeat would say that there was no hold.",
  },
  workers: "reads",
  lostWorkers: "reads",
  overdueClaims: "reads",
  stopWorkers: { again: "A worker that is asked twice stops once." },
  quietWorkers: { again: "A quiet worker keeps the instant since which it is." },
  resumeWorkers: { again: "A worker that is not quiet stays so." },
  definitions: "reads",
  registerDefinitions: { again: "It writes the same names." },
  getState: "reads",
  setState: { again: "It writes the same value." },
  deleteState: {
    foundBy: "The caller, who is told that the answer was lost: a repeat would say that there was no value.",
  },
  stateRow: "reads",
  stateRows: "reads",
  swapState: { foundBy: "operate/operations.ts reads the row and compares it with what it wrote." },
  // schedules, budgets, passes
  scheduleRows: "reads",
  dueSchedules: "reads",
  lockSchedule: "reads",
  claimSchedule: "reads",
  addSchedule: "inTransaction",
  setSchedule: "inTransaction",
  advanceSchedule: "inTransaction",
  disableSchedule: "inTransaction",
  occurrencesMade: "reads",
  newestOccurrences: "reads",
  occurrencesAround: "reads",
  occurrenceJobs: "reads",
  addOccurrences: "inTransaction",
  removeSchedule: {
    foundBy:
      "The caller, who is told that the answer was lost: a repeat would say that there was no schedule.",
  },
  liveJobs: "reads",
  budgetRows: "reads",
  lockBudget: "reads",
  addBudget: "inTransaction",
  setBudget: "inTransaction",
  removeBudget: {
    foundBy: "The caller, who is told that the answer was lost: a repeat would say that there was no budget.",
  },
  passRows: "reads",
  lockPass: "reads",
  addPass: "inTransaction",
  setPass: "inTransaction",
  // series and the event log
  putMetrics: {
    again: "It writes a worker's whole minute; an older count never takes the place of a newer one.",
  },
  metrics: "reads",
  metricsTogether: "reads",
  queueMinutes: "reads",
  putMetricSums: "inTransaction",
  metricSums: "reads",
  summedHours: "reads",
  dropMetrics: "inTransaction",
  putGauges: { again: "It writes the minute's value." },
  gauges: "reads",
  namedGauges: "reads",
  load: "reads",
  gaugeSteps: "reads",
  putEvents: { again: "The client makes the ids; one that is there stays." },
  events: "reads",
  putLogLines: "inTransaction",
  trimLogLines: "inTransaction",
  logLines: "reads",
  deleteOldSeries: { again: "It deletes only expired rows." },
  // workflows
  recordSteps: { again: "A step that is over stays as it is (step-upsert.ts)." },
  findSteps: "reads",
  stepsBefore: "reads",
  openSteps: "reads",
  countSteps: "reads",
  forkable: "reads",
  copySteps: "inTransaction",
  markBegun: "inTransaction",
  findStep: "reads",
  machineSteps: "reads",
  holdRow: "reads",
  nameChild: "inTransaction",
  suspend: "inTransaction",
  lockTopics: "reads",
  takeSignal: { again: "A wait that is over is answered as it is, and takes no other signal." },
  sendSignal: "inTransaction",
  waitersFor: "reads",
  wakeWaiters: "inTransaction",
  expireSignals: { again: "It deletes only expired rows." },
  strays: "reads",
  over: "reads",
  watch: "inTransaction",
  endsOf: "reads",
  addDependencies: "inTransaction",
  placeDependents: "inTransaction",
  awaited: "reads",
  meet: "inTransaction",
  release: "inTransaction",
  dependenciesOf: "reads",
  childrenOf: "reads",
  undoable: "reads",
  startUndo: "inTransaction",
  retrySteps: "inTransaction",
  saveMachine: { again: "It writes the same place; an older one is passed over." },
  advance: { again: "It writes the same version under the fence." },
  stillHeld: "reads",
  liveWorkflows: "reads",
  workflowRow: "reads",
  // batches
  addBatch: "inTransaction",
  addMembers: "inTransaction",
  walkBatches: "reads",
  tallyBatches: "reads",
  batchesOf: "reads",
  deleteBatches: { again: "It deletes only batches without members." },
  // insight: the dashboard's bounded looks
  browseLive: "reads",
  browseHeld: "reads",
  browseFailed: "reads",
  browseEnded: "reads",
  browseNotDone: "reads",
  browseChildren: "reads",
  browseNamed: "reads",
  browseMembers: "reads",
  tallyLive: "reads",
  tallyHeld: "reads",
  tallyFailed: "reads",
  tallyEnded: "reads",
  tallyNotDone: "reads",
  tallyChildren: "reads",
  tallyMembers: "reads",
  jobsInOrder: "reads",
  idsFrom: "reads",
  walkIds: "reads",
  summaries: "reads",
  inspect: "reads",
  walkRuns: "reads",
  runSteps: "reads",
  tallyJobTypes: "reads",
  tallyRunning: "reads",
  jobTypeNames: "reads",
  topLanes: "reads",
  groupDead: "reads",
  groupFailed: "reads",
  addAudit: "inTransaction",
  dropAudit: "inTransaction",
  listAudit: "reads",
  auditOf: "reads",
  health: "reads",
  tables: "reads",
  // failures by cause
  putFailures: "inTransaction",
  putFailureGroups: "inTransaction",
  failureGroupRows: "reads",
  failureHours: "reads",
  failureGroupSources: "reads",
  failuresBy: "reads",
  failuresSince: "reads",
  setFailureGroup: "inTransaction",
  deleteOldFailures: { again: "It deletes only expired rows." },
  failuresOf: "reads",
  dropFailures: "inTransaction",
  // upkeep
  takeUpkeepTask: { foundBy: "Nobody: the upkeep task is done a period later." },
  upkeepTasks: "reads",
  expired: "reads",
  instance: "reads",
  schemaState: "reads",
  writable: "reads",
  now: "reads",
  ...LIMIT_STATEMENTS,
} as const satisfies Readonly<Record<string, AfterLoss>>;
export type StatementName = keyof typeof STATEMENTS;
/** Whether the call gives one of these parameters: a value other than null and false. */
export type Given = (...names: readonly string[]) => boolean;
export type Statement = string | readonly string[] | ((given: Given) => string);
export type Statements = Readonly<Record<StatementName, Statement>>;

/** The text of a statement for a call. `key` tells texts of one statement apart. */
export function composed(
  statements: Statements,
  { name, params }: Call,
): { readonly key: string; readonly text: () => string | readonly string[] } {
  const statement = statements[name];
  if (typeof statement !== "function") return { key: name, text: () => statement };
  const known = Object.keys(params).filter((one) => (params[one] ?? false) !== false);
  return {
    // A name has no space, so that no composed text is taken for a fixed one.
    key: `${name} ${known.toSorted().join(" ")}`,
    text: () => statement((...names) => names.some((one) => known.includes(one))),
  };
}

/** The conditions of a filter, each by the parameters that it is for: those of the given parameters, joined. */
export function conditions(given: Given, all: Readonly<Record<string, string>>): string {
  const held = Object.entries(all).filter(([names]) => given(...names.split(" ")));
  return held.length === 0 ? "true" : held.map(([, condition]) => condition).join("\n          and ");
}

/** The parameters that have a value. */
export function given(params: Readonly<Record<string, Value | undefined>>): Params {
  return Object.fromEntries(
    Object.entries(params).filter((param): param is [string, Value] => (param[1] ?? false) !== false),
  );
}

/** As many composed texts are kept prepared: there are as many as combinations of a filter's fields. */
export const MOST_COMPOSED = 100;
/** What may be sent by itself to change something. */
export type WriteName = {
  [Name in StatementName]: (typeof STATEMENTS)[Name] extends string ? never : Name;
}[StatementName];

export const TRANSACTIONS = {
  // enqueue
  enqueue: {
    again:
      "The client makes the ids; a job that is or was there is passed over, and so is an enqueue that was the last to rewrite another.",
  },
  addLanes: { again: "A lane that is there stays as it is." },
  // claim
  claimLimited: { foundBy: "lease/reconciler.ts, which also returns what the claim counted." },
  claimBudgeted: { foundBy: "lease/reconciler.ts; the tokens grow again." },
  // settle
  settle: {
    again:
      "The fence lets a repeat change nothing, and only what moved cools its queue down; lease/settle-faults.ts then reads what the first one wrote.",
  },
  grantRequests: { again: "A request that is granted is gone." },
  resolve: { again: "An end that a dependent has heard of is not counted again." },
  // act on jobs
  cancel: {
    foundBy: "The caller, who is told that the answer was lost: a repeat says that the job has ended.",
  },
  pause: { again: "A paused job stays paused." },
  resume: {
    foundBy: "The caller, who is told that the answer was lost: a repeat says that the job is not paused.",
  },
  delete: {
    foundBy: "The caller, who is told that the answer was lost: a repeat says that there is no job.",
  },
  retry: {
    foundBy: "The caller, who is told that the answer was lost: a repeat says that the job has not ended.",
  },
  runNow: { foundBy: "The caller, who is told that the answer was lost: a repeat says that the job is due." },
  edit: {
    foundBy:
      "The caller, who is told that the answer was lost: a delay would be counted from another instant.",
  },
  fork: { foundBy: "The caller, who is told that the answer was lost: a repeat makes another fork." },
  // workflows
  startCall: { again: "A call that has its child keeps it." },
  signal: { again: "The client makes the id; an id that was sent is not sent again." },
  wakeTopic: { again: "Who is awake is not woken again." },
  watch: { again: "A mark that is set stays set." },
  // queues, lanes, limits
  setQueue: { again: "It writes the same settings." },
  endDrains: { again: "A queue whose drain has ended is paused, and passed over." },
  setLane: { again: "It writes the same limits." },
  resetLane: { again: "It writes the same limits." },
  beginTemporaryLimit: { again: "What was written first is kept as what to go back to." },
  trimTemporaryLimit: { again: "What is gone stays gone." },
  countBreakers: { again: "A breaker remembers the latest counts, and takes none of them twice." },
  // schedules, budgets, passes
  putSchedule: { again: "A schedule that has this definition stays as it is." },
  changeSchedule: { again: "It writes the same definition." },
  triggerSchedule: {
    foundBy: "The caller, who is told that the answer was lost: a repeat makes another job.",
  },
  backfillSchedule: { again: "A slot that has its job gets no other." },
  fireSchedule: { again: "The schedule has advanced, and a slot that is over makes no other job." },
  setBudget: { again: "It writes the same numbers." },
  changeBudget: { again: "It writes the same numbers." },
  takeBudget: { again: "Tokens of a lost answer count as used; they grow again." },
  beginPass: {
    again: "The holder is made by the client: who holds the pass, or has ended it, begins no other.",
  },
  changePass: { again: "The holder stays in the row, so that a repeat finds its own pass." },
  // series and failures
  compactMetrics: { again: "What is added up is not added again." },
  putLogLines: { again: "The client makes the ids; a line that is there stays." },
  putFailures: {
    again: "It writes a worker's whole minute; an older count never takes the place of a newer one.",
  },
  compactFailures: { again: "What is added up is not added again." },
  setFailureGroup: { again: "It writes the same decision." },
  addAudit: { foundBy: "The caller, who tells that the entry may be missing: a repeat adds another." },
} as const satisfies Readonly<Record<string, Exclude<AfterLoss, string>>>;
export type TransactionName = keyof typeof TRANSACTIONS;

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
