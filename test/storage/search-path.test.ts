// A search path that puts a schema before pg_catalog, in which somebody has made functions, operators, types and tables of the
// names that our statements use. Each of them throws, so that whatever reaches one fails the test.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { defineJob, type Holdfast, open } from "holdfast";
import { silentLogger } from "../../src/logger.ts";
import { isHostile, pinSession } from "../../src/storage/postgres/search-path.ts";
import { openAdmin } from "../../src/storage/open.ts";
import { cli, folder } from "../cli/support.ts";
import { type FreshStore, onPostgres } from "../support/stores.ts";

/** Everything of pg_catalog that takes and gives plain types, once more in front, with a function that throws. */
const TRAPS = `do $traps$
declare it record; made int := 0;
begin
  execute 'create schema evil';
  for it in
    select p.proname as name, pg_get_function_identity_arguments(p.oid) as args, p.proretset as many, format_type(p.prorettype, null) as gives
    from pg_proc p join pg_type t on t.oid = p.prorettype
    where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and (t.typtype <> 'p' or t.typname = 'void') and p.proargmodes is null
      and p.proname ~ '^(pg_notify|pg_advisory.*|hashtextextended|statement_timestamp|now|clock_timestamp|to_regclass|to_regnamespace|current_setting|set_config|nextval|setval|lower|upper|strpos|octet_length|length|replace|substr|lpad|to_hex|gen_random_uuid|array_to_string|pg_get_.*|has_.*_privilege|format_type|random|abs|round|floor|ceil|string_to_array|left|right|encode|md5|pg_backend_pid|pg_table_size|pg_total_relation_size)$'
      and not exists (select 1 from unnest(p.proargtypes::oid[]) a join pg_type at on at.oid = a where at.typtype = 'p')
  loop
    execute format('create function evil.%I(%s) returns %s%s language plpgsql as $f$ begin raise exception %L; end $f$',
      it.name, it.args, case when it.many then 'setof ' else '' end, it.gives, 'hijacked ' || replace(it.name, '%', '%%'));
    made := made + 1;
  end loop;
  for it in
    select o.oid, o.oprname as name, format_type(o.oprleft, null) as l, format_type(o.oprright, null) as r, format_type(o.oprresult, null) as gives
    from pg_operator o where o.oprnamespace = 'pg_catalog'::regnamespace
      and o.oprleft = any('{int2,int4,int8,text,uuid,bool,numeric,float8,timestamptz,name,oid}'::regtype[]) and o.oprright = any('{int2,int4,int8,text,uuid,bool,numeric,float8,timestamptz,name,oid}'::regtype[])
  loop
    execute format('create function evil.%I(%s, %s) returns %s language plpgsql as $f$ begin raise exception %L; end $f$', 'op_' || it.oid, it.l, it.r, it.gives, 'hijacked ' || replace(it.name, '%', '%%'));
    execute format('create operator evil.%s (function = evil.%I, leftarg = %s, rightarg = %s)', it.name, 'op_' || it.oid, it.l, it.r);
    made := made + 1;
  end loop;
  for it in select unnest(array['uuid', 'text', 'int4', 'int8', 'bool']) as of loop
    execute format('create function evil.any_step(%1$s[], %1$s) returns %1$s[] language plpgsql as $f$ begin raise exception $m$hijacked aggregate$m$; end $f$', it.of);
    execute format('create aggregate evil.array_agg(%1$s) (sfunc = evil.any_step, stype = %1$s[], initcond = ''{}'')', it.of);
    execute format('create function evil.cardinality(%1$s[]) returns int language plpgsql as $f$ begin raise exception $m$hijacked cardinality$m$; end $f$', it.of);
  end loop;
  execute 'create function evil.unnest(uuid[]) returns setof uuid language plpgsql as $f$ begin raise exception $m$hijacked unnest$m$; end $f$';
  execute 'create function evil.unnest(text[]) returns setof text language plpgsql as $f$ begin raise exception $m$hijacked unnest$m$; end $f$';
  execute 'create function evil.step(bigint, bigint) returns bigint language plpgsql as $f$ begin raise exception $m$hijacked aggregate$m$; end $f$';
  execute 'create aggregate evil.min(bigint) (sfunc = evil.step, stype = bigint, initcond = ''0'')';
  execute 'create aggregate evil.max(bigint) (sfunc = evil.step, stype = bigint, initcond = ''0'')';
  execute 'create domain evil.text as int4';
  execute 'create domain evil.uuid as int4';
  execute 'create table evil.json (a int)';
  for it in select unnest(array['job', 'ready', 'job_type', 'history', 'meta', 'session', 'claim', 'pg_class', 'pg_namespace', 'pg_inherits', 'pg_database', 'pg_roles', 'pg_stat_activity']) as name loop
    execute format('create table evil.%I (nothing int)', it.name);
  end loop;
  if made < 200 then raise exception 'only % traps', made; end if;
end $traps$`;

