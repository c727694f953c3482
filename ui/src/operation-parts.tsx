// A bulk action under way: how far it is, and what can be done about it. The same in its dialog and in the list of all.
import type { Operation } from "../../src/dashboard/contract.ts";
import { send } from "./api.ts";
import { ago, count, number, rate } from "./format.ts";
import { may, me } from "./live.ts";
import { attempt, now } from "./parts.tsx";
import { verbs } from "./verbs.ts";

/** Neither over nor given up. */
export function isUnderWay({ state }: Operation): boolean {
  return state === "running" || state === "paused";
}

/** "12 retried, 3 superseded". */
export function outcomesInWords({ outcomes }: Operation): string {
  return Object.entries(outcomes)
    .map(([outcome, n]) => `${number(n)} ${outcome.replaceAll("_", " ")}`)
    .join(", ");
}

export function OperationProgress({ operation }: { operation: Operation }) {
  const { matched, total, refused, state, standsStill } = operation;
  const all = Math.max(matched, total.count);
  const share = state === "done" ? 1 : all === 0 ? 0 : matched / all;
  const left =
    operation.rate === null || state !== "running" || standsStill || total.more
      ? null
      : ((all - matched) * operation.rate.perMs) / operation.rate.limit;
  return (
    <div class="operation">
      <div
        class={`progress ${state}`}
        role="progressbar"
        aria-label={`${verbs[operation.action].verb}: how far`}
        aria-valuemin={0}
        aria-valuemax={all}
        aria-valuenow={matched}
        aria-valuetext={`${number(matched)} of ${number(all)}${total.more ? " or more" : ""}`}
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
      <p class="small muted">
        {number(matched)} of {count({ count: all, more: total.more && state !== "done" })}
        {refused > 0 && (
          <span class="refused" title={outcomesInWords(operation)}>
            {" "}
            · {number(refused)} refused
          </span>
        )}
        {operation.rate !== null && ` · ${rate(operation.rate)}`}
        {left !== null && ` · ready ${ago(now.value + left, now.value)}`}
      </p>
    </div>
  );
}

/** Pause, go on, stop. Whoever started it may pause and stop it; to go on needs what the action needs. */
export function Steering({
  operation,
  then,
  small = false,
}: {
  operation: Operation;
  then: (next: Operation) => void;
  small?: boolean;
}) {
  const { id, action, actor, state, standsStill } = operation;
  const able = may(verbs[action].permission);
  const own = me.value?.user === actor && !me.value.readOnly;
  const steer = (verb: string, said: string): void =>
    void attempt(said, async () => then(await send<Operation>("POST", `/operations/${id}/${verb}`)));
  const look = `button ${small ? "small" : ""}`.trim();
  return (
    <>
      {(able || own) && state === "running" && !standsStill && (
        <button type="button" class={look} onClick={() => steer("pause", "It is paused.")}>
          Pause
        </button>
      )}
      {able && (state === "paused" || state === "failed" || standsStill) && (
        <button type="button" class={`${look} primary`} onClick={() => steer("resume", "It goes on.")}>
          Go on
        </button>
      )}
      {(able || own) && state !== "done" && state !== "stopped" && (
        <button type="button" class={`${look} danger`} onClick={() => steer("stop", "It is stopped.")}>
          Stop
        </button>
      )}
    </>
  );
}
