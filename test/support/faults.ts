// Faults between the store and its database: every commit that the store asks for passes here, with its name, and one of them
// can be refused, cut off, committed without an answer, or committed late.
//
//   const seam = new Seam(driver);
//   const store = new SqlStore(seam.driver);
//   seam.plan = { unit: "enqueue", statement: "insertJobs", fault: "cut" };
//   …                                        // the next enqueue in a transaction loses its connection after that insert
//   seam.fired;                              // whether it came to that
//   await seam.late();                       // what the server went on with when its client had given up
import { StoreError } from "../../src/errors.ts";
import {
  type Call,
  type Row,
  type Script,
  type StatementName,
  STATEMENTS,
  type TransactionName,
  type WriteName,
} from "../../src/storage/catalogue.ts";
import { toStoreError as postgresError } from "../../src/storage/postgres/error-codes.ts";
import type { Driver, Lane } from "../../src/storage/driver.ts";
import { toStoreError as sqliteError } from "../../src/storage/sqlite/error-codes.ts";

/** Every class of refusal that passes, as the driver of each database reports it. */
const REFUSALS = {
  postgres: [
    "ECONNRESET", // the socket
    "08006", // connection_failure
    "40001", // serialization_failure
    "40P01", // deadlock_detected
    "53100", // disk_full
    "53200", // out_of_memory
    "53300", // too_many_connections
    "55P03", // lock_not_available
    "57014", // query_canceled
    "57P01", // admin_shutdown
    "58030", // io_error
    "XX000", // internal_error
  ],
  sqlite: [
    5, // BUSY
    6, // LOCKED
    10, // IOERR
    13, // FULL
    778, // IOERR_WRITE
    1034, // IOERR_FSYNC
  ],
} as const;

/** `lost`: committed, without an answer. `cut`: nothing is committed. `late`: committed when its client has given up. */
export type Fault = "lost" | "cut" | "late" | { readonly refused: string | number };
/** What is committed as one: a statement by itself, or a transaction. */
export type Unit = `statement ${WriteName}` | `transaction ${TransactionName}`;

export interface Plan {
  readonly unit: Unit;
  /** `cut` comes after it, `refused` in place of it. The others happen to the whole unit. */
  readonly statement: StatementName;
  readonly fault: Fault;
}

export interface Committed {
  readonly unit: Unit;
  /** Those that write. */
  readonly statements: readonly StatementName[];
}

/** As the driver says it when the wire is cut. */
const cut = (): StoreError => new StoreError("CONNECTION_LOST", "cut by the test");

export function faultsOf(dialect: Driver["dialect"]): readonly Fault[] {
  return ["lost", "cut", "late", ...REFUSALS[dialect].map((refused) => ({ refused }))];
}

export class Seam {
  readonly driver: Driver;
  readonly committed: Committed[] = [];
  /** Called after each commit. */
  onCommit: () => Promise<void> = async () => {};
  plan: Plan | null = null;
  fired = false;
  readonly #real: Driver;
  #late: (() => Promise<unknown>) | null = null;

  constructor(real: Driver) {
    this.#real = real;
    const own: Partial<Driver> = {
      write: (call, lane) => this.#write(call, lane),
      // A look that sends something along.
      read: (call, lane) =>
        STATEMENTS[call.name] === "reads"
          ? real.read(call, lane)
          : this.#write(call as Call<WriteName>, lane, () => real.read(call, lane)),
      transaction: (name, script, lane) => this.#unit(`transaction ${name}`, script, lane),
      // Shared by many clients.
      close: async () => {},
    };
    this.driver = new Proxy(real, {
      get: (target, key) => {
        const value: unknown = Reflect.get(own, key) ?? Reflect.get(target, key, target);
        return typeof value === "function" ? (value.bind(target) as unknown) : value;
      },
    });
  }

  start(plan: Plan | null, onCommit: () => Promise<void> = async () => {}): void {
    this.committed.length = 0;
    this.plan = plan;
    this.fired = false;
    this.onCommit = onCommit;
  }

  /** The server commits what its client has given up, if there is something left. */
  async late(): Promise<void> {
    const late = this.#late;
    this.#late = null;
    // Nobody hears whether it was refused.
    await late?.().catch(() => {});
  }

  #write(
    call: Call<WriteName>,
    lane?: Lane,
    run: () => Promise<Row[]> = () => this.#real.write(call, lane),
  ): Promise<Row[]> {
    // By itself, unless something is to happen to it: then the drivers' own ways with a transaction that fails are of use.
    const script = function* (): Script<Row[]> {
      return yield call;
    };
    return this.#unit(`statement ${call.name}`, script, lane, run);
  }

  async #unit<T>(
    unit: Unit,
    script: () => Script<T>,
    lane: Lane | undefined,
    run?: () => Promise<T>,
  ): Promise<T> {
    const { plan } = this;
    const seen = new Set<StatementName>();
    const hit = plan !== null && plan.unit === unit && !this.fired;
    const commit = (wrapped: () => Script<T>): Promise<T> =>
      run !== undefined && !hit ? run() : this.#real.transaction(nameOf(unit), wrapped, lane);
    if (run !== undefined) seen.add(unit.split(" ")[1] as StatementName);
    if (hit && plan.fault === "late") {
      this.fired = true;
      this.#late = () => this.#real.transaction(nameOf(unit), script, lane);
      throw cut();
    }
    const answer = await commit(() => this.#watched(script, seen, hit ? plan : null));
    const statements = [...seen].filter((name) => STATEMENTS[name] !== "reads");
    if (statements.length > 0) this.committed.push({ unit, statements });
    if (hit && plan.fault === "lost" && seen.has(plan.statement)) {
      this.fired = true;
      throw cut();
    }
    if (statements.length > 0) await this.onCommit();
    // The repeat of what was given up is through: now the server comes to the first one.
    if (plan?.unit === unit) await this.late();
    return answer;
  }

  *#watched<T>(script: () => Script<T>, seen: Set<StatementName>, plan: Plan | null): Script<T> {
    seen.clear();
    const body = script();
    let step = body.next();
    while (step.done !== true) {
      const { name } = step.value;
      const due = plan !== null && !this.fired && name === plan.statement;
      if (due && typeof plan.fault === "object") {
        this.fired = true;
        const { refused } = plan.fault;
        // Postgres's errors are classed where a statement is sent, SQLite's where the transaction ends.
        throw typeof refused === "string" ? postgresError(refusal(refused)) : refusal(refused);
      }
      const rows = yield step.value;
      seen.add(name);
      if (due && plan.fault === "cut") {
        this.fired = true;
        throw cut();
      }
      step = body.next(rows);
    }
    return step.value;
  }
}

/** A name for the driver, which has no use for it. */
function nameOf(unit: Unit): TransactionName {
  return (unit.startsWith("transaction") ? unit.split(" ")[1] : "enqueue") as TransactionName;
}

/** What the store makes of a refusal. */
export function refusedAs(dialect: Driver["dialect"], code: string | number): unknown {
  return dialect === "postgres" ? postgresError(refusal(code)) : sqliteError(refusal(code), "jobs.db");
}

function refusal(code: string | number): Error {
  const error = new Error("refused by the test");
  return Object.assign(error, typeof code === "number" ? { errcode: code } : { code });
}
