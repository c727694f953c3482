/**
 * The API's description in OpenAPI 3.1, made from the route table, so that neither can have a route that the other
 * lacks. A test holds real answers against these schemas.
 */
import { JOB_STATES } from "../../jobs/job.ts";
import { TRIAGE_STATES } from "../../observe/failure-decision.ts";
import { VERSION } from "../../version.ts";
import { PERMISSIONS, READ_AT } from "./contract.ts";
import { type Route, routes } from "../routes/table.ts";
import { TOPICS } from "../live/topics.ts";

/** The part of JSON Schema that is used here. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly oneOf?: readonly Schema[];
}

const text: Schema = { type: "string" };
const number: Schema = { type: "number" };
const integer: Schema = { type: "integer" };
const flag: Schema = { type: "boolean" };
const anything: Schema = {};
const instant: Schema = { type: "integer", description: "Epoch milliseconds." };
const jsonText: Schema = {
  type: ["string", "null"],
  description: "JSON as text, redacted; null: not there, or not yours to see.",
};
const ref = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` });
const list = (items: Schema): Schema => ({ type: "array", items });
const maybe = (schema: Schema): Schema =>
  schema.$ref === undefined
    ? { ...schema, type: [...[schema.type ?? []].flat(), "null"] }
    : { oneOf: [schema, { type: "null" }] };
/** All fields are there, and no others. */
const object = (properties: Readonly<Record<string, Schema>>): Schema => ({
  type: "object",
  properties,
  required: Object.keys(properties),
  additionalProperties: false,
});
const state: Schema = { type: "string", enum: JOB_STATES };
const measured = list(maybe(number));
const percentiles = object({ p50: measured, p95: measured, p99: measured });

const jobFields: Readonly<Record<string, Schema>> = {
  id: text,
  name: text,
  queue: text,
  state,
  paused: flag,
  priority: integer,
  attempt: integer,
  maxAttempts: integer,
  crashes: integer,
  inputBytes: integer,
  error: maybe(text),
  errorGroup: maybe(text),
  key: maybe(text),
  lane: maybe(text),
  context: maybe(text),
  parentId: maybe(text),
  workerId: maybe(text),
  createdAt: instant,
  runAt: maybe(instant),
  startedAt: maybe(instant),
  endedAt: maybe(instant),
};
const queueFields: Readonly<Record<string, Schema>> = {
  name: text,
  pausedAt: maybe(instant),
  drainingAt: maybe(instant),
  coolUntil: maybe(instant),
  holds: list(text),
  breakers: list(text),
  ready: ref("Count"),
  scheduled: ref("Count"),
  waiting: ref("Count"),
  running: integer,
  concurrency: maybe(integer),
  rate: maybe(object({ limit: integer, perMs: integer, used: integer })),
  slots: integer,
  workers: integer,
  quiet: integer,
  oldestMs: maybe(number),
  unserved: list(text),
};
const errorGroupFields: Readonly<Record<string, Schema>> = {
  group: text,
  name: text,
  queue: text,
  queues: list(text),
  versions: list(integer),
  state: { type: "string", enum: TRIAGE_STATES },
  decidedAt: maybe(instant),
  decidedBy: maybe(text),
  untilAt: maybe(instant),
  untilCount: maybe(integer),
  since: integer,
  note: maybe(text),
  link: maybe(text),
  dead: integer,
  retrying: integer,
  lastHour: integer,
  lastDay: integer,
  lastWeek: integer,
  day: list(integer),
  firstAt: maybe(instant),
  lastAt: maybe(instant),
  sample: maybe(text),
  message: maybe(text),
};
const facet = object({ value: text, count: integer, more: flag });
const edit: Schema = {
  type: "object",
  properties: { delay: { type: ["string", "integer"] }, at: instant, queue: text, priority: integer },
  additionalProperties: false,
};
const lane = object({
  queue: text,
  lane: text,
  waiting: ref("Count"),
  running: integer,
  concurrency: maybe(integer),
  rate: maybe(object({ limit: number, perMs: integer })),
  rateOpensAt: maybe(instant),
  weight: number,
  paused: flag,
  tuned: flag,
});
const lag: Readonly<Record<string, Schema>> = { lagMs: number, ready: integer, running: integer };
const flowState: Schema = { type: "string", enum: [...JOB_STATES, "failed"] };
const stepKinds = ["step", "sleep", "signal", "call", "version", "undo", "machine"];
const stepKind: Schema = { type: "string", enum: stepKinds };
const jsonSchema: Schema = { type: ["object", "null"], description: "JSON Schema, draft 2020-12." };
const flowKind: Schema = { type: "string", enum: ["job", ...stepKinds] };

