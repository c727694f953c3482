// The suite's Postgres servers: the oldest and the newest supported major. A server starts when a test first needs it, once for
// all workers, in vitest's main process, which stops it at the end (or guard.ts does, where that process is killed).
//
//   worker: urlOf(server) ──"18"──▶ main process: starts it, or waits for the start under way ──{ url } or { error }──▶ worker
//
// With DATABASE_URL set, that one server stands in for both.
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import type { TestProject } from "vitest/node";
import { installedMajors, type PostgresMajor, type PostgresServer, startPostgres } from "./postgres.ts";
import { SCHEMA_POOL } from "./schema-pool.ts";

export type ProvidedServer = {
  /** "postgres 14", or "postgres (DATABASE_URL)". */
  readonly name: string;
} & (
  | { readonly ours: false; readonly url: string }
  /** Started on demand, and removed at the end with everything in it; `port` is where to ask for it. */
  | { readonly ours: true; readonly major: PostgresMajor; readonly port: number }
);

declare module "vitest" {
  interface ProvidedContext {
    postgresServers: ProvidedServer[];
  }
}

export default async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  const given = process.env["DATABASE_URL"];
  // Code under test reads these; a test that wants them sets them itself.
  delete process.env["DATABASE_URL"];
  delete process.env["HOLDFAST_URL"];
  if (given !== undefined && given !== "") {
    project.provide("postgresServers", [{ name: "postgres (DATABASE_URL)", url: given, ours: false }]);
    return undefined;
  }

  const servers = new Map<PostgresMajor, Promise<PostgresServer>>();
  const started = (major: PostgresMajor): Promise<PostgresServer> => {
    let server = servers.get(major);
    if (server === undefined) servers.set(major, (server = start(major)));
    return server;
  };
  const desk = createServer((socket) => void answer(socket, started));
  desk.listen(0, "127.0.0.1");
  await once(desk, "listening");
  desk.unref();
  const { port } = desk.address() as AddressInfo;
  const majors = installedMajors();
  project.provide(
    "postgresServers",
    // Without binaries for this platform the tests that need a server fail, and say why.
    (majors.length === 0 ? ([18] as const) : majors).map((major) => ({
      name: `postgres ${major}`,
      ours: true as const,
      major,
      port,
    })),
  );
  return async () => {
    desk.close();
    for (const end of await Promise.allSettled(servers.values()))
      if (end.status === "fulfilled") await end.value.remove();
  };
}

async function start(major: PostgresMajor): Promise<PostgresServer> {
  const server = await startPostgres(major);
  await server.run(SCHEMA_POOL);
  return server;
}

async function answer(
  socket: Socket,
  started: (major: PostgresMajor) => Promise<PostgresServer>,
): Promise<void> {
  socket.on("error", () => {}); // the worker has ended
  try {
    const [major] = (await once(socket.setEncoding("utf8"), "data")) as [string];
    const server = await started(Number(major) as PostgresMajor);
    socket.end(JSON.stringify({ url: server.url() }));
  } catch (error) {
    socket.end(JSON.stringify({ error: String(error) }));
  }
}
