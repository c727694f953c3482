// The two catalogues against each other, and how many statements work takes.
import { describe, expect, test } from "vitest";
import { defineJob } from "holdfast";
import { parse, STATEMENTS, type StatementName, type Statements } from "../../src/storage/catalogue.ts";
import { postgresTables } from "../../src/storage/postgres/driver.ts";
import { statements as postgresStatements } from "../../src/storage/postgres/statements/jobs.ts";
import { sqliteTables } from "../../src/storage/sqlite/driver.ts";
import { statements as sqliteStatements } from "../../src/storage/sqlite/statements/jobs.ts";
import { client, patient } from "../support/client.ts";
import { onEveryStore } from "../support/stores.ts";
import { textsOf } from "./explain.ts";

const names = Object.keys(STATEMENTS) as StatementName[];
const sqlite = sqliteStatements(sqliteTables("holdfast"));
const postgres = postgresStatements(postgresTables("holdfast"));

function texts(catalogue: Statements, name: StatementName): readonly string[] {
  return textsOf(catalogue[name]);
}

/** `rows.id`; a list that is bound whole (SQLite's JSON) is its name alone. */
function slots(catalogue: Statements, name: StatementName): Set<string> {
  return new Set(
    texts(catalogue, name).flatMap((text) =>
      parse(text).slots.map(({ param, column }) => (column === null ? param : `${param}.${column}`)),
    ),
  );
}

/** Parameters that one dialect has no use for, with the reason. */
const onlyHere: Readonly<Record<string, string>> = {
  // What was claimed is not in SQLite's index any more: the instant says where to go on, and claims of several levels need no cursor.
  "claimLevel rowKey": "postgres",
  "claim levels": "postgres",
  "checkDue levels": "postgres",
  "checkDue direction": "postgres",
  "pickRotations floors": "postgres",
  "scheduleRotations floors": "postgres",
  "takeLimited levels": "postgres",
  "checkLimitedDue levels": "postgres",
  "checkLimitedDue direction": "postgres",
  // Ended jobs leave no entries in SQLite's index: every count is complete.
  "tallyJobTypes begins": "postgres",
  // One statement of Postgres tells what is gone by itself; SQLite must be told which ones leave no history.
  "end dropped": "sqlite",
  "endOrphans dropped": "sqlite",
  // New rows follow each other in SQLite's numbers: how many, says which.
  "insertAlike count": "sqlite",
  // Postgres counts what a statement has moved by itself.
  "doneAlike count": "sqlite",
  // Walks are bounded by the time itself where jobs are numbered, and by ids made of it where they are not.
  ...Object.fromEntries(
    ["Live", "Held", "Failed", "Ended", "NotDone", "Children", "Members"].flatMap((walk) =>
      [`browse${walk}`, `tally${walk}`].flatMap((name) => [
        [`${name} from`, "postgres"],
        [`${name} before`, "postgres"],
      ]),
    ),
  ),
  "browseNamed from": "postgres",
  "browseNamed before": "postgres",
  "groupDead before": "postgres",
  "groupFailed before": "postgres",
  "expired before": "postgres",
  // SQLite has no lateral limit: the largest of the limits bounds what is looked at.
  "takeLaned most": "sqlite",
  "takeLimited most": "sqlite",
  // Only Postgres sends wake-ups by a statement, and must prove that they arrive.
  "checkDue channel": "postgres",
  "checkDue message": "postgres",
  "insertAlike channel": "postgres",
  "insertAlike message": "postgres",
  "insertNew channel": "postgres",
  "insertNew message": "postgres",
};

/** Columns of a list that Postgres alone reads, with the reason. */
const columnsOfPostgres: readonly string[] = [
  // What was claimed is not in SQLite's index any more: claims of several levels need no cursor.
  ...["claim", "checkDue", "takeLimited", "checkLimitedDue"].flatMap((name) =>
    ["levels.jobType", "levels.rank", "levels.runAt", "levels.rowKey", "queues.edge"].map(
      (column) => `${name} ${column}`,
    ),
  ),
  // Turns leave none there that they have passed.
  ...["pickRotations", "scheduleRotations"].flatMap((name) => [
    `${name} floors.jobType`,
    `${name} floors.vtime`,
  ]),
  // Ended jobs leave no entries in it either.
  ...["queue", "name", "at"].map((column) => `tallyJobTypes begins.${column}`),
];

