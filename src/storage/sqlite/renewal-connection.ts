/** Renewing a session over a SQLite connection of its own: for a thread that does nothing else, so it may wait. */
import { performance } from "node:perf_hooks";
import { sleep, systemClock } from "../../clock.ts";
import type { Renewal } from "../../lease/store.ts";
import type { RenewalTarget } from "../driver.ts";
import { readRenewal, renewCall, type RenewalConnection } from "../../lease/renew.ts";
import { openFile } from "./connection.ts";
import { sqliteTables } from "./driver.ts";
import { isBusy, toStoreError } from "./error-codes.ts";
import { FileClock } from "./file-clock.ts";
import { FileWatch } from "./file.ts";
import { SqliteSession } from "./group-commit.ts";
import { inTransaction, rollBack } from "./handle.ts";
import { statements } from "./statements/jobs.ts";

type SqliteTarget = Extract<RenewalTarget, { dialect: "sqlite" }>;

/** How long a renewal waits for the lock; the next beat tries again. */
const BUSY_MS = 4_000;

export async function openSqliteRenewal({ path, schema, files }: SqliteTarget): Promise<RenewalConnection> {
  const watch = new FileWatch(files);
  watch.check(); // or SQLite would make a file where there is none
  const handle = await openFile(path, "full");
  const tables = sqliteTables(schema);
  const session = new SqliteSession(handle, statements(tables));
  // It follows the file's time and never sets it: the main thread does, which has somebody to tell.
  const clock = new FileClock(systemClock, tables);
  const renew = (id: number): Renewal => {
    try {
      handle.exec("begin immediate");
      clock.follow(handle);
      clock.note(handle);
      const rows = session.run(renewCall(id, clock.now()));
      handle.exec("commit");
      watch.check();
      return readRenewal(rows);
    } catch (error) {
      if (inTransaction(handle)) rollBack(handle);
      throw error;
    }
  };
  return {
    async renew(id) {
      const since = performance.now();
      for (;;) {
        try {
          return renew(id);
        } catch (error) {
          if (!isBusy(error) || performance.now() - since > BUSY_MS)
            throw toStoreError(watch.explain(error), path);
          await sleep(systemClock, 2);
        }
      }
    },
    async close() {
      handle.close();
    },
  };
}
