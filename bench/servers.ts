/** The servers of a run: a Postgres from the npm binaries and, where redis-server is installed, two Redis. */
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { forget, killAtExit, removeDirectory, temporaryDirectory } from "../test/support/guard.ts";
import { startPostgres } from "../test/support/postgres.ts";
import type { StoreKind } from "./adapter.ts";
import { ping } from "./adapters/redis.ts";
import type { Servers } from "./context.ts";

/** The same for every system. fsync and synchronous_commit are on: a benchmark without them measures memory. */
export const postgresSettings = {
  synchronous_commit: "on",
  shared_buffers: "512MB",
  max_wal_size: "4GB",
  // No checkpoint by time within a measurement: whom it would meet is chance.
  checkpoint_timeout: "30min",
  max_connections: 200,
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.max": 10_000,
} as const;

export interface RunningServers extends Servers {
  readonly versions: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export async function startServers(stores: ReadonlySet<StoreKind>): Promise<RunningServers> {
  const directory = temporaryDirectory("bench");
  const versions: Record<string, string> = {};
  const redisUrls: Partial<Record<"redis-everysec" | "redis-always", string>> = {};
  const stops: (() => Promise<void> | void)[] = [() => removeDirectory(directory)];
  let postgresUrl = "";
  if (stores.has("postgres")) {
    const server = await startPostgres(18, { fsync: true, settings: postgresSettings });
    stops.push(() => server.remove());
    postgresUrl = server.url();
    const client = new pg.Client({ connectionString: postgresUrl });
    await client.connect();
    await client.query("create extension pg_stat_statements");
    const { rows } = await client.query<{ server_version: string }>("show server_version");
    versions["postgres"] = rows[0]!.server_version;
    await client.end();
  }
  for (const store of ["redis-everysec", "redis-always"] as const) {
    if (!stores.has(store)) continue;
    const { url, stop } = await startRedis(store.slice("redis-".length));
    redisUrls[store] = url;
    stops.push(stop);
    versions["redis"] = redisVersion();
  }
  return {
    postgresUrl,
    redisUrls,
    directory,
    versions,
    stop: async () => {
      for (const stop of stops.reverse()) await stop();
    },
  };
}

function redisVersion(): string {
  const output = spawnSync("redis-server", ["--version"], { encoding: "utf8" }).stdout;
  return /v=(\S+)/.exec(output)?.[1] ?? "unknown";
}

async function startRedis(appendfsync: string): Promise<{ url: string; stop: () => Promise<void> }> {
  const directory = temporaryDirectory(`redis-${appendfsync}`);
  const port = await freePort();
  const child = spawn(
    "redis-server",
    [
      "--port",
      String(port),
      "--bind",
      "127.0.0.1",
      "--dir",
      directory,
      "--appendonly",
      "yes",
      "--appendfsync",
      appendfsync,
      "--save",
      "",
    ],
    { stdio: "ignore" },
  );
  const { pid } = child;
  if (pid === undefined) throw new Error("redis-server did not start");
  killAtExit(pid, "KILL");
  child.once("exit", () => forget(pid));
  const url = `redis://127.0.0.1:${port}`;
  await Promise.race([
    ping(url),
    sleep(10_000).then(() => Promise.reject(new Error("redis-server does not answer"))),
  ]);
  return {
    url,
    stop: async () => {
      const ended = new Promise((resolve) => child.once("exit", resolve));
      child.kill("SIGKILL");
      await ended;
      removeDirectory(directory);
    },
  };
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject).listen(0, "127.0.0.1", () => {
      const address = server.address();
      server.close(() =>
        address !== null && typeof address === "object"
          ? resolve(address.port)
          : reject(new Error("no port")),
      );
    });
  });
}