interface Trapped {
  readonly fresh: FreshStore;
  /** As a role whose path has the traps in front. */
  readonly url: string;
}

/** A database of its own with traps, and a role that walks into them. */
async function trapped(fresh: FreshStore): Promise<Trapped> {
  const name = `evil_${randomBytes(6).toString("hex")}`;
  const admin = new pg.Client({ connectionString: fresh.url });
  await admin.connect();
  await admin.query(`create database ${name}`);
  await admin.query(`create role ${name} login superuser`);
  await admin.query(`alter role ${name} set search_path = evil, pg_catalog`);
  onTestFinished(async () => {
    await admin.query(`drop database ${name} with (force)`);
    await admin.query(`drop role ${name}`);
    await admin.end();
  });
  const inside = new URL(fresh.url);
  inside.pathname = `/${name}`;
  const maker = new pg.Client({ connectionString: inside.href });
  await maker.connect();
  try {
    await maker.query(TRAPS);
  } finally {
    await maker.end();
  }
  inside.username = name;
  return { fresh, url: inside.href };
}

const seen: unknown[] = [];
const plain = defineJob({ name: "plain", run: (input) => void seen.push(input) });
const laned = defineJob({
  name: "laned",
  lane: () => "one",
  lanes: { concurrency: 1 },
  unique: { key: (input: number) => String(input) },
  run: (input) => void seen.push(input),
});
const workflow = defineJob({
  name: "workflow",
  run: async (_: null, ctx) => {
    const one = await ctx.step("one", () => 1);
    return one + ((await ctx.waitFor<number>("two", { timeout: "1m" })) ?? 0);
  },
});

/** A bit of everything. */
async function everything(hf: Holdfast): Promise<void> {
  const worker = hf.work([plain, laned, workflow], { queues: ["default"] });
  await worker.ready;
  const { id } = await hf.enqueue(plain, "plain");
  await hf.result(id, { timeout: "30s" });
  await hf.enqueueMany([
    { job: plain, input: "many" },
    { job: plain, input: "later", delay: "1h" },
    { job: plain, input: "keyed", key: "k" },
  ]);
  await hf.enqueue(laned, 1);
  const run = await hf.enqueue(workflow, null);
  await hf.signal("two", { data: 2 });
  expect(await hf.result(run.id, { timeout: "30s" })).toBe(3);
  await worker.idle();
  await hf.stats();
  await hf.queues.list();
  expect((await hf.jobs.list({ search: "keyed" })).jobs.length).toBeGreaterThan(0);
  await worker.stop();
  expect(await hf.jobs.count({ state: "dead" })).toBe(0);
}

/** Statements that a client sends from now on. */
function counted(client: pg.Client): string[] {
  const texts: string[] = [];
  const query = client.query.bind(client) as (...given: unknown[]) => unknown;
  client.query = ((...given: unknown[]) => {
    const [first] = given as [string | { text: string }];
    texts.push(typeof first === "string" ? first : first.text);
    return query(...given);
  }) as never;
  return texts;
}

test("[O17] a path is hostile where it names pg_catalog behind another schema, there or not", () => {
  const hostile = [
    "evil, pg_catalog",
    '"evil","pg_catalog"',
    "pg_temp, pg_catalog",
    "$user, PG_CATALOG, public",
  ];
  const safe = [
    '"$user", public',
    "",
    "pg_catalog",
    ' "pg_catalog" , evil',
    "pg_catalog, pg_temp",
    "tenant_1, public",
  ];
  expect(hostile.filter((path) => !isHostile(path))).toEqual([]);
  expect(safe.filter(isHostile)).toEqual([]);
});

