/**
 * Bulk actions as the API takes and gives them. What an operation is, how it goes on and who may steer it from where is in
 * ../operations.ts: any process on the database sees the same ones.
 */
import { checkEdit } from "../../operate/jobs-client.ts";
import { jobEdit, type Operation as Kept } from "../../operate/operations.ts";
import type { InputPatch } from "../../values/json-patch.ts";
import type { EditJson, Operation } from "./contract.ts";
import type { ShowFilter } from "../audit/shown-filter.ts";

/** As many at once are driven by one dashboard. */
export const MOST_RUNNING = 4;

/** @throws UsageError for an edit that changes nothing, or to what cannot be */
export function editOf(change: EditJson): EditJson {
  checkEdit(jobEdit(change));
  return change;
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
