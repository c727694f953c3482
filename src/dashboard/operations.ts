/**
 * Bulk actions as the API takes and gives them. What an operation is, how it goes on and who may steer it from where is in
 * ../operations.ts: any process on the database sees the same ones.
 */
import type { InsightFilter } from "../insight.ts";
import { checkEdit } from "../jobs.ts";
import { jobEdit, type Operation as Kept, type OperationRate, checkRate } from "../operations.ts";
import { wordTexts } from "../policy/range.ts";
import type { EditJson, FilterJson, Operation } from "./contract.ts";
import { bad, defined, onlyFields } from "./query.ts";

/** As many at once are driven by one dashboard. */
export const MOST_RUNNING = 4;

/**
 * An edit out of a body; `where` is its place in it, for who must mend it.
 *
 * @throws ApiError 400, UsageError
 */
export function editOf(given: Readonly<Record<string, unknown>>, where: string): EditJson {
  onlyFields(given, ["delay", "at", "queue", "priority"], where);
  const change = given as EditJson;
  if (change.at !== undefined && !Number.isSafeInteger(change.at))
    throw bad(`${where}at`, "must be an instant in epoch milliseconds.");
  checkEdit(jobEdit(change));
  return change;
}

/** @throws ApiError 400, UsageError */
export function rateOf(value: unknown): OperationRate | null {
  if (value === undefined || value === null) return null;
  if (typeof value !== "object" || Array.isArray(value))
    throw bad("rate", 'must be an object such as { "limit": 50, "per": "1s" }.');
  onlyFields(value as Readonly<Record<string, unknown>>, ["limit", "per"], "rate.");
  return checkRate(value);
}

/** `shown`: how a patch is shown to who asks; it may have what was in a payload. */
export function operationJson(
  { filter, patch, ...operation }: Kept,
  shown: (patch: string) => string | null,
): Operation {
  const given = patch ?? null;
  return {
    ...operation,
    filter: filterJson(filter),
    patched: given !== null,
    patch: given === null ? null : shown(JSON.stringify(given)),
  };
}

/** The filter as it can be given again. */
function filterJson(filter: InsightFilter): FilterJson {
  const { states, queues, names, attempt, ran, ended, worker, error, payload, ...rest } = filter;
  const words = wordTexts(defined({ attempt, ran, ended, worker, error, payload }));
  return defined({ ...rest, ...words, state: states, queue: queues, name: names });
}
