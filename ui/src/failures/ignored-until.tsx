import type { FailureGroup } from "../../../src/dashboard/api/contract.ts";
import { number } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";

/** How long a failure group is ignored. */
export function IgnoredUntil({ group: { state, untilAt, untilCount, since } }: { group: FailureGroup }) {
  if (state !== "ignored" || (untilAt === null && untilCount === null)) return null;
  return (
    <span class="sub nowrap" style={{ display: "block" }}>
      {untilCount === null ? (
        <Ago at={untilAt} />
      ) : untilAt === null ? (
        `${number(since)} of ${number(untilCount)}`
      ) : (
        <>
          <Ago at={untilAt} />, or {number(since)} of {number(untilCount)}
        </>
      )}
    </span>
  );
}
