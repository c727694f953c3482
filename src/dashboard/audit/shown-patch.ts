/**
 * Patches of inputs, where inputs have values that are not shown.
 *
 * Invariants: a value of a patch is shown as it would be in the input that it is for; no step reads a value that is not shown:
 * `copy` and `move` would put it where it is shown, and `test` would tell whether a guess is right. Where a function redacts by
 * the place, no step shifts the elements of an array either.
 */
import { type InputPatch, type PatchStep, pointerKeys } from "../../values/json-patch.ts";
import { bad } from "../api/query.ts";
import { REDACTED, type Redactor } from "../access/redact.ts";

const nobody = { name: "", queue: "" };

/** @throws ApiError 400 for a step that reads what is not shown */
export function checkReads(patch: InputPatch, redactor: Redactor): void {
  if (!Array.isArray(patch)) return;
  for (const [i, step] of (patch as PatchStep[]).entries()) {
    if (redactor.byFunction && shifts(step))
      throw bad(
        `patch[${i}]`,
        `may move a redacted value of an array to another index. Replace the whole array instead.`,
      );
    if (step.op !== "copy" && step.op !== "move" && step.op !== "test") continue;
    const from = step.op === "test" ? step.path : (step.from ?? "");
    const probe = step.op === "test" ? step.value : "x";
    // What a function takes out may depend on the place, which copying changes.
    if (redactor.byFunction || isMasked(from, probe, redactor))
      throw bad(`patch[${i}]`, `reads a redacted value. Use add, replace or remove instead of ${step.op}.`);
  }
}

/** Whether the step may change the index of what follows in an array. A function may take values out by their index. */
function shifts({ op, path }: PatchStep): boolean {
  return (op === "add" || op === "remove") && /^\d+$/.test(pointerKeys(path).at(-1) ?? "");
}

/** The patch as JSON, without the values that are not shown. */
export function shownPatch(patch: InputPatch, redactor: Redactor): string | null {
  if (!Array.isArray(patch)) return redactor.json(JSON.stringify(patch), nobody);
  const steps = (patch as PatchStep[]).map((step) =>
    "value" in step && isMasked(step.path, step.value, redactor) ? { ...step, value: REDACTED } : step,
  );
  return redactor.json(JSON.stringify(steps), nobody);
}

/** Whether something of the value would be taken out of an input that has it at this place. */
function isMasked(pointer: string, value: unknown, redactor: Redactor): boolean {
  let inner: unknown = value;
  for (const key of pointerKeys(pointer).reverse()) inner = Object.fromEntries([[key, inner]]);
  return redactor.masking(JSON.stringify(inner) ?? "null", nobody).masked.length > 0;
}