export const schemas: Readonly<Record<string, Schema>> = {
  Error: object({
    error: {
      type: "object",
      properties: {
        code: text,
        message: text,
        field: text,
        issues: list(object({ path: text, message: text })),
        requestId: text,
      },
      required: ["code", "message"],
      additionalProperties: false,
    },
  }),
  Count: {
    ...object({ count: integer, more: flag }),
    description: "`more`: there are more, or there may be.",
  },
  About: object({
    version: text,
    dialect: { type: "string", enum: ["sqlite", "postgres"] },
    label: maybe(text),
    labelColor: maybe(text),
    database: maybe(text),
    databases: list(object({ name: text, label: maybe(text), path: text })),
  }),
  Me: object({ user: text, permissions: list({ type: "string", enum: PERMISSIONS }), readOnly: flag }),
  Health: object({ ok: flag }),
  Latency: object({
    ...lag,
    queues: list(object({ queue: text, ...lag })),
  }),
  Metrics: { type: "string", description: "The Prometheus text format, 0.0.4." },
  OpenApi: { type: "object" },
  Stream: {
    type: "string",
    description: `text/event-stream. Topics: ${Object.entries(TOPICS)
      .map(([name, kind]) =>
        "names" in kind ? `${name}:<${kind.names}>` : "filtered" in kind ? `${name}?<filter>` : name,
      )
      .join(
        ", ",
      )}. Data is, for \`snapshot\`, { topic, readAt, value } with what the topic's route answers and when it was begun to be read (of an answer, \`${READ_AT}\` says so); for \`change\` and \`age\` { topic, readAt, delta: { set, drop, lists } } with fields that are other, fields that are gone, and of lists whose things have an id or a name the \`items\` that are other, with all \`keys\` where their order has changed; for \`current\` { topic }; for \`refused\` { topic, status, code, message }; for \`trouble\` { topic, message }.`,
  },
  Export: {
    type: "string",
    description: "One job on each line, its input in it; with format=csv comma-separated values with a head.",
  },
  Done: object({ ok: flag }),
  Overview: object({
    at: instant,
    verdict: object({
      level: { type: "string", enum: ["good", "warn", "bad", "idle"] },
      text,
      parts: list(object({ text, to: maybe(text) })),
    }),
    totals: object({
      ready: ref("Count"),
      scheduled: ref("Count"),
      waiting: ref("Count"),
      running: integer,
      retrying: ref("Count"),
      dead: ref("Count"),
    }),
    oldestMs: maybe(number),
    perMinute: maybe(integer),
    slots: integer,
    workers: integer,
    quiet: integer,
    holds: integer,
    queues: list(ref("Queue")),
    queueCount: integer,
  }),
  Recent: object({
    at: list(instant),
    ready: list(integer),
    running: list(integer),
    scheduled: list(integer),
    oldestMs: list(maybe(number)),
  }),
  Job: object({ ...jobFields, preview: maybe(text) }),
  JobList: object({ jobs: list(ref("Job")), cursor: maybe(text), cut: flag }),
  JobCount: object({ total: ref("Count"), states: { type: "object", additionalProperties: ref("Count") } }),
  JobMatches: object({ jobs: list(ref("Job")), more: flag, cursor: maybe(text), since: maybe(instant) }),
  JobFacets: object({ states: list(facet), queues: list(facet), names: list(facet), cut: flag }),
  JobDetail: object({
    ...jobFields,
    input: jsonText,
    inputTag: maybe(text),
    output: jsonText,
    outputTag: maybe(text),
    progress: jsonText,
    errors: list(
      object({
        at: instant,
        attempt: integer,
        message: text,
        stack: maybe(text),
        ranMs: maybe(integer),
        lost: flag,
      }),
    ),
    throttles: integer,
    leaseUntil: maybe(instant),
    timeoutMs: maybe(integer),
    deadlineAt: maybe(instant),
    traceId: maybe(text),
    wish: maybe({ type: "string", enum: ["cancel", "pause"] }),
    version: integer,
    schedule: maybe(
      object({
        name: text,
        at: instant,
        by: { type: "string", enum: ["slot", "hand", "backfill"] },
        previous: maybe(object({ at: instant, jobId: text })),
        next: maybe(object({ at: instant, jobId: text })),
      }),
    ),
    batches: list(
      object({
        id: text,
        role: { type: "string", enum: ["job", "then"] },
        total: integer,
        then: maybe(object({ id: text, name: text })),
      }),
    ),
    workerVersions: list(integer),
    payloadHidden: flag,
    masked: {
      ...list(list(text)),
      description: "Places in the input where something was taken out, from the top.",
    },
    why: object({ reason: text, text, until: maybe(instant) }),
  }),
  Filter: {
    type: "object",
    properties: {
      ids: list(text),
      state: list(state),
      queue: list(text),
      name: list(text),
      lane: text,
      key: text,
      workflow: { ...text, description: "The id of a run: what it called or enqueued." },
      batch: { ...text, description: "The id of a batch: its jobs." },
      trace: {
        ...text,
        description: "The id of a trace (32 hex digits) or a traceparent: what was enqueued in it.",
      },
      since: instant,
      until: instant,
      errorGroup: text,
      retrying: flag,
      search: text,
      attempt: { ...text, description: "`3`, `>3`, `<=3`, `3..5`." },
      age: { ...text, description: "Since it was created: `>5m`, `<1h`." },
      run: { ...text, description: "How long it ran, or runs: `>10s`." },
      ended: { ...text, description: "When it ended: `from..to`, in epoch milliseconds." },
      worker: { ...text, description: "The worker of its latest attempt, by name or id." },
      error: { ...text, description: "Text in its errors." },
      payload: list({ ...text, description: "A value in its input: `user.id:42`." }),
    },
    additionalProperties: false,
  },
  KindList: object({ kinds: list(object({ name: text, unique: flag, lane: flag, here: flag })) }),
  Kind: object({
    name: text,
    here: flag,
    queue: text,
    unique: flag,
    lane: flag,
    checked: flag,
    schema: jsonSchema,
    signals: list(object({ name: text, checked: flag, schema: jsonSchema })),
  }),
  Enqueued: object({
    status: { type: "string", enum: ["enqueued", "duplicate", "replaced", "debounced"] },
    id: text,
  }),
  Outcome: object({ outcome: text }),
  DryRun: object({
    dryRun: { const: true },
    action: text,
    filter: ref("Filter"),
    bounded: ref("Filter"),
    matched: ref("Count"),
    samples: list(ref("Job")),
    outcomes: maybe({ type: "object", additionalProperties: integer }),
    judged: integer,
    change: maybe(edit),
    patched: maybe(list(object({ id: text, before: text, after: maybe(text) }))),
  }),
  Operation: object({
    id: text,
    action: text,
    change: maybe(edit),
    patched: flag,
    patch: jsonText,
    filter: ref("Filter"),
    actor: text,
    state: { type: "string", enum: ["running", "paused", "done", "stopped", "failed"] },
    standsStill: flag,
    rate: maybe(object({ limit: integer, perMs: integer })),
    startedAt: instant,
    endedAt: maybe(instant),
    seenAt: instant,
    total: ref("Count"),
    matched: integer,
    refused: integer,
    refusals: list(object({ id: text, outcome: text })),
    outcomes: { type: "object", additionalProperties: integer },
    error: maybe(text),
  }),
  OperationList: object({ operations: list(ref("Operation")) }),
  BulkAnswer: { oneOf: [ref("DryRun"), ref("Operation")] },
  ErrorGroups: object({ groups: list(object(errorGroupFields)), searched: integer, cut: flag }),
  ErrorGroup: object({
    ...errorGroupFields,
    week: list(integer),
    weekFrom: instant,
    places: list(object({ queue: text, version: integer, n: integer })),
  }),
  FailuresBy: object({
    by: text,
    lines: list(
      object({ value: text, name: maybe(text), failures: integer, causes: integer, lastAt: instant }),
    ),
    cut: flag,
  }),
  Queue: object(queueFields),
  QueueList: object({ queues: list(ref("Queue")) }),
  Backfill: object({
    dryRun: flag,
    slots: list(object({ at: instant, jobId: maybe(text), status: maybe(text) })),
    had: integer,
    more: flag,
  }),
  QueueTrends: object({
    from: instant,
    stepMs: integer,
    queues: {
      type: "object",
      additionalProperties: object({ done: list(integer), failed: list(integer) }),
    },
  }),
  QueueDetail: object({
    ...queueFields,
    settings: { type: "object" },
    override: maybe(object({ untilAt: instant, back: { type: ["object", "null"] } })),
    kinds: list(
      object({
        name: text,
        ready: ref("Count"),
        scheduled: ref("Count"),
        waiting: ref("Count"),
        running: integer,
        oldestMs: maybe(number),
        served: flag,
      }),
    ),
    workersHere: list(object({ id: text, name: text, slots: integer, running: integer, quiet: flag })),
    lanes: list(lane),
    nextAt: maybe(instant),
    obstacles: list(text),
    standstill: list(object({ reason: text, text, until: maybe(instant) })),
  }),
  HoldList: object({
    holds: list(object({ name: text, queues: maybe(list(text)), reason: maybe(text), setAt: instant })),
  }),
  WorkerList: object({
    workers: list(
      object({
        id: text,
        session: integer,
        kind: { type: "string", enum: ["worker", "lease"] },
        name: text,
        host: text,
        pid: integer,
        version: text,
        runtime: maybe(text),
        release: maybe(text),
        queues: { type: "object", additionalProperties: integer },
        names: list(text),
        versions: { type: "object", additionalProperties: integer },
        slots: integer,
        startedAt: instant,
        beatAt: instant,
        leaseUntil: instant,
        stopping: flag,
        quietAt: maybe(instant),
        running: integer,
        jobs: list(text),
        duties: list(text),
        rssBytes: maybe(number),
        loopDelayMs: maybe(number),
        runs: list(object({ id: text, name: text, queue: text, startedAt: maybe(instant) })),
        failed: integer,
      }),
    ),
    lost: list(
      object({
        id: text,
        name: text,
        host: text,
        pid: integer,
        release: maybe(text),
        beatAt: instant,
        lostAt: instant,
        held: integer,
      }),
    ),
    duties: list(object({ name: text, by: maybe(text), doneAt: instant, nextAt: instant })),
  }),
  DatabaseHealth: object({
    dialect: { type: "string", enum: ["sqlite", "postgres"] },
    version: text,
    sizeBytes: number,
    freeBytes: maybe(number),
    walBytes: maybe(number),
    connections: maybe(integer),
    maxConnections: maybe(integer),
    oldestTransactionMs: maybe(number),
    roundTripMs: number,
    listening: flag,
    tables: list(
      object({
        name: text,
        bytes: maybe(number),
        rows: maybe(number),
        deadRows: maybe(number),
        vacuumedAt: maybe(instant),
      }),
    ),
  }),
  DoctorReport: object({
    at: instant,
    ok: flag,
    checks: list(
      object({
        name: text,
        verdict: { type: "string", enum: ["ok", "wrong", "note", "unknown"] },
        text,
        remedy: maybe(text),
      }),
    ),
    schema: object({ version: integer, name: text, appliedAt: instant }),
    retention: object({ doneMs: integer, deadMs: integer, queues: integer, eventLogMs: maybe(integer) }),
    prune: maybe(object({ doneAt: instant, nextAt: instant, by: maybe(text) })),
    oldest: object({ transactionMs: maybe(number), whose: maybe(text), xminAge: maybe(integer) }),
  }),
  AuditList: object({
    entries: list(
      object({
        id: integer,
        at: instant,
        actor: text,
        action: text,
        target: maybe(text),
        outcome: text,
        details: maybe(text),
      }),
    ),
    before: maybe(integer),
  }),
  Series: object({
    stepMs: integer,
    at: list(instant),
    deploys: list(object({ at: instant, release: text })),
    done: list(number),
    retried: list(number),
    dead: list(number),
    waitMs: percentiles,
    runMs: percentiles,
  }),
  Load: object({
    stepMs: integer,
    at: list(instant),
    queues: list(object({ name: text, ready: list(maybe(number)) })),
    other: list(maybe(number)),
    running: list(maybe(number)),
    slots: list(maybe(number)),
  }),
  DatabaseSeries: object({
    stepMs: integer,
    at: list(instant),
    sizeBytes: measured,
    walBytes: measured,
    diskFreeBytes: measured,
    connections: measured,
    readMs: object({ mean: measured, most: measured }),
    writeMs: object({ mean: measured, most: measured }),
    pool: maybe(object({ used: measured, idle: measured, waiting: measured })),
  }),
  HostSeries: object({
    stepMs: integer,
    at: list(instant),
    hosts: list(object({ host: text, cpu: measured, rssBytes: measured, loopDelayMs: measured })),
    others: maybe(object({ hosts: integer, cpu: measured, rssBytes: measured, loopDelayMs: measured })),
    deploys: list(object({ at: instant, release: text })),
  }),
  ScheduleList: object({
    schedules: list(
      object({
        name: text,
        job: maybe(text),
        queue: maybe(text),
        cron: maybe(text),
        everyMs: maybe(integer),
        timezone: maybe(text),
        words: text,
        paused: flag,
        nextAt: maybe(instant),
        waitingAt: maybe(instant),
        lastAt: maybe(instant),
        lastJobId: maybe(text),
        missed: maybe({ type: "string", enum: ["skip", "one", "all"] }),
        overlap: maybe({ type: "string", enum: ["allow", "skip", "queue"] }),
        jitterMs: integer,
        fired: integer,
        skipped: integer,
        passed: integer,
        error: maybe(text),
        edited: list(text),
        unserved: flag,
        obstacles: list(text),
      }),
    ),
  }),
  TimingPreview: object({
    words: maybe(text),
    error: maybe(text),
    runs: list(object({ at: instant, local: text, offset: text, note: maybe(text) })),
  }),
  Preview: object({
    at: list(instant),
    runs: list(object({ at: instant, local: text, offset: text, note: maybe(text) })),
  }),
  Calendar: object({
    from: instant,
    stepMs: integer,
    estimated: flag,
    pieces: list(object({ count: integer, most: list(object({ name: text, count: integer })) })),
  }),
  ScheduleRuns: object({
    runs: {
      type: "object",
      additionalProperties: list(
        object({
          id: text,
          at: instant,
          state: maybe(state),
          lateMs: maybe(number),
          ranMs: maybe(number),
        }),
      ),
    },
  }),
  ScheduleHistory: object({
    runs: list(
      object({
        at: instant,
        by: { type: "string", enum: ["slot", "backfill", "hand"] },
        jobId: text,
        state: maybe(state),
        attempt: maybe(integer),
        startedAt: maybe(instant),
        endedAt: maybe(instant),
        lateMs: maybe(number),
        ranMs: maybe(number),
      }),
    ),
  }),
  SlowKinds: object({ kinds: list(object({ name: text, p95Ms: number, count: integer })) }),
  StuckList: object({
    jobs: list(
      object({
        id: text,
        name: text,
        queue: text,
        workerId: maybe(text),
        startedAt: instant,
        p95Ms: number,
      }),
    ),
  }),
  Triggered: object({ id: text }),
  LogList: object({
    lines: list(
      object({
        id: text,
        at: instant,
        level: { type: "string", enum: ["trace", "debug", "info", "warn", "error"] },
        attempt: integer,
        message: text,
        details: jsonText,
      }),
    ),
    kept: integer,
    matched: integer,
    earlier: maybe(text),
  }),
  RunFile: {
    type: "object",
    description: "A run's history for `holdfast check run.json`, redacted.",
  },
  InputCheck: object({ checked: flag, issues: list(object({ path: text, message: text })) }),
  FlowHistory: object({
    attempts: list(
      object({
        attempt: integer,
        startedAt: maybe(instant),
        endedAt: maybe(instant),
        error: maybe(text),
        lost: flag,
      }),
    ),
    stepCount: integer,
    stepCountMore: flag,
    earlier: maybe(integer),
    steps: list(
      object({
        seq: integer,
        name: text,
        kind: flowKind,
        state: flowState,
        attempt: integer,
        tries: integer,
        triedAt: list(object({ startedAt: instant, endedAt: instant })),
        startedAt: instant,
        endedAt: maybe(instant),
        until: maybe(instant),
        output: jsonText,
        error: maybe(text),
        jobId: maybe(text),
      }),
    ),
    signals: list(
      object({
        name: text,
        key: maybe(text),
        step: text,
        state: { type: "string", enum: ["waiting", "taken", "timeout"] },
        since: instant,
        takenAt: maybe(instant),
        data: jsonText,
      }),
    ),
    children: list(
      object({
        id: text,
        name: maybe(text),
        relation: { type: "string", enum: ["called", "enqueued", "after"] },
        state: maybe(state),
        step: maybe(text),
        error: maybe(text),
        hidden: flag,
      }),
    ),
    graph: object({
      nodes: list(
        object({
          id: text,
          label: text,
          kind: flowKind,
          state: maybe(flowState),
          jobId: maybe(text),
          seq: maybe(integer),
        }),
      ),
      edges: list(object({ from: text, to: text })),
      cut: flag,
    }),
  }),
  RunList: object({
    runs: list(
      object({
        id: text,
        name: text,
        queue: text,
        state: { type: "string", enum: [...JOB_STATES] },
        paused: flag,
        createdAt: instant,
        endedAt: maybe(instant),
        errorGroup: maybe(text),
        known: integer,
        done: integer,
        retrying: flag,
        at: maybe(
          object({ name: text, kind: stepKind, since: instant, until: maybe(instant), jobId: maybe(text) }),
        ),
      }),
    ),
    cursor: maybe(text),
    cut: flag,
  }),
  BatchList: object({
    batches: list(
      object({
        id: text,
        createdAt: instant,
        names: { ...list(text), description: "The kinds of its jobs, the first few." },
        total: integer,
        counted: {
          type: "integer",
          description: "Jobs that were looked at, the newest; the counts are of those.",
        },
        cut: { type: "boolean", description: "There are more than were looked at." },
        done: integer,
        dead: integer,
        cancelled: integer,
        open: { type: "integer", description: "Not ended; those that run are among them." },
        running: integer,
        gone: { type: "integer", description: "Not kept any more." },
        startedAt: maybe(instant),
        endedAt: maybe(instant),
        then: maybe(object({ id: text, name: text, state: maybe(state) })),
        policy: maybe({ type: "string", enum: ["cancel", "continue", "wait"] }),
      }),
    ),
    cursor: maybe(text),
  }),
  LaneList: object({ lanes: list(lane), cursor: maybe(text) }),
  ThrottledLanes: object({ lanes: list(lane) }),
  OverrideList: object({
    overrides: list(
      object({
        kind: { type: "string", enum: ["queue", "lane", "budget"] },
        name: text,
        lane: maybe(text),
        setAt: instant,
        untilAt: instant,
        back: { type: ["object", "null"] },
      }),
    ),
  }),
  LimitUse: object({
    at: list(instant),
    queues: list(
      object({
        name: text,
        concurrency: maybe(integer),
        rate: maybe(object({ limit: number, perMs: integer })),
        running: integer,
        waiting: ref("Count"),
        started: maybe(integer),
        opensAt: maybe(instant),
        runningThen: list(maybe(number)),
        startedThen: list(maybe(number)),
      }),
    ),
    budgets: { type: "object", additionalProperties: list(maybe(number)) },
  }),
  BudgetList: object({
    budgets: list(
      object({
        name: text,
        limit: number,
        perMs: integer,
        burst: number,
        tokens: number,
        tuned: flag,
        waiting: maybe(ref("Count")),
        at: instant,
      }),
    ),
  }),
  BreakerList: object({
    breakers: list(
      object({
        key: text,
        state: { type: "string", enum: ["closed", "open", "half-open"] },
        failures: integer,
        openedAt: maybe(instant),
        openUntil: maybe(instant),
        probing: flag,
        error: maybe(text),
      }),
    ),
  }),
};

