/**
 * The search path: which functions, operators and types the names in our statements mean.
 *
 *   our own connection, to the server itself ─▶ pinned for the session
 *   any other, and the path is hostile ────────▶ pinned for each transaction, and put back in a user's own
 *   any other ─────────────────────────────────▶ statements with the few names qualified that are not safe there
 *
 * Postgres looks into `pg_catalog` first, unless the path names it behind another schema: then whoever may create there decides
 * what `=` means. Tables do not depend on the path, because every statement names their schema.
 *
 * Invariants: a path that is not ours (a user's session, a server's connection behind a pooler, which the next client gets) is
 * changed by `set local` alone; the statements here name the schema of everything they use.
 */
import type { PgClient } from "./pg.ts";

const SAFE = "pg_catalog, pg_temp";

/** Behind `begin`. */
export const PIN = `set local search_path to ${SAFE}`;

/** Pins a user's own transaction for one statement, and puts its path back. */
export const PIN_THEIRS = `select pg_catalog.set_config('holdfast.search_path', pg_catalog.current_setting('search_path'), true), pg_catalog.set_config('search_path', '${SAFE}', true)`;
export const PUT_BACK =
  "select pg_catalog.set_config('search_path', pg_catalog.current_setting('holdfast.search_path'), true)";

/** Functions of any type, which one of another schema for just our types would be preferred to. */
const OF_ANY_TYPE =
  /(?<![\w.])(count|array_agg|json_agg|json_build_object|num_nonnulls|cardinality|array_to_json)\(/g;
/** Of several arguments it is the grammar's own, and may not be qualified. */
const UNNEST_ONE = /(?<![\w.])unnest\(([^(),]+)\)/g;
/** Types that are no keywords of the grammar: a temporary table of the name would be found first. */
const TYPES = /::(text|uuid|bool|json|float8|regclass)\b/g;

/**
 * A statement with the schema of those names that mean something else even where `pg_catalog` comes first. With it, a statement
 * may run on the connection of a user whose path is an ordinary one.
 *
 * @example
 * qualified("select count(*) from unnest($1::uuid[])"); // "select pg_catalog.count(*) from pg_catalog.unnest($1::pg_catalog.uuid[])"
 */
export function qualified(statement: string): string {
  return statement
    .replaceAll(OF_ANY_TYPE, "pg_catalog.$1(")
    .replaceAll(UNNEST_ONE, "pg_catalog.unnest($1)")
    .replaceAll(TYPES, "::pg_catalog.$1");
}

/**
 * Whether a path names `pg_catalog` behind another schema. A schema that does not exist counts: somebody may make it.
 *
 * @example
 * isHostile('"$user", public'); // false
 * isHostile("app, pg_catalog"); // true
 */
export function isHostile(path: string): boolean {
  return /pg_catalog/i.test(path) && !/^\s*"?pg_catalog"?\s*(?:,|$)/i.test(path);
}

/**
 * Pins a connection of our own where the server itself answers: its process is the one that the connection was told of. A
 * pooler has numbers of its own, and what is set there would reach other clients. True: the path is hostile and not pinned.
 *
 * @example
 * hostile.set(client, await pinSession(client, send, owned));
 */
export async function pinSession(
  client: PgClient,
  send: (text: string, values: readonly unknown[]) => Promise<readonly Record<string, unknown>[]>,
  own: boolean,
): Promise<boolean> {
  const [row] = await send(
    `select pg_catalog.current_setting('search_path') as path, case when pg_catalog.pg_backend_pid() operator(pg_catalog.=) $1::pg_catalog.int4
       then pg_catalog.set_config('search_path', '${SAFE}', false) end as pinned`,
    [own ? (client.processID ?? 0) : 0],
  );
  return (row?.["pinned"] ?? null) === null && isHostile(String(row?.["path"]));
}
