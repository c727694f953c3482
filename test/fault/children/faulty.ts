// Makes the database unreliable for the process that preloads this file (`--import`), and for its threads, which preload it too.
// Faults happen while the file `while` exists; each one is a line in `log`.
//
//   lost     a statement is executed and its answer is lost: the connection is reset at once or seconds later
//   refused  the server refuses a statement with a transient error
//   sockets  sockets are destroyed with unusual errors, in the middle of a statement and between two
//
// On SQLite, which has no connection to lose, the statement commits and the driver's call rejects.
import { appendFileSync, existsSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { isMainThread, threadId } from "node:worker_threads";
import pg from "pg";
import { StoreError } from "../../../src/errors.ts";
import { SqliteDriver } from "../../../src/storage/sqlite/driver.ts";
import { SqliteSession } from "../../../src/storage/sqlite/group-commit.ts";

export type FaultKind = "lost" | "refused" | "sockets";

export interface FaultSpec {
  readonly kind: FaultKind;
  readonly seed: number;
  /** The share of statements that meet a fault. */
  readonly rate: number;
  readonly while: string;
  readonly log: string;
}

const spec = JSON.parse(process.env["HOLDFAST_FAULTS"] ?? "null") as FaultSpec | null;

/** Class 40: conflicts. 53200: no memory. 57014: cancelled. 58030 and XX000: the server's own trouble. */
const refusals = ["40001", "40P01", "53200", "57014", "58030", "XX000"];
/** IOERR and NOMEM. */
const sqliteRefusals = [10, 7];
const socketErrors: readonly [code: string | null, message: string][] = [
  ["EHOSTDOWN", "read EHOSTDOWN"],
  ["ENETDOWN", "read ENETDOWN"],
  ["EPROTO", "write EPROTO"],
  ["ENOBUFS", "write ENOBUFS"],
  ["ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR", "SSL routines:ssl3_read_bytes:tlsv1 alert internal error"],
  [null, "the socket broke"],
];

if (spec !== null) inject(spec);

function inject({ kind, seed, rate, while: flag, log }: FaultSpec): void {
  const random = mulberry32(seed + threadId);
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const note = (what: string): void =>
    appendFileSync(log, `${JSON.stringify({ at: Date.now(), pid: process.pid, thread: threadId, what })}\n`);
  const isDue = (): boolean => random() < rate && existsSync(flag);
  if (kind === "lost") {
    wrap<pg.Client>(pg.Client.prototype, "query", async (client, args, query) => {
      const isLost = isDue();
      const lateMs = isLost && random() < 0.2 ? random() * 6_000 : 0;
      const answer = await query(client, args);
      if (!isLost) return answer;
      note(textOf(args));
      await sleep(lateMs);
      const error = Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
      destroy(client, error);
      throw error;
    });
    const lose = (what: string): never => {
      note(what);
      throw new StoreError("CONNECTION_LOST", "the answer was lost after the commit");
    };
    if (isMainThread)
      for (const verb of ["read", "write", "transaction"])
        wrap<SqliteDriver>(SqliteDriver.prototype, verb, async (driver, args, real) => {
          const answer = await real(driver, args);
          return isDue() ? lose(`${verb} ${nameOf(args)}`) : answer;
        });
    // The thread that renews has a connection and no driver.
    else
      wrap<SqliteSession>(SqliteSession.prototype, "run", (session, args, run) => {
        const rows = run(session, args);
        return isDue() ? lose(nameOf(args)) : rows;
      });
  }

  if (kind === "refused") {
    wrap<pg.Client>(pg.Client.prototype, "query", (client, args, query) => {
      const text = textOf(args);
      // No server refuses a rollback.
      if (text === "rollback" || !isDue()) return query(client, args);
      const state = pick(refusals);
      note(`${state} ${text}`);
      const raise = `do $$ begin raise exception 'injected fault' using errcode = '${state}'; end $$`;
      return query(client, [raise]);
    });
    const refuse = (what: string): never => {
      const errcode = pick(sqliteRefusals);
      note(`${errcode} ${what}`);
      throw Object.assign(new Error("injected fault"), { code: "ERR_SQLITE_ERROR", errcode });
    };
    wrap<SqliteSession>(SqliteSession.prototype, "run", (session, args, run) =>
      isDue() ? refuse(nameOf(args)) : run(session, args),
    );
    wrap<DatabaseSync>(DatabaseSync.prototype, "exec", (handle, args, exec) =>
      /^(begin|commit)/.test(String(args[0])) && isDue() ? refuse(String(args[0])) : exec(handle, args),
    );
  }

  if (kind === "sockets") {
    const open = new Set<pg.Client>();
    wrap<pg.Client>(pg.Client.prototype, "connect", (client, args, connect) => {
      open.add(client);
      client.once("end", () => open.delete(client));
      return connect(client, args);
    });
    const breakSocket = (client: pg.Client, during: string): void => {
      const [code, message] = pick(socketErrors);
      note(`${message} ${during}`);
      destroy(client, Object.assign(new Error(message), code === null ? {} : { code }));
    };
    wrap<pg.Client>(pg.Client.prototype, "query", (client, args, query) => {
      const answer = query(client, args);
      if (isDue()) setTimeout(breakSocket, random() * 3, client, textOf(args));
      return answer;
    });
    setInterval(() => {
      if (open.size > 0 && random() < 0.2 && existsSync(flag)) breakSocket(pick([...open]), "at any time");
    }, 100).unref();
  }
}

type Method<Self> = (self: Self, args: unknown[]) => unknown;

/** Replaces a method for all objects of a class. */
function wrap<Self extends object>(
  prototype: Self,
  name: string,
  body: (self: Self, args: unknown[], real: Method<Self>) => unknown,
): void {
  const method = Reflect.get(prototype, name) as (this: Self, ...args: unknown[]) => unknown;
  const real: Method<Self> = (self, args) => method.apply(self, args);
  Reflect.set(prototype, name, function (this: Self, ...args: unknown[]) {
    return body(this, args, real);
  });
}

/** As the kernel does: the error is emitted on the connection's own socket. */
function destroy(client: pg.Client, error: Error): void {
  const { connection } = client as unknown as { connection: { stream: { destroy(error: Error): void } } };
  connection.stream.destroy(error);
}

function textOf([query]: unknown[]): string {
  return typeof query === "string" ? query : ((query as { text?: string }).text ?? "");
}

function nameOf([call]: unknown[]): string {
  return (call as { name?: string }).name ?? "";
}

function mulberry32(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