onPostgres((target) => {
  describe("a hostile search path", () => {
    test("[O17] the traps catch who walks into them", async () => {
      const { url } = await trapped(await target.fresh());
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      onTestFinished(() => client.end());
      await expect(client.query("select 1 where 1 = 1")).rejects.toThrow("hijacked =");
      await expect(client.query("select pg_notify('a', 'b')")).rejects.toThrow("hijacked pg_notify");
      await expect(client.query("select 'a'::text")).rejects.toThrow("integer");
    });

    test("[O17] on connections of our own it changes nothing: migrating, working, listening, renewing", async () => {
      const { url } = await trapped(await target.fresh());
      const hf = await open(url, { logger: silentLogger });
      onTestFinished(() => hf.close());
      await everything(hf);
      await hf.prune();
    });

    test("[O17] on a pool of the user's it changes nothing, and their path stays theirs", async () => {
      const { url } = await trapped(await target.fresh());
      const pool = new pg.Pool({ connectionString: url, max: 5 });
      onTestFinished(() => pool.end());
      const hf = await open(pool, { logger: silentLogger });
      await everything(hf);
      await hf.close();
      const paths = await Promise.all(
        Array.from({ length: 5 }, async () => (await pool.query("show search_path")).rows[0] as unknown),
      );
      expect(paths).toEqual(paths.map(() => ({ search_path: "evil, pg_catalog" })));
    });

    test("[O17] in a user's transaction it changes nothing, and their path is as it was after each call", async () => {
      const { url } = await trapped(await target.fresh());
      const hf = await open(url, { logger: silentLogger });
      onTestFinished(() => hf.close());
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      onTestFinished(() => client.end());
      const path = async (): Promise<unknown> => (await client.query("show search_path")).rows[0] as unknown;
      await client.query("begin");
      await client.query("set local search_path = evil, public, pg_catalog");
      const mine = { search_path: "evil, public, pg_catalog" };
      await hf.enqueue(plain, "tx", { tx: client });
      expect(await path()).toEqual(mine);
      await Promise.all([
        hf.enqueue(plain, 1, { tx: client }),
        hf.enqueue(laned, 2, { tx: client }),
        hf.enqueue(plain, 3, { tx: client, key: "k" }),
      ]);
      expect(await path()).toEqual(mine);
      await client.query("savepoint s");
      await expect(
        hf.enqueue(plain, 3, { tx: client, after: ["01a1ee36-8ddc-7241-a466-57fddb797d43"] }),
      ).rejects.toMatchObject({ code: "AFTER_UNKNOWN" });
      expect(await path()).toEqual(mine);
      await client.query("rollback to savepoint s");
      await client.query("commit");
      expect(await path()).toEqual({ search_path: "evil, pg_catalog" });
      expect(await hf.jobs.count()).toBe(4);
      const committing = defineJob({
        name: "committing",
        run: async (_: null, ctx) => {
          await client.query("begin");
          await ctx.commit(client, "done");
          await client.query("commit");
        },
      });
      const worker = hf.work([committing], { queues: ["default"] });
      const { id } = await hf.enqueue(committing, null);
      expect(await hf.result(id, { timeout: "30s" })).toBe("done");
      await worker.stop();
    });

    test("[O17] nor where pg_catalog comes first, but functions for just our types, and types, are elsewhere", async () => {
      const { url } = await trapped(await target.fresh());
      const ordinary = new URL(url);
      ordinary.searchParams.set("options", "-c search_path=public,evil");
      const client = new pg.Client({ connectionString: ordinary.href });
      await client.connect();
      onTestFinished(() => client.end());
      await expect(client.query("select unnest(array['a'])")).rejects.toThrow("hijacked unnest");
      const pool = new pg.Pool({ connectionString: ordinary.href, max: 5 });
      onTestFinished(() => pool.end());
      const ours = await open(ordinary.href, { logger: silentLogger });
      await everything(ours);
      await ours.close();
      const theirs = await open(pool, { logger: silentLogger });
      onTestFinished(() => theirs.close());
      await everything(theirs);
      for (const name of ["text", "uuid", "json", "bool", "float8"])
        await client.query(`create temporary table "${name}" (a int)`);
      await client.query("begin");
      await theirs.enqueueMany(
        [
          { job: plain, input: "tx" },
          { job: laned, input: 7 },
          { job: plain, input: "tx", key: "tx" },
          { job: "unheard-of", input: 1, lane: "new" },
        ],
        { tx: client },
      );
      await client.query("commit");
      expect(await theirs.jobs.count({ state: "ready" })).toBe(4);
    });

    test("[O17] the rows that raw SQL inserts under it are jobs", async () => {
      const { url } = await trapped(await target.fresh());
      const hf = await open(url, { logger: silentLogger });
      onTestFinished(() => hf.close());
      const client = new pg.Client({ connectionString: url });
      await client.connect();
      onTestFinished(() => client.end());
      await client.query("insert into holdfast.enqueue (name, lane) values ('raw', 'a')");
      const [job] = (await hf.jobs.list()).jobs;
      expect(job).toMatchObject({ name: "raw", lane: "a", state: "ready" });
      await hf.jobs.cancel(job!.id);
      await client.query("insert into holdfast.enqueue (name) values ('raw')");
      const raw = (await hf.jobs.list({ state: "ready" })).jobs[0]!;
      await hf.jobs.cancel(raw.id);
      await client.query("insert into holdfast.retry (id) values ($1)", [raw.id]);
      expect(await hf.jobs.get(raw.id)).toMatchObject({ state: "ready" });
    });

    test("[O17] an operator's hands are not led by it: status, drift, pages, freezing", async () => {
      const { url } = await trapped(await target.fresh());
      await (await open(url, { logger: silentLogger })).close();
      const admin = await openAdmin(url, "holdfast");
      onTestFinished(() => admin.close());
      expect((await admin.status()).pending).toEqual([]);
      expect(await admin.drift()).toEqual([]);
      const tables = await admin.tables();
      for (const table of tables) {
        expect(await admin.count(table.name)).toBeGreaterThanOrEqual(0);
        await admin.page(table, null, 10);
      }
      await admin.raiseCounters(5);
      expect(await admin.lastToken()).toBe(5);
      await admin.freeze("moved");
      await admin.thaw();
      await admin.laneWakeups();
      await admin.unhold("none");
    });
  });

  test("[O17] holdfast doctor and move, there and back, are not led by a hostile path", async () => {
    const { url } = await trapped(await target.fresh());
    const home = `sqlite:${join(folder("evil"), "home.db")}`;
    const hf = await open(home, { logger: silentLogger });
    const { id } = await hf.enqueue(laned, 1);
    await hf.close();
    const there = await cli(["move", "--url", home, url, "--force"]);
    expect([there.code, there.err]).toMatchObject([0, ""]);
    const doctor = await cli(["doctor", "--url", url, "--json"]);
    expect(doctor.err).toBe("");
    expect(doctor.json<{ problems?: unknown }>()).toBeDefined();
    const moved = await open(url, { logger: silentLogger });
    expect(await moved.jobs.get(id)).toMatchObject({ name: "laned", lane: "one", state: "ready" });
    await moved.close();
    const back = `sqlite:${join(folder("evil"), "back.db")}`;
    expect((await cli(["move", "--url", url, back, "--force"])).code).toBe(0);
  });

  test("[O17] a connection of our own is pinned, unless another process answers, as behind a pooler", async () => {
    const fresh = await target.fresh();
    const client = new pg.Client({ connectionString: fresh.url });
    await client.connect();
    onTestFinished(() => client.end());
    const send = async (text: string, values: readonly unknown[]) =>
      (await client.query<Record<string, unknown>>(text, [...values])).rows;
    const path = async (): Promise<unknown> => (await client.query("show search_path")).rows[0] as unknown;
    const behind = { processID: 1 } as never;
    expect(await pinSession(behind, send, true)).toBe(false);
    expect(await pinSession(client as never, send, false)).toBe(false);
    expect(await path()).toEqual({ search_path: '"$user", public' });
    await client.query("set search_path = evil, pg_catalog");
    expect(await pinSession(behind, send, true)).toBe(true);
    expect(await path()).toEqual({ search_path: "evil, pg_catalog" });
    expect(await pinSession(client as never, send, true)).toBe(false);
    expect(await path()).toEqual({ search_path: "pg_catalog, pg_temp" });
  });

  test("[O17] in an ordinary transaction an enqueue sends the job and its wake-up, and nothing else", async () => {
    const fresh = await target.migrated();
    const hf = await open(fresh.url, { ...fresh.options, logger: silentLogger });
    onTestFinished(() => hf.close());
    const client = new pg.Client({ connectionString: fresh.url });
    await client.connect();
    onTestFinished(() => client.end());
    await client.query("begin");
    await hf.enqueue(plain, 1, { tx: client });
    const texts = counted(client);
    await hf.enqueue(plain, 2, { tx: client });
    expect(texts).toHaveLength(2);
    expect(texts[0]).toContain("insert into");
    expect(texts[1]).toContain("pg_notify");
    await client.query("commit");
  });
});