/** Fields of request bodies that are more than text. */
const bodyFields: Readonly<Record<string, Schema>> = {
  input: anything,
  data: anything,
  filter: ref("Filter"),
  action: {
    type: "string",
    enum: ["retry", "run-now", "pause", "resume", "cancel", "terminate", "delete", "purge", "edit"],
  },
  change: edit,
  patch: {
    description: "An object to merge into the inputs (RFC 7396), or the steps of a JSON Patch (RFC 6902).",
  },
  dryRun: flag,
  for: { type: ["string", "integer"], description: 'A duration such as "7d", or milliseconds.' },
  until: instant,
  count: integer,
  note: maybe(text),
  link: maybe(text),
  at: instant,
  delay: { type: ["string", "integer"], description: 'A duration such as "5m", or milliseconds.' },
  timeout: { type: ["string", "integer"] },
  deadline: { type: ["string", "integer"], description: "Not started after so long: cancelled." },
  priority: integer,
  attempts: integer,
  queues: list(text),
  limit: number,
  burst: number,
  concurrency: maybe(integer),
  weight: maybe(integer),
  slots: maybe(integer),
  total: maybe(integer),
  breaker: maybe({ type: "object" }),
  paused: flag,
  rate: maybe({ type: "object" }),
  retention: maybe({ type: "object" }),
  backoff: maybe({ type: "object" }),
  cooldown: maybe({ type: "object" }),
};

