/** Postgres as its catalogue and statistics describe it. Reads only. Beside sqlite/inspect.ts. */
import type { Row } from "../sql/catalogue.ts";
import type { Inspection } from "../store.ts";

type Send = (text: string, values?: readonly unknown[]) => Promise<Row[]>;

const maySeeWal = "select has_function_privilege('pg_ls_waldir()', 'execute') as may";
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
       (select s.n_dead_tup from pg_stat_user_tables s where s.schemaname = $1 and s.relname = 'ready') as dead_rows,
       (select s.n_live_tup from pg_stat_user_tables s where s.schemaname = $1 and s.relname = 'ready') as live_rows,
       (select (extract(epoch from clock_timestamp() - min(a.xact_start)) * 1000)::bigint from pg_stat_activity a
         where a.xact_start is not null and a.pid <> pg_backend_pid() and a.backend_type = 'client backend') as oldest_transaction_ms,
       (select count(*)::int from pg_stat_activity a where a.backend_type = 'client backend') as connections,
       ${seesWal ? `(${walBytes})` : "null"} as wal_bytes,
       array_to_json(array(select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n on n.oid = c.relnamespace
         where n.nspname = $1 and not i.indisvalid))::text as invalid_indexes`,
    [schema],
  );
  const number = (column: string): number | null => {
    const value = row[column];
    return value === null || value === undefined ? null : Number(value);
  };
  const synchronousCommit = String(row["synchronous_commit"]);
  const fsync = String(row["fsync"]);
  return {
    dialect: "postgres",
    version: String(row["version"]),
    sizeBytes: number("size_bytes") ?? 0,
    walBytes: number("wal_bytes"),
    deadRows: number("dead_rows"),
    liveRows: number("live_rows"),
    oldestTransactionMs: Math.max(0, number("oldest_transaction_ms") ?? 0),
    connections: number("connections"),
    maxConnections: number("max_connections"),
    durable: synchronousCommit !== "off" && fsync !== "off",
    durability: fsync === "off" ? "fsync = off" : `synchronous_commit = ${synchronousCommit}`,
    networkFileSystem: null,
    diskFreeBytes: null,
    invalidIndexes: JSON.parse(String(row["invalid_indexes"] ?? "[]")) as string[],
  };
}