describe("the catalogues", () => {
  test("have the same statements, in the order of the list", () => {
    expect(Object.keys(sqlite)).toEqual(names);
    expect(Object.keys(postgres)).toEqual(names);
  });

  // A lock (`for update`) changes nothing. A table's name follows an `update` that changes it.
  const writing =
    /\b(insert\s+into|delete\s+from|truncate|nextval|setval|set_config|pg_notify)\b|\bupdate\s+(only\s+)?"/i;

  test.each(names)(
    "[O2] %s says what a lost answer means, and says that it reads only if it writes nothing",
    (name) => {
      const writes = [sqlite, postgres].some((one) => texts(one, name).some((text) => writing.test(text)));
      expect(STATEMENTS[name] !== "reads").toBe(writes);
    },
  );

  test.each(names)("%s takes the same parameters in both", (name) => {
    const params = (catalogue: Statements): string[] => [
      ...new Set([...slots(catalogue, name)].map((slot) => slot.split(".")[0]!)),
    ];
    const differing = new Set([
      ...params(sqlite).filter((param) => !params(postgres).includes(param)),
      ...params(postgres).filter((param) => !params(sqlite).includes(param)),
    ]);
    // Instants: SQLite always binds the clock, and Postgres's own clock can stand for it.
    const unexplained = [...differing].filter((param) => !(`${name} ${param}` in onlyHere));
    expect(unexplained).toEqual([]);
  });

  test.each(names)("%s reads the same columns of its rows in both", (name) => {
    const columns = (catalogue: Statements): string[] =>
      [...slots(catalogue, name)].filter((slot) => slot.includes(".")).sort();
    // A list that SQLite takes whole as JSON names its columns inside the text.
    const whole = [...slots(sqlite, name)].filter(
      (slot) => !slot.includes(".") && columns(postgres).some((column) => column.startsWith(`${slot}.`)),
    );
    const json = whole.flatMap((list) => {
      const wanted = columns(postgres).filter((column) => column.startsWith(`${list}.`));
      return wanted.filter((column) =>
        texts(sqlite, name).some((text) => text.includes(`->> '${column.split(".")[1]!}'`)),
      );
    });
    const read = [...new Set([...columns(sqlite), ...json])].sort();
    const excepted = columns(postgres).filter((column) => columnsOfPostgres.includes(`${name} ${column}`));
    expect(read.filter((column) => excepted.includes(column))).toEqual([]);
    expect(read).toEqual(columns(postgres).filter((column) => !excepted.includes(column)));
  });

  test("every exception in the list above is still one", () => {
    for (const [which, dialect] of Object.entries(onlyHere)) {
      const [name, param] = which.split(" ") as [StatementName, string];
      const has = (catalogue: Statements): boolean =>
        [...slots(catalogue, name)].some((slot) => slot.split(".")[0] === param);
      expect([which, has(sqlite), has(postgres)]).toEqual([
        which,
        dialect === "sqlite",
        dialect === "postgres",
      ]);
    }
  });

  test("Postgres needs one statement for each call, and casts every parameter whose type it could guess wrong", () => {
    for (const name of names) expect([name, texts(postgres, name).length]).toEqual([name, 1]);
    for (const name of names) {
      const { pieces, slots: own } = parse(texts(postgres, name)[0]!);
      own.forEach((slot, index) => {
        if (slot.column !== null)
          expect([name, slot.column, pieces[index + 1]!.startsWith("::")]).toEqual([name, slot.column, true]);
      });
    }
  });
});

const noop = defineJob({ name: "noop", run: () => null });
const quiet = defineJob({ name: "quiet", run: () => undefined });

