/**
 * node-postgres, loaded when first needed, and the little of it that we use. The only file that imports `pg`.
 *
 * `pg` is an optional peer: whoever runs on SQLite never installs it.
 */
import { systemClock } from "../../clock.ts";
import { StoreError } from "../../errors.ts";

export interface PgQuery {
  readonly text: string;
  readonly values?: readonly unknown[];
  readonly name?: string;
  readonly types?: unknown;
}
export interface PgResult {
  readonly rows: Record<string, unknown>[];
}
export interface PgClient {
  query(query: string | PgQuery, values?: readonly unknown[]): Promise<PgResult>;
  on(event: "error" | "end", listener: (error?: unknown) => void): unknown;
  on(event: "notification", listener: (message: { payload?: string }) => void): unknown;
  removeAllListeners(): unknown;
  connect(done?: (error?: unknown) => void): Promise<unknown>;
  end(): Promise<void>;
  /** Since pg 8.23: I(dle), in T(ransaction), E(rror in one); null before the server has said. */
  getTransactionStatus?(): string | null;
  /** The server's process, as it was told at the start; absent in pg's native variant. */
  readonly processID?: number | null;
  /** pg's own, and public by long use; absent in its native variant. */
  readonly connection?: { readonly stream?: { destroy(): void; readonly destroyed?: boolean } };
  readonly host?: string;
  readonly port?: number;
  readonly ssl?: unknown;
  readonly sslNegotiation?: string;
  /** The key that allows to cancel the statement of its process. */
  readonly secretKey?: number | null;
}
export interface PgPoolClient extends PgClient {
  release(error?: Error | boolean): void;
}
export interface PgPool {
  connect(): Promise<PgPoolClient>;
  on(event: "connect" | "remove", listener: (client: PgClient) => void): unknown;
  on(event: "error", listener: (error: unknown, client?: PgClient) => void): unknown;
  end(): Promise<void>;
  /** `end` was called. */
  readonly ending?: boolean;
  readonly totalCount?: number;
  readonly idleCount?: number;
  readonly waitingCount?: number;
  readonly options?: Record<string, unknown>;
}

/** A connection below the client: bytes and messages. */
interface PgConnection {
  readonly stream: { destroy(): void };
  connect(port: number | string, host?: string): void;
  requestSsl(): void;
  cancel(processID: number, secretKey: number): void;
  on(event: "connect" | "sslconnect" | "end" | "error", listener: () => void): unknown;
}

export interface Pg {
  readonly Connection: new (config: Record<string, unknown>) => PgConnection;
  readonly Pool: new (config: Record<string, unknown>) => PgPool;
  readonly Client: new (config: Record<string, unknown>) => PgClient;
  readonly types: { getTypeParser(oid: number, format?: string): (text: string) => unknown };
}

export async function loadPg(): Promise<Pg> {
  try {
    const module = (await import("pg")) as unknown as { default: Pg };
    return module.default;
  } catch (cause) {
    throw new StoreError(
      "DRIVER_MISSING",
      "Postgres needs the `pg` package, which is not installed. Run: npm install pg",
      { cause },
    );
  }
}

/**
 * Ends a connection whose other side may never answer. `end()` alone says goodbye on an idle connection and waits for
 * the socket to close, which a half-open one does not do for many minutes: it kept the process from exiting.
 */
export function cutOff(client: PgClient): void {
  client.connection?.stream?.destroy();
}

/**
 * Asks the server (or the pooler) over a connection of its own to cancel what this client's statement does. Best effort: resolves
 * when the request was taken, refused or not answered in time; never rejects. The client must stay connected meanwhile: behind a
 * pooler its key names whatever server works for it, and after its end nobody. pg's native variant tells no key.
 */
export async function cancelStatement(client: PgClient, withinMs: number): Promise<void> {
  const { processID, secretKey, host, port, ssl, sslNegotiation } = client;
  if (typeof processID !== "number" || typeof secretKey !== "number" || port === undefined) return;
  const { Connection } = await loadPg();
  const connection = new Connection({ ssl, sslNegotiation });
  const cancel = (): void => connection.cancel(processID, secretKey);
  await new Promise<void>((resolve) => {
    const timer = systemClock.after(withinMs, resolve);
    const over = (): void => {
      timer.cancel();
      resolve();
    };
    connection.on("error", over);
    connection.on("end", over); // the server's only answer
    connection.on("connect", () => {
      if (!ssl) cancel();
      else if (sslNegotiation !== "direct") connection.requestSsl();
    });
    connection.on("sslconnect", cancel);
    if (host?.startsWith("/") === true) connection.connect(`${host}/.s.PGSQL.${port}`);
    else connection.connect(port, host);
  });
  connection.stream.destroy();
}

const INT8 = 20;

/** bigint as a number: ours are milliseconds, tokens and counts, all below 2^53. */
export function rowTypes(pg: Pg): { getTypeParser(oid: number, format?: string): (text: string) => unknown } {
  return { getTypeParser: (oid, format) => (oid === INT8 ? Number : pg.types.getTypeParser(oid, format)) };
}

/** Whether this is a node-postgres pool that the user owns. */
export function isPool(value: unknown): value is PgPool {
  if (typeof value !== "object" || value === null) return false;
  const pool = value as Record<string, unknown>;
  return (
    typeof pool["connect"] === "function" &&
    typeof pool["end"] === "function" &&
    "totalCount" in pool &&
    "idleCount" in pool
  );
}

/** Whether this is a node-postgres client, pooled or not. */
export function isClient(value: unknown): value is PgClient {
  if (typeof value !== "object" || value === null) return false;
  const client = value as Record<string, unknown>;
  return (
    typeof client["query"] === "function" && typeof client["on"] === "function" && !("totalCount" in client)
  );
}

/** Whether this client is pg's variant over libpq. */
export function isNative(client: PgClient): boolean {
  return "native" in client;
}

/** Whether the server's last word was that no transaction is open; false where pg cannot say. */
export function isIdle(client: PgClient): boolean {
  try {
    return client.getTransactionStatus?.() === "I";
  } catch {
    return false; // pg's native variant, over a library that does not know of it yet
  }
}
