// A look at the newest lines of the event log reads those, however long the log is.
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { idAt } from "../../src/values/id.ts";
import { Compiler } from "../../src/storage/postgres/driver.ts";
import { parse, type Params } from "../../src/storage/catalogue.ts";
import { openStore } from "../../src/storage/open.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { statements } from "../../src/storage/sqlite/statements/jobs.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import { onEveryStore } from "../support/stores.ts";

onEveryStore((target) => {
  test("[J2] lines since an instant are found by their ids, without a walk through what is older", async () => {
    const clock = new FakeClock();
    const fresh = await target.fresh();
    const store = await openStore(fresh.url, { ...fresh.options, clock });
    const now = clock.now();
    const line = (at: number) => ({
      id: idAt(at),
      at,
      event: "job.done",
      job: null,
      name: null,
      queue: null,
      attempt: null,
      worker: null,
      detail: null,
    });
    await store.series.putEvents(Array.from({ length: 30_000 }, (_, i) => line(now - 3_600_000 - i * 10)));
    await store.series.putEvents(Array.from({ length: 10 }, (_, i) => line(now - i * 10)));
    const query = {
      job: null,
      events: null,
      queues: null,
      names: null,
      since: now - 60_000,
      until: Number.MAX_SAFE_INTEGER,
      limit: 1_000,
      cursor: null,
    };
    expect(await store.series.events(query)).toHaveLength(10);
    const params: Params = { ...query, from: idAt(query.since) };
    if (target.dialect === "sqlite") {
      const handle = new DatabaseSync(fresh.url.slice("sqlite:".length));
      const { pieces } = parse(statements(sqliteTables("holdfast")).events as string);
      const plan = handle.prepare(`explain query plan ${pieces.join("?")}`).all() as { detail: string }[];
      expect(plan[0]?.detail).toMatch(/^SEARCH holdfast_event USING (PRIMARY KEY|INDEX \S+) \(id>\?\)$/);
      handle.close();
    } else {
      await fresh.query(`analyze ${fresh.table("event")}`);
      const { text, values } = new Compiler(fresh.options.schema!).prepare({ name: "events", params });
      const [row] = await fresh.query(`explain (analyze, format json) ${text}`, [...values]);
      const plan = JSON.stringify(row?.["QUERY PLAN"]);
      expect(plan).toMatch(/"Index Cond":"\(id >= /);
      expect(plan).not.toMatch(/"Rows Removed by Filter":[1-9]/);
    }
    await store.close();
  });
});
