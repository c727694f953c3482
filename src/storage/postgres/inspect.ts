/** Postgres as its catalogue and statistics describe it. Reads only. Beside storage/sqlite/inspect.ts. */
import { idTime } from "../../values/id.ts";
import type { Row } from "../catalogue.ts";
import type { Inspection } from "../driver.ts";

type Send = (text: string, values?: readonly unknown[]) => Promise<Row[]>;

const maySeeWal = "select has_function_privilege('pg_ls_waldir()', 'execute') as may";
const NOW = "(extract(epoch from statement_timestamp()) * 1000.0)::bigint";
const walBytes = "select coalesce(sum(size), 0)::bigint from pg_ls_waldir()";

/** Only members of pg_monitor may look into the WAL's directory: asked once. */
export class Inspector {
  readonly #send: Send;
  readonly #schema: string;
  #seesWal: boolean | undefined;

  constructor(send: Send, schema: string) {
    this.#send = send;
    this.#schema = schema;
  }

  async inspect(): Promise<Inspection> {
    this.#seesWal ??= (await this.#send(maySeeWal))[0]?.["may"] === true;
    return inspect(this.#send, this.#schema, this.#seesWal);
  }
}

async function inspect(send: Send, schema: string, seesWal: boolean): Promise<Inspection> {
  const [row = {}] = await send(
    `select current_setting('server_version') as version, current_setting('synchronous_commit') as synchronous_commit,
       current_setting('fsync') as fsync, current_setting('max_connections')::int as max_connections,
       (select coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint from pg_class c join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and c.relkind in ('r', 'm', 'S')) as size_bytes,
       pg_size_bytes(current_setting('max_wal_size')) as max_wal, pg_size_bytes(current_setting('wal_keep_size')) as wal_keep,
       (select row_to_json(k)::text from (select s.slot_name as name, s.active, pg_wal_lsn_diff(case when pg_is_in_recovery()
           then pg_last_wal_replay_lsn() else pg_current_wal_lsn() end, s.restart_lsn)::bigint as bytes
         from pg_replication_slots s where s.restart_lsn is not null order by 3 desc limit 1) k) as slot,
       (select coalesce(json_agg(d), '[]')::text from (select regexp_replace(s.relname, '^(job|history|step)_([0-9]+|rest)$', '\\1') as name,
           sum(s.n_dead_tup)::bigint as dead, sum(s.n_live_tup)::bigint as live
         from pg_stat_user_tables s where s.schemaname = $1 group by 1 order by 2 desc limit 5) d) as tables,
       (select row_to_json(o)::text from (select a.pid, a.application_name as application, a.state from pg_stat_activity a
         where a.xact_start is not null and a.pid <> pg_backend_pid() and a.backend_type = 'client backend'
         order by a.xact_start limit 1) o) as oldest,
       (select s.n_dead_tup from pg_stat_user_tables s where s.schemaname = $1 and s.relname = 'ready') as dead_rows,
       (select s.n_live_tup from pg_stat_user_tables s where s.schemaname = $1 and s.relname = 'ready') as live_rows,
       (select (extract(epoch from clock_timestamp() - min(a.xact_start)) * 1000.0)::bigint from pg_stat_activity a
         where a.xact_start is not null and a.pid <> pg_backend_pid() and a.backend_type = 'client backend') as oldest_transaction_ms,
       (select max(age(a.backend_xmin)) from pg_stat_activity a where a.pid <> pg_backend_pid()) as xmin_age,
       (select count(*)::int from pg_stat_activity a where a.backend_type = 'client backend') as connections,
       ${seesWal ? `(${walBytes})` : "null"} as wal_bytes,
       array_to_json(array(select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and not i.indisvalid))::text as invalid_indexes,
       ${NOW} as now,
       (select row_to_json(p)::text from (select count(*)::int as count, max(substring(pg_get_expr(c.relpartbound, c.oid) from 'TO \\(''(.{36})''\\)')) as until
         from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass($2)) p) as partitions,
       (select count(*)::int from (select 1 from "${schema}".job_rest r
         where r.id >= (lpad(to_hex(${NOW} / 86400000 * 86400000), 12, '0') || '70008000000000000000')::uuid limit 10001) x) as rest`,
    [schema, `"${schema}"."job"`],
  );
  const number = (column: string): number | null => {
    const value = row[column];
    return value === null || value === undefined ? null : Number(value);
  };
  const parsed = (column: string): unknown => {
    const value = row[column];
    return typeof value === "string" ? JSON.parse(value) : null;
  };
  const oldest = parsed("oldest") as { pid: number; application: string | null; state: string | null } | null;
  // The default partition is one of them.
  const { count, until } = parsed("partitions") as { count: number; until: string | null };
  const now = number("now") ?? 0;
  const synchronousCommit = String(row["synchronous_commit"]);
  const fsync = String(row["fsync"]);
  return {
    dialect: "postgres",
    version: String(row["version"]),
    sizeBytes: number("size_bytes") ?? 0,
    versionFault: null, // a server that is too old is not opened
    freeBytes: null,
    walBytes: number("wal_bytes"),
    maxWalBytes: (number("max_wal") ?? 0) + (number("wal_keep") ?? 0),
    slot: parsed("slot") as Inspection["slot"],
    deadRows: number("dead_rows"),
    liveRows: number("live_rows"),
    tables: (parsed("tables") ?? []) as Inspection["tables"],
    oldestTransaction:
      oldest === null
        ? null
        : {
            pid: oldest.pid,
            text: [oldest.application ?? "", `pid ${oldest.pid}`, oldest.state ?? ""]
              .filter((part) => part !== "")
              .join(", "),
          },
    oldestTransactionMs: Math.max(0, number("oldest_transaction_ms") ?? 0),
    xminAge: number("xmin_age"),
    connections: number("connections"),
    maxConnections: number("max_connections"),
    durable: synchronousCommit !== "off" && fsync !== "off",
    durability:
      fsync === "off"
        ? `fsync = off${synchronousCommit === "off" ? ", synchronous_commit = off" : ""}`
        : `synchronous_commit = ${synchronousCommit}`,
    networkFileSystem: null,
    diskFreeBytes: null,
    invalidIndexes: JSON.parse(String(row["invalid_indexes"] ?? "[]")) as string[],
    partitions: {
      aheadMs: until === null ? 0 : idTime(until) - now,
      count: Math.max(0, count - 1),
      rest: number("rest") ?? 0,
    },
  };
}
