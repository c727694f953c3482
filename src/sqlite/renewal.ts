/** Renewing a session over a SQLite connection of its own: for a thread that does nothing else, so it may wait. */
import { performance } from "node:perf_hooks";
import { sleep, systemClock } from "../clock.ts";
import { readRenewal, renewCall, type RenewalConnection } from "../sql/renewal.ts";
import { openFile } from "./connection.ts";
import { sqliteTables } from "./driver.ts";
import { isBusy, toStoreError } from "./errors.ts";
import { FileWatch } from "./file.ts";
import { SqliteSession } from "./handle.ts";
import { statements } from "./statements.ts";

/** How long a renewal waits for the lock; the next beat tries again. */
const BUSY_MS = 4_000;

export async function openSqliteRenewal(path: string, schema: string): Promise<RenewalConnection> {
  const watch = new FileWatch(path);
  const handle = await openFile(path, "full");
  const session = new SqliteSession(handle, statements(sqliteTables(schema)));
  return {
    async renew(id) {
      const since = performance.now();
      for (;;) {
        try {
          watch.check();
          return readRenewal(session.run(renewCall(id, systemClock.now())));
        } catch (error) {
          if (!isBusy(error) || performance.now() - since > BUSY_MS) throw toStoreError(error, path);
          await sleep(systemClock, 2);
        }
      }
    },
    async close() {
      handle.close();
    },
  };
}
