/**
 * Bulk actions as the API takes and gives them. What an operation is, how it goes on and who may steer it from where is in
 * ../operations.ts: any process on the database sees the same ones.
 */
import { checkEdit } from "../../operate/jobs-client.ts";
import { jobEdit, type Operation as Kept, type OperationRate, checkRate } from "../../operate/operations.ts";
import type { InputPatch } from "../../values/json-patch.ts";
import type { EditJson, Operation } from "./contract.ts";
import { bad, onlyFields } from "./query.ts";
import type { ShowFilter } from "../audit/shown-filter.ts";

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

/** How a patch and a filter are shown to who asks: they may have what is in payloads. */
export interface OperationView {
  readonly patch: (patch: InputPatch) => string | null;
  readonly filter: ShowFilter;
  readonly text: (text: string | null) => string | null;
}

export function operationJson({ filter, patch, error, ...operation }: Kept, show: OperationView): Operation {
  const given = patch ?? null;
  return {
    ...operation,
    error: show.text(error),
    filter: show.filter(filter),
    patched: given !== null,
    patch: given === null ? null : show.patch(given),
  };
}
