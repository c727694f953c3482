/** `holdfast create`, `migrate`, `status`, `drop`, `reset`: the database itself. */
import { type Holdfast, open, silentLogger } from "../../index.ts";
import { MOVED_TO } from "../../storage/admin.ts";
import { createDatabase, migrationSql } from "../../storage/open.ts";
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
  summary: "make the database, and its tables",
  details:
    "Postgres: makes the database of the URL where there is none. Harmless where everything is there already.",
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
  summary: "bring the tables up to date",
  options: {
    check: { type: "boolean", help: "Change nothing; exit code 1 when something is missing" },
    "print-sql": {
      type: "boolean",
      help: "Print every statement that makes the schema, for those who deploy schemas themselves; connects to nothing",
    },
  },
  details:
    "Safe beside running workers and for many processes at once. `open` does the same unless its option migrate is off.",
  json: "{ place, schema, applied, pending }",
  examples: [
    { line: "migrate --url postgres://localhost/app --check", says: "In CI: is the schema up to date?" },
    {
      line: "migrate --url postgres://localhost/app --print-sql > holdfast.sql",
      says: "For a deploy of your own",
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
  summary: "where the database is, its version, and what is in it",
  json: "{ place, from, config, schema, applied, pending, movedTo, totals, workers }",
  examples: [{ line: "status --json", says: "Which database, where its address came from, how many jobs" }],
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
  summary: "remove every table, with every job",
  options: FORCE,
  details:
    "The schema on Postgres, the tables with the prefix on SQLite; nothing else of the database is touched.",
  json: "{ dropped: place }",
  examples: [{ line: "drop --url sqlite:jobs.db --force", says: "Without asking" }],
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
  summary: "drop everything and make the tables anew",
  options: FORCE,
  json: "{ reset: place }",
  examples: [{ line: "reset --force", says: "Every job is deleted, without asking" }],
  run: async (ctx) => {
    const target = await ctx.target();
    await ctx.mustExist();
    if (
      !(await ctx.confirm(
        `Drop all jobs, queues and settings in ${target.place}, schema ${target.schema}, and begin anew?`,
      ))
    )
      return 1;
    await (await ctx.admin()).drop();
    // The trail of before went with the rest: the new one begins with who did that.
    await applyMigrations(ctx, (hf) =>
      record(ctx, hf, { action: "database.reset", target: target.schema, outcome: "emptied" }),
    );
    ctx.result({ reset: target.place }, () => `${target.place} is empty and ready.`);
    return 0;
  },
};
