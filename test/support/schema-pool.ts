// Postgres schemas that tests hand on to each other. Making one costs the server a quarter of a second (some 250 relations) and
// dropping it a quarter of that again; emptying one costs a twentieth. So a test that does not ask for an untouched
// schema gets one that another has left, also one of another file: the list of them is a table of the server's.
//
//   take ──▶ used ──give──▶ emptied: free   (same shape as when it was made: tables, columns, rights, no statistics)
//     ▲                └──▶ dropped         (a test has changed it)
//     └── free, still empty, and nobody is connected: each schema has a role of its own, which its connections name
//
// What a test could see of the one before is thereby rows alone, and those are gone: sequences start again, days (partitions)
// that have come since are dropped, and the instance has a new name.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { openStore } from "../../src/storage/open.ts";

/** Run once by each server. Its own objects are in a schema of its own, `handed_on`. */
export const SCHEMA_POOL = `
  create schema handed_on;
  create table handed_on.store (name text primary key, days text[] not null, shape text not null, free bool not null);

  -- Everything about a schema but its rows. Truncating changes none of it.
  create function handed_on.shape(store text) returns text language plpgsql as $$
  declare
    space oid := to_regnamespace(quote_ident(store));
    applied text;
    shape text;
  begin
    execute format('select string_agg(m::text, '','' order by version) from %I.migration m', store) into applied;
    with relation as (select * from pg_class c where c.relnamespace = space)
    select concat_ws(' ', md5(applied),
      (select sum(hashtextextended(concat_ws(' ', oid, relname, relnatts, relkind, relowner, reloptions, relacl, relrowsecurity, relhastriggers), 0)) from relation),
      (select sum(hashtextextended(concat_ws(' ', a.attrelid, a.attnum, a.attname, a.atttypid, a.attnotnull, a.attstorage, a.atthasdef, a.attacl), 0))
        from pg_attribute a join relation on relation.oid = a.attrelid where a.attnum > 0),
      (select sum(hashtextextended(concat_ws(' ', oid, proname, prosrc, proacl), 0)) from pg_proc where pronamespace = space),
      (select sum(hashtextextended(concat_ws(' ', oid, conname, contype), 0)) from pg_constraint where connamespace = space),
      (select sum(hashtextextended(concat_ws(' ', t.oid, t.tgname, t.tgenabled), 0)) from pg_trigger t join relation on relation.oid = t.tgrelid),
      (select count(*) from pg_statistic s join relation on relation.oid = s.starelid),
      (select concat_ws(' ', nspowner, nspacl) from pg_namespace where oid = space)) into shape;
    return shape;
  end $$;

  create function handed_on.days(store text) returns text[] language sql as $$
    select coalesce(array_agg(relname::text), '{}') from pg_class
    where relnamespace = to_regnamespace(quote_ident(store)) and relispartition and relkind = 'r' and relname ~ '_[0-9]{8}$'
  $$;

  -- Tables that have, or had, rows. Of this schema alone: to ask for a size is to wait for whoever has locked the table.
  create function handed_on.filled(store text, variadic but text[]) returns text language sql as $$
    with own as materialized (
      select oid, relname from pg_class
      where relnamespace = to_regnamespace(quote_ident(store)) and relkind = 'r' and relname <> all(but))
    select string_agg(format('%I.%I', store, relname), ', ') from own where pg_relation_size(oid) > 0
  $$;

  create function handed_on.register(store text) returns void language sql as $$
    insert into handed_on.store values (store, handed_on.days(store), handed_on.shape(store), false)
  $$;

  create function handed_on.discard(store text) returns void language plpgsql as $$
  begin
    execute format('drop schema if exists %I cascade', store);
    delete from handed_on.store s where s.name = store;
  end $$;

  create function handed_on.take() returns text language plpgsql as $$
  declare
    store text;
  begin
    loop
      update handed_on.store s set free = false where s.name = (
        select f.name from handed_on.store f
        where f.free and not exists (select 1 from pg_stat_activity a where a.usename = f.name)
        limit 1 for update skip locked
      ) returning s.name into store;
      if store is null or handed_on.filled(store, 'migration', 'meta') is null then
        return store;
      end if;
      perform handed_on.discard(store);
    end loop;
  end $$;

  create function handed_on.give(store text) returns void language plpgsql as $$
  declare
    made handed_on.store;
    extra text;
    rows text;
  begin
    select * into made from handed_on.store s where s.name = store;
    if to_regclass(format('%I.migration', store)) is null then
      perform handed_on.discard(store);
      return;
    end if;
    foreach extra in array handed_on.days(store) loop
      if extra <> all(made.days) then
        execute format('drop table %I.%I', store, extra);
      end if;
    end loop;
    if handed_on.shape(store) is distinct from made.shape then
      perform handed_on.discard(store);
      return;
    end if;
    rows := handed_on.filled(store, 'migration');
    if rows is not null then
      execute 'truncate ' || rows;
    end if;
    perform setval(q.seqrelid, q.seqstart, false) from pg_sequence q join pg_class c on c.oid = q.seqrelid
      where c.relnamespace = to_regnamespace(quote_ident(store));
    execute format('insert into %I.meta values (''instance'', gen_random_uuid()::text)', store);
    update handed_on.store s set free = true where s.name = store;
  end $$;
`;

/** This process's own connection to each server. */
const keepers = new Map<string, Promise<pg.Client>>();

function keeper(url: string): Promise<pg.Client> {
  let kept = keepers.get(url);
  if (kept === undefined) keepers.set(url, (kept = keep(url)));
  return kept;
}

async function keep(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => keepers.delete(url));
  await client.connect();
  // A suite that leaves a transaction open should hear of it, not hang.
  await client.query("set lock_timeout = '5s'");
  unref(client);
  return client;
}

/** A process may end while it is open. node-postgres can do this; its types do not say so. */
function unref(client: pg.Client & { unref?(): void }): void {
  client.unref?.();
}

export interface Taken {
  readonly schema: string;
  /** The server's, by the schema's own role. */
  readonly url: string;
  readonly give: () => Promise<void>;
}

/** A migrated schema without a row of Holdfast's. */
export async function takeSchema(server: string): Promise<Taken> {
  const side = await keeper(server);
  const { rows } = await side.query<{ name: string | null }>("select handed_on.take() as name");
  const schema = rows[0]?.name ?? `t_${randomBytes(6).toString("hex")}`;
  const url = as(server, schema);
  if (schema !== rows[0]?.name) {
    await side.query(`create role "${schema}" login superuser`);
    await (await openStore(url, { schema })).close();
    await side.query("select handed_on.register($1)", [schema]);
  }
  const give = async (tries = 3): Promise<void> => {
    try {
      await (await keeper(server)).query("select handed_on.give($1)", [schema]);
    } catch (error) {
      // A statement of the closed client may still run on the server.
      if ((error as { code?: unknown }).code === "40P01" && tries > 1) return give(tries - 1);
      throw new Error(`Could not empty schema ${schema}: does a test leave a transaction open?`, {
        cause: error,
      });
    }
  };
  return { schema, url, give: () => give() };
}

function as(server: string, role: string): string {
  const url = new URL(server);
  url.username = role;
  return url.href;
}
