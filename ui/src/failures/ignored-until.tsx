// How long a failure group is ignored.
import type { ErrorGroup } from "../../../src/dashboard/api/contract.ts";
import { number } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { rich } from "../language/rich-text.ts";
import { t } from "../language/translation.ts";

/** How long it is ignored. */
export function IgnoredUntil({ group: { state, untilAt, untilCount, since } }: { group: ErrorGroup }) {
  if (state !== "ignored" || (untilAt === null && untilCount === null)) return null;
  return (
    <span class="sub nowrap" style={{ display: "block" }}>
      {untilCount === null ? (
        <Ago at={untilAt} />
      ) : untilAt === null ? (
        t("{since} of {untilCount}", { since: number(since), untilCount: number(untilCount) })
      ) : (
        rich("{when}, or {since} of {untilCount}", {
          when: <Ago at={untilAt} />,
          since: number(since),
          untilCount: number(untilCount),
        })
      )}
    </span>
  );
}
