// Steps as lines of JSON. Pure.
import type { FlowStep } from "../../../src/dashboard/api/contract.ts";

/** Newest first. The outputs are JSON texts already: they stand in the line as they are, with all their digits. */
export function linesOf(steps: readonly FlowStep[]): string[] {
  return steps.toReversed().map(({ output, ...step }) => {
    const line = JSON.stringify(step);
    return output === null ? line : `${line.slice(0, -1)},"output":${output.replace(/\n\s*/g, "")}}`;
  });
}
