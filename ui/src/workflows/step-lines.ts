// Steps as JSON lines. Pure.
import type { WorkflowStep } from "../../../src/dashboard/api/contract.ts";

/** Newest first. Outputs are JSON texts and are inserted unchanged, with all digits. */
export function linesOf(steps: readonly WorkflowStep[]): string[] {
  return steps.toReversed().map(({ output, ...step }) => {
    const line = JSON.stringify(step);
    return output === null ? line : `${line.slice(0, -1)},"output":${output.replace(/\n\s*/g, "")}}`;
  });
}
