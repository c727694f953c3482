/**
 * The hosts of a URL. node-postgres connects to one; where a URL names several, we choose.
 *
 *   postgres://user:password@first:5432,second:5433/database?target_session_attrs=read-write
 *
 * The host that was good last is tried first, the others in their order. With read-write (or primary), a host that takes no
 * writes is as good as one that is down.
 */
import { StoreError, UsageError } from "../../errors.ts";
import { isGone, isMissing, missingDatabase, toStoreError } from "./error-codes.ts";
import type { Pg, PgClient } from "./pg.ts";

const CONNECT_MS = 5_000;
const EXAMPLE = "Use postgres://user:password@host:5432/database.";
const WRITABLE: Readonly<Record<string, boolean>> = { any: false, "read-write": true, primary: true };

export class Hosts {
  readonly #urls: readonly string[];
  /** Only a host that takes writes will do. */
  readonly writable: boolean;
  #at = 0;

  private constructor(urls: readonly string[], writable: boolean) {
    this.#urls = urls;
    this.writable = writable;
  }

  /** @throws UsageError BAD_URL */
  static of(url: string): Hosts {
    const [, head = "", hosts = "", tail = ""] = /^(\w+:\/\/(?:[^/?]*@)?)([^/?]*)(.*)$/s.exec(url) ?? [];
    const parsed = hosts.split(",").map((host) => parse(`${head}${host}${tail}`));
    const attributes = parsed[0]?.searchParams.get("target_session_attrs") ?? "any";
    const writable = WRITABLE[attributes];
    if (writable === undefined)
      throw new UsageError(
        "BAD_URL",
        `target_session_attrs in the Postgres URL must be any, read-write or primary; got ${JSON.stringify(attributes)}.`,
      );
    for (const one of parsed) one.searchParams.delete("target_session_attrs");
    return new Hosts(
      parsed.length === 1 && !url.includes("target_session_attrs") ? [url] : parsed.map(String),
      writable,
    );
  }

  /** Another database of the same hosts. */
  onDatabase(name: string): Hosts {
    const urls = this.#urls.map((url) => {
      const other = new URL(url);
      other.pathname = `/${encodeURIComponent(name)}`;
      return other.href;
    });
    return new Hosts(urls, this.writable);
  }

  /** The one to try next. */
  get url(): string {
    return this.#urls[this.#at] as string;
  }

  /** Connects to the first that will do. @throws what the last one said */
  async first<T>(connect: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      const { url } = this;
      try {
        return await connect();
      } catch (error) {
        // A password that is refused is refused everywhere, and so is the name of a database.
        if (isMissing(error)) throw missingDatabase(url, error);
        if (!isGone(toStoreError(error))) throw error;
        this.leave(url);
        if (tries >= this.#urls.length) throw error;
      }
    }
  }

  /** Another is tried next, unless somebody has gone on from this one already. */
  leave(url: string): void {
    if (url === this.url) this.#at = (this.#at + 1) % this.#urls.length;
  }
}

function parse(url: string): URL {
  // No cause: the one of `new URL` has the whole URL with its password as `input`.
  if (!URL.canParse(url)) throw new UsageError("BAD_URL", `The Postgres URL is not valid. ${EXAMPLE}`);
  const parsed = new URL(url);
  if (parsed.pathname === "" || parsed.pathname === "/")
    throw new UsageError("BAD_URL", `The Postgres URL names no database. ${EXAMPLE}`);
  const port = parsed.searchParams.get("port") ?? "";
  if (port !== "" && !(/^\d{1,5}$/.test(port) && Number(port) <= 65_535))
    throw new UsageError("BAD_URL", "port in the Postgres URL must be a number from 0 to 65535.");
  return parsed;
}

export function clientConfig(applicationName: string): Record<string, unknown> {
  return {
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  };
}

/** pg's client, on the host whose turn it is. It is connected when the host is known to do what the URL asks for. */
export function clientOf(pg: Pg, hosts: Hosts): Pg["Client"] {
  return class extends pg.Client {
    constructor(config: Record<string, unknown>) {
      super({ ...config, connectionTimeoutMillis: CONNECT_MS, connectionString: hosts.url });
    }

    override connect(done?: (error?: unknown) => void): Promise<unknown> {
      const connected = super.connect().then(() => checkWritable(this));
      if (done === undefined) return connected;
      return connected.then(
        () => process.nextTick(done),
        (error: unknown) => process.nextTick(done, error),
      );
    }
  };

  async function checkWritable(client: PgClient): Promise<void> {
    if (!hosts.writable) return;
    const { rows } = await client.query("show transaction_read_only");
    if (rows[0]?.["transaction_read_only"] === "off") return;
    void client.end().catch(() => {});
    throw new StoreError(
      "DATABASE_UNREACHABLE",
      "No host of the URL takes writes now, but target_session_attrs requires one.",
    );
  }
}