const errors: Readonly<Record<string, string>> = {
  "400": "The request is wrong; `field` says where.",
  "401": "Nobody is signed in, or the token is wrong.",
  "403": "Not allowed: the permission is missing, the dashboard is read-only, or another site asked.",
  "404": "There is no such thing.",
  "405": "The address is there, but not for this method.",
  "409": "The job is not in a state that allows it.",
  "413": "The body is too large.",
  "415": "The body is not application/json.",
  "429": "Too many wrong tokens, streams or bulk actions.",
  "500": "A fault of the server's; the log has it under `requestId`.",
  "503": "The database does not answer, or not within 5 s.",
};
/** Of answers to requests that have no body. */
const bodyless: readonly string[] = ["413", "415"];
/** Of what everybody may ask. */
const probed: readonly string[] = ["400", "403", "405", "500"];

function errorsOf({ write, probe }: Route): readonly [status: string, description: string][] {
  const all = Object.entries(errors);
  if (probe === true) return all.filter(([status]) => probed.includes(status));
  return write === true ? all : all.filter(([status]) => !bodyless.includes(status));
}

/** Of answers that are not JSON. */
const types: Readonly<Record<string, string>> = {
  Stream: "text/event-stream",
  Export: "application/x-ndjson",
  Metrics: "text/plain",
};

