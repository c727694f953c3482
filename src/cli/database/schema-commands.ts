/** `holdfast create`, `migrate`, `status`, `drop` and `reset`. */
import { type Holdfast, open, silentLogger } from "../../index.ts";
import { createDatabase, migrationSql, MOVED_TO } from "../../operate/index.ts";
import { record } from "../audit-record.ts";
import { type Command, FORCE } from "../command.ts";
import type { Context } from "../command-context.ts";
import { grouped, oneLine } from "../text.ts";

/** Opens once with migrating on, and closes. */
async function applyMigrations(
  ctx: Context,
  then: (hf: Holdfast) => Promise<void> = () => Promise.resolve(),
): Promise<void> {
  const target = await ctx.target();
  const { config } = await ctx.config();
  const hf = await open(target.url, {
    ...config.open,
    schema: target.schema,
    migrate: true,
    logger: silentLogger,
  });
  try {
    await then(hf);
  } finally {
    await hf.close();
  }
}

export const create: Command = {
  name: "create",
  summary: "create the database and its tables",
  details: "On Postgres, also creates the database of the URL. Existing tables and jobs stay.",
  json: "{ created, place, schema }",
  examples: [{ line: "create --url sqlite:jobs.db", says: "A new file with its tables" }],
  run: async (ctx) => {
    const target = await ctx.target();
    const created = await createDatabase(target.url);
    await applyMigrations(ctx);
    ctx.result(
      { created, place: target.place, schema: target.schema },
      () => `${target.place} is ready (schema ${target.schema}).`,
    );
  },
};

export const migrate: Command = {
  name: "migrate",
  summary: "migrate the schema to this version",
  options: {
    check: { type: "boolean", help: "Change nothing; exit code 1 if a migration is missing" },
    "print-sql": {
      type: "boolean",
      help: "Print the SQL of the schema, without connecting to a database",
    },
  },
  details:
    "Safe while workers run, and in several processes at once. `open` does the same unless its option migrate is off.",
  json: "{ place, schema, applied, pending }",
  examples: [
    { line: "migrate --url postgres://localhost/app --check", says: "In CI: is the schema up to date?" },
    {
      line: "migrate --url postgres://localhost/app --print-sql > holdfast.sql",
      says: "Deploy the schema yourself",
    },
  ],
  run: async (ctx) => {
    const target = await ctx.target();
    if (ctx.flag("print-sql")) {
      const statements = await migrationSql(target.url, target.schema);
      ctx.result(statements, () => statements.map((sql) => `${sql.trim()};`).join("\n\n"));
      return 0;
    }
    if (ctx.flag("check")) {
      await ctx.mustExist();
      const { applied, pending } = await (await ctx.admin()).status();
      const names = pending.map(({ version, name }) => `${version} (${name})`);
      ctx.result(
        {
          place: target.place,
          schema: target.schema,
          applied,
          pending: pending.map(({ version }) => version),
        },
        () =>
          pending.length === 0
            ? `${target.place} is up to date: ${applied.length} applied.`
            : `${target.place} lacks ${names.join(", ")}. Run: holdfast migrate`,
      );
      return pending.length === 0 ? 0 : 1;
    }
    await applyMigrations(ctx);
    const { applied } = await (await ctx.admin()).status();
    ctx.result(
      { place: target.place, schema: target.schema, applied, pending: [] },
      () => `${target.place} is up to date: version ${applied.at(-1) ?? 0}.`,
    );
    return 0;
  },
};

export const status: Command = {
  name: "status",
  summary: "show the database, its version and its counts",
  json: "{ place, from, config, schema, applied, pending, movedTo, totals, workers }",
  examples: [{ line: "status --json", says: "The address and its source, version and counts" }],
  run: async (ctx) => {
    const target = await ctx.target();
    const { path } = await ctx.config();
    await ctx.mustExist();
    const admin = await ctx.admin();
    const { applied, pending } = await admin.status();
    const current = applied.length > 0 && pending.length === 0;
    const movedTo = current ? await admin.meta(MOVED_TO) : null;
    const counted = current ? await (await ctx.client()).stats() : null;
    const value = {
      place: target.place,
      from: target.from,
      config: path,
      schema: target.schema,
      applied,
      pending: pending.map(({ version }) => version),
      movedTo,
      totals: counted?.totals ?? null,
      workers: counted?.workers ?? null,
    };
    ctx.result(value, () => {
      const line = (name: string, text: string): string =>
        `${ctx.paint("dim", name.padEnd(9))} ${oneLine(text)}`;
      const lines = [
        line("database", `${target.place} (${target.from})`),
        line(
          "schema",
          `${target.schema}, version ${applied.at(-1) ?? "none"}${pending.length > 0 ? `; missing ${value.pending.join(", ")}: holdfast migrate` : ""}`,
        ),
        line("config", path ?? "none"),
      ];
      if (movedTo !== null) lines.push(line("moved", `the jobs are at ${movedTo}`));
      if (counted !== null) {
        const parts = Object.entries(counted.totals).map(([state, count]) => `${state} ${grouped(count)}`);
        lines.push(line("jobs", parts.join(", ")), line("workers", String(counted.workers)));
      }
      return lines.join("\n");
    });
    return current ? 0 : 1;
  },
};

export const drop: Command = {
  name: "drop",
  summary: "delete all tables and jobs",
  options: FORCE,
  details: "Drops the schema on Postgres, and the tables with the prefix on SQLite. Other tables stay.",
  json: "{ dropped: place }",
  examples: [{ line: "drop --url sqlite:jobs.db --force", says: "Without confirmation" }],
  run: async (ctx) => {
    const target = await ctx.target();
    await ctx.mustExist();
    if (
      !(await ctx.confirm(`Drop all jobs, queues and settings in ${target.place}, schema ${target.schema}?`))
    )
      return 1;
    await (await ctx.admin()).drop();
    ctx.result({ dropped: target.place }, () => `Dropped ${target.schema} in ${target.place}.`);
    return 0;
  },
};

export const reset: Command = {
  name: "reset",
  summary: "delete all tables and jobs, and create empty tables",
  options: FORCE,
  json: "{ reset: place }",
  examples: [{ line: "reset --force", says: "Delete every job, without confirmation" }],
  run: async (ctx) => {
    const target = await ctx.target();
    await ctx.mustExist();
    if (
      !(await ctx.confirm(
        `Drop all jobs, queues and settings in ${target.place}, schema ${target.schema}, and create empty tables?`,
      ))
    )
      return 1;
    await (await ctx.admin()).drop();
    // The old audit trail is gone with the rest. The new one begins with this reset.
    await applyMigrations(ctx, (hf) =>
      record(ctx, hf, { action: "database.reset", target: target.schema, outcome: "emptied" }),
    );
    ctx.result({ reset: target.place }, () => `${target.place} is empty and ready.`);
    return 0;
  },
};
