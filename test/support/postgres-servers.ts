// The suite's Postgres servers: the oldest and the newest supported major, started once before all tests.
// With DATABASE_URL set, that one server stands in for both.
import type { TestProject } from "vitest/node";
import { installedMajors, startPostgres } from "./postgres.ts";
import { SCHEMA_POOL } from "./schema-pool.ts";

export interface ProvidedServer {
  /** "postgres 14", or "postgres (DATABASE_URL)". */
  name: string;
  url: string;
  /** Started here, and removed at the end: whatever is made in it goes with it. */
  ours: boolean;
}

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

  const majors = installedMajors();
  if (majors.length === 0) {
    throw new Error(
      "No Postgres binaries for this platform. Run `npm ci`, or set DATABASE_URL to a server for tests.",
    );
  }
  const servers = await Promise.all(majors.map((major) => startPostgres(major)));
  for (const server of servers) await server.run(SCHEMA_POOL);
  project.provide(
    "postgresServers",
    servers.map((server) => ({ name: `postgres ${server.major}`, url: server.url(), ours: true })),
  );
  return async () => {
    await Promise.all(servers.map((server) => server.remove()));
  };
}