/** The whole document. */
export function openapi(basePath: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast dashboard API",
      version: VERSION,
      description:
        "Jobs, queues, workers and limits of one Holdfast database. Instants are epoch milliseconds.",
    },
    servers: [{ url: `${basePath}/api/v1` }],
    security: [{ token: [] }],
    paths,
    components: { schemas, securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}

function operation(route: Route): object {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: text,
  }));
  const inQuery = (route.query ?? []).map((name) => ({ name, in: "query", required: false, schema: text }));
  const type = types[route.answer] ?? "application/json";
  return {
    operationId: route.id,
    summary: route.summary,
    ...(route.permission === null ? {} : { "x-permission": route.permission }),
    ...(route.probe === true ? { security: [] } : {}),
    ...(inPath.length + inQuery.length === 0 ? {} : { parameters: [...inPath, ...inQuery] }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: {
              "application/json": {
                schema: {
                  type: "object",
                  properties: Object.fromEntries(route.body.map((name) => [name, bodyFields[name] ?? text])),
                  additionalProperties: false,
                },
              },
            },
          },
        }),
    responses: {
      "200": { description: "OK", content: { [type]: { schema: ref(route.answer) } } },
      ...(route.id === "bulk"
        ? {
            "202": {
              description: "Still running: see /operations/{id}.",
              content: { [type]: { schema: ref("Operation") } },
            },
          }
        : {}),
      ...(route.id === "overview"
        ? { "304": { description: "Nothing has changed since the answer with this `ETag`." } }
        : {}),
      ...(route.probe === true
        ? { "503": { description: "No.", content: { [type]: { schema: ref(route.answer) } } } }
        : {}),
      ...Object.fromEntries(
        errorsOf(route).map(([status, description]) => [
          status,
          { description, content: { "application/json": { schema: ref("Error") } } },
        ]),
      ),
    },
  };
}
