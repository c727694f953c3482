/**
 * Which migrations a database still needs, and when this version of Holdfast must not touch it.
 *
 * Migrations only ever add; one that older versions cannot live beside is marked `breaking`. So an older version keeps
 * working on a newer schema until it meets a breaking step, and then refuses with a code instead of guessing.
 * The dialects run the statements, each under its own lock (storage/postgres/driver.ts, storage/sqlite/driver.ts).
 */
import { StoreError } from "../errors.ts";
import type { Tables } from "./catalogue.ts";

export interface Migration {
  readonly version: number;
  readonly name: string;
  /** Versions of Holdfast that do not know this step may not use the schema. */
  readonly breaking?: boolean;
  sql(tables: Tables, schema: string): readonly string[];
}

export interface AppliedMigration {
  readonly version: number;
  readonly breaking: boolean;
}

/** The migrations to apply, oldest first. Throws SCHEMA_TOO_NEW. */
export function pending(
  known: readonly Migration[],
  applied: readonly AppliedMigration[],
): readonly Migration[] {
  const newest = known.at(-1)?.version ?? 0;
  const tooNew = applied.find((step) => step.version > newest && step.breaking);
  if (tooNew !== undefined) {
    throw new StoreError(
      "SCHEMA_TOO_NEW",
      `The database's schema is at version ${tooNew.version}; this version of Holdfast knows up to ${newest}. ` +
        `Upgrade the holdfast package in this process: a newer version has migrated the database.`,
      { details: { found: tooNew.version, known: newest } },
    );
  }
  const done = new Set(applied.map((step) => step.version));
  return known.filter((migration) => !done.has(migration.version));
}

/** What a process that may not migrate says when the schema is absent or behind. */
export function notMigrated(missing: readonly Migration[], applied: readonly AppliedMigration[]): StoreError {
  const names = missing.map((migration) => `${migration.version} (${migration.name})`).join(", ");
  const details = { missing: missing.map((migration) => migration.version) };
  const todo =
    "Run `holdfast migrate`, or open the database once with { migrate: true } and a role that may create tables.";
  return applied.length === 0
    ? new StoreError("SCHEMA_MISSING", `The database has no Holdfast schema. ${todo}`, { details })
    : new StoreError(
        "SCHEMA_TOO_OLD",
        `The database's Holdfast schema is behind: ${names} not applied. ${todo}`,
        { details },
      );
}
