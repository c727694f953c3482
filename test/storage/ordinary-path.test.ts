// O17 on an ordinary path ("$user", public): pg_catalog comes first, but a function or operator of another schema that fits the types of
// a call better is preferred. A role that may create in that schema (every role in `public` before Postgres 15) could take a statement over.
// So every name that our statements use on a user's connection must have an exact match in pg_catalog, or name its schema.
import { randomBytes } from "node:crypto";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { open } from "holdfast";
import { postgresTables } from "../../src/storage/postgres/driver.ts";
import { qualified } from "../../src/storage/postgres/search-path.ts";
import { statements } from "../../src/storage/postgres/statements/jobs.ts";
import { parse, type StatementName, STATEMENTS } from "../../src/storage/catalogue.ts";
import { textsOf } from "./explain.ts";
import { onPostgres } from "../support/stores.ts";

const TYPES = ["int2", "int4", "int8", "text", "uuid", "bool", "float8", "json", "numeric"];
const ALL_TYPES = [
  ...TYPES,
  ...TYPES.filter((type) => !["json", "numeric"].includes(type)).map((type) => `${type}[]`),
];

const quote = (text: string): string => `'${text}'`;

/** Functions and operators in `public`, for every combination of types for which pg_catalog has none of their name. */
const traps = (functions: string, operators: string, types: string): string => `do $traps$
declare it record; made int := 0;
begin
  for it in
    select distinct p.proname as name, p.prokind as kind, a.name as a, b.name as b
    from (select distinct proname, prokind, pronargs from pg_proc where pronamespace = 'pg_catalog'::regnamespace and proname = any(${quote(functions)}::text[])) p
    cross join pg_catalog.unnest(${quote(types)}::text[]) as a (name)
    left join pg_catalog.unnest(${quote(types)}::text[]) as b (name) on p.pronargs = 2
    where p.prokind in ('f', 'a') and (p.pronargs = 1 or (p.pronargs = 2 and p.prokind = 'f'))
      and not exists (select 1 from pg_proc e where e.pronamespace = 'pg_catalog'::regnamespace and e.proname = p.proname
        and e.proargtypes::oid[] = pg_catalog.array_remove(array[a.name::regtype::oid, b.name::regtype::oid], null))
  loop
    if it.kind = 'f' then
      execute pg_catalog.format('create function public.%I(%s) returns int language sql as ''select 1''', it.name, pg_catalog.concat_ws(',', it.a, it.b));
    else
      execute pg_catalog.format('create function public.%I(int, %s) returns int language sql as ''select 1''', 'step_' || it.name, it.a);
      execute pg_catalog.format('create aggregate public.%I(%s) (sfunc = public.%I, stype = int)', it.name, it.a, 'step_' || it.name);
    end if;
    made := made + 1;
  end loop;
  for it in
    select o.name, l.name as l, r.name as r, o.name in ('=', '<>', '<=', '>=', '<', '>', '~', '<@', '@>') as compares,
      pg_catalog.row_number() over () as n
    from pg_catalog.unnest(${quote(operators)}::text[]) as o (name)
    cross join pg_catalog.unnest(${quote(types)}::text[]) as l (name) cross join pg_catalog.unnest(${quote(types)}::text[]) as r (name)
    where not exists (select 1 from pg_operator e where e.oprnamespace = 'pg_catalog'::regnamespace and e.oprname = o.name
      and e.oprleft = l.name::regtype and e.oprright = r.name::regtype)
  loop
    execute pg_catalog.format('create function public.%I(%s, %s) returns %s language sql as ''select null::%4$s''', pg_catalog.format('op_%s', it.n), it.l, it.r,
      case when it.compares then 'bool' else 'int8' end);
    execute pg_catalog.format('create operator public.%s (function = public.%I, leftarg = %s, rightarg = %s)', it.name, pg_catalog.format('op_%s', it.n), it.l, it.r);
    made := made + 1;
  end loop;
  if made < 3000 then raise exception 'only % traps', made; end if;
end $traps$`;

/** The statement as it is sent: each parameter has one number. */
function numbered(entry: string): string {
  const { pieces, slots } = parse(entry);
  const numbers = new Map<string, number>();
  const text = slots.map(({ param, column }, i) => {
    const key = `${param}.${column ?? ""}`;
    if (!numbers.has(key)) numbers.set(key, numbers.size + 1);
    return `$${numbers.get(key)}${pieces[i + 1] ?? ""}`;
  });
  return qualified(`${pieces[0] ?? ""}${text.join("")}`);
}

onPostgres((target) => {
  test("[O17] no statement uses a function or operator of `public`, whatever there is in it", async () => {
    const fresh = await target.fresh();
    const hf = await open(fresh.url, fresh.options);
    onTestFinished(() => hf.close());
    const database = `ordinary_${randomBytes(6).toString("hex")}`;
    await fresh.query(`create database ${database}`);
    const url = new URL(fresh.url);
    url.pathname = `/${database}`;
    await (await open(url.href)).close();
    const client = new pg.Client(url.href);
    await client.connect();
    onTestFinished(async () => {
      await client.end();
      await fresh.query(`drop database ${database}`);
    });

    const catalogue = statements(postgresTables("holdfast"));
    const all = Object.values(catalogue).flatMap(textsOf).join("\n");
    const functions = new Set([...all.matchAll(/(?<![\w."])([a-z_0-9]+)\(/g)].map(([, name]) => name!));
    const operators = new Set(
      [...all.matchAll(/ (\|\||<@|@>|->>|->|#>>|#>|\^|&|<<|\+|-|\*|\/|%|=|<>|<=|>=|<|>|~) /g)].map(
        ([, name]) => name!,
      ),
    );
    const list = (names: Iterable<string>): string => `{${[...names].map((name) => `"${name}"`).join(",")}}`;
    await client.query(traps(list(functions), list(operators), list(ALL_TYPES)));

    const taken: string[] = [];
    for (const name of Object.keys(STATEMENTS) as StatementName[]) {
      const text = numbered(textsOf(catalogue[name]).join(""));
      await client.query("begin");
      await client.query(`prepare it as ${text}`);
      const { rows: prepared } = await client.query<{ types: string }>(
        "select pg_catalog.array_to_string(parameter_types::pg_catalog.text[], ',') as types from pg_catalog.pg_prepared_statements",
      );
      await client.query("deallocate it");
      const body = text.replaceAll(/--.*$/gm, "");
      await client.query(
        `create function public.probe(${prepared[0]!.types}) returns void begin atomic ${body}; select null::void; end`,
      );
      const { rows } = await client.query<{ what: string }>(
        `select distinct pg_catalog.pg_describe_object(d.refclassid, d.refobjid, 0) as what from pg_catalog.pg_depend d
         join pg_catalog.pg_proc p on p.oid operator(pg_catalog.=) d.objid
         where d.classid operator(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass and p.proname operator(pg_catalog.=) 'probe'
           and (d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_proc'::pg_catalog.regclass or d.refclassid operator(pg_catalog.=) 'pg_catalog.pg_operator'::pg_catalog.regclass)`,
      );
      const theirs = rows.map(({ what }) => what);
      if (theirs.length > 0) taken.push(`${name}: ${theirs.join(", ")}`);
      await client.query("rollback");
    }
    expect(taken).toEqual([]);
  });
});
