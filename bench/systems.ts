/** Every system of the benchmark, ours first. */
import type { System } from "./adapter.ts";
import { systems as absurd } from "./adapters/absurd.ts";
import { systems as bullmq } from "./adapters/bullmq.ts";
import { systems as dbos } from "./adapters/dbos.ts";
import { systems as graphileWorker } from "./adapters/graphile-worker.ts";
import { systems as holdfast } from "./adapters/holdfast.ts";
import { systems as liteque } from "./adapters/liteque.ts";
import { systems as openworkflow } from "./adapters/openworkflow.ts";
import { systems as pgBoss } from "./adapters/pg-boss.ts";
import { systems as plainjob } from "./adapters/plainjob.ts";
import { systems as rawPostgres } from "./adapters/raw-postgres.ts";
import { systems as rawSqlite } from "./adapters/raw-sqlite.ts";

export const systems: readonly System[] = [
  ...holdfast,
  ...pgBoss,
  ...graphileWorker,
  ...bullmq,
  ...absurd,
  ...dbos,
  ...openworkflow,
  ...plainjob,
  ...liteque,
  ...rawPostgres,
  ...rawSqlite,
];

/** The system of that id. */
export function systemOf(id: string): System {
  const found = systems.find((system) => system.id === id);
  if (found === undefined) {
    throw new Error(`No system "${id}". There are: ${systems.map((system) => system.id).join(", ")}.`);
  }
  return found;
}