onEveryStore((target) => {
  // What people see is tested on the newest Postgres alone (vitest.config.ts): a statement that an older one does not understand shows here.
  test("every statement is understood", async () => {
    const { fresh } = await client(target);
    const { schema = "holdfast" } = fresh.options;
    const own =
      fresh.dialect === "sqlite"
        ? sqliteStatements(sqliteTables(schema))
        : postgresStatements(postgresTables(schema));
    for (const [n, name] of names.entries())
      for (const text of texts(own, name)) {
        const { pieces, slots: given } = parse(text);
        const numbers = [...new Set(given.map(({ param, column }) => `${param}.${column}`))];
        const numbered = given.map(
          ({ param, column }, i) => `$${numbers.indexOf(`${param}.${column}`) + 1}${pieces[i + 1]}`,
        );
        const whole = [pieces[0], ...numbered].join("");
        // SQLite takes what is not bound as null.
        const asked = fresh.dialect === "sqlite" ? `explain ${whole}` : `prepare s${n} as ${whole}`;
        await expect(fresh.query(asked), name).resolves.toBeDefined();
      }
  });

  test("1,000 concurrent enqueues with unique keys take a few dozen statements", async () => {
    const { hf, store } = await client(target);
    await hf.enqueue(noop, null);
    const before = store.counters.statements;
    await Promise.all(Array.from({ length: 1_000 }, (_, n) => hf.enqueue(noop, null, { key: String(n) })));
    expect(store.counters.statements - before).toBeLessThanOrEqual(36);
  });

  test("draining 1,000 no-op jobs takes well below a tenth of a statement for each", async () => {
    const { hf, store, count } = await client(target);
    await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: noop, input: n as never })));
    const before = new Map(store.counters.byName);
    const worker = hf.work([noop], { queues: { default: 10 }, ...patient });
    await worker.idle();
    const sent = [...store.counters.byName].map(([name, n]) => [name, n - (before.get(name) ?? 0)] as const);
    const total = sent.reduce((sum, [, n]) => sum + n, 0);
    expect(total, JSON.stringify(Object.fromEntries(sent))).toBeLessThan(80);
    expect(await count("history")).toBe(1_000);
    expect(await count("claim"), "no claim is left behind").toBe(0);
  });

  test("1,000 jobs that are alike are one statement and one commit, and those that differ are too", async () => {
    const { hf, store } = await client(target);
    await hf.enqueue(noop, null);
    for (const options of [{}, { priority: 3, delay: "1m" }] as const) {
      const before = { ...store.counters, byName: new Map(store.counters.byName) };
      const items = Array.from({ length: 1_000 }, (_, n) => ({
        job: noop,
        input: n as never,
        ...(n % 2 ? options : {}),
      }));
      await hf.enqueueMany(items);
      const inserts = ["insertAlike", "insertNew", "insertJobs"].map(
        (name) => (store.counters.byName.get(name) ?? 0) - (before.byName.get(name) ?? 0),
      );
      expect(inserts).toEqual("delay" in options ? [0, 1, 0] : [1, 0, 0]);
      expect(store.counters.commits - before.commits).toBe(1);
    }
  });

  test("a drain claims again without a look in between, and settles what is alike in one statement a batch", async () => {
    const { hf, store } = await client(target);
    await hf.enqueueMany(Array.from({ length: 5_000 }, (_, n) => ({ job: quiet, input: n as never })));
    const before = new Map(store.counters.byName);
    const worker = hf.work([quiet], { queues: { default: 100 }, ...patient });
    await worker.idle();
    const sent = (name: string): number => (store.counters.byName.get(name) ?? 0) - (before.get(name) ?? 0);
    const claims = sent("claimLevel") + sent("claim") + sent("sweep");
    expect(
      claims,
      "5,000 jobs, at most 1,100 a claim, half of that when the buffer is refilled",
    ).toBeLessThanOrEqual(16);
    expect(sent("checkDue"), "looks").toBeLessThanOrEqual(4);
    expect(sent("doneAlike") + sent("done")).toBeLessThanOrEqual(claims + 2);
    expect(sent("end") + sent("again"), "nothing but plain ends").toBe(0);
  });

  test("an idle worker looks, and writes nothing but its heartbeat", async () => {
    const { hf, store, clock } = await client(target);
    const worker = hf.work([noop], { queues: { default: 2 }, lease: "30s", heartbeat: "10s" });
    await worker.ready;
    await worker.idle();
    const before = new Map(store.counters.byName);
    await clock.advance("20s");
    await worker.idle();
    const written = ["end", "again", "insertJobs", "openSession", "askHolder"].filter(
      (name) => store.counters.byName.get(name) !== before.get(name),
    );
    expect(written).toEqual([]);
  });

  test("polling an empty queue by lease writes nothing", async () => {
    const { hf, store, fresh } = await client(target);
    await hf.lease();
    const commits = store.counters.commits;
    for (let n = 0; n < 5; n++) expect(await hf.lease({ queues: ["none"] })).toEqual([]);
    expect(store.counters.commits).toBe(commits);
    expect(await fresh.query(`select count(*) as n from ${fresh.table("session")}`)).toEqual([{ n: 0 }]);
  });
});
