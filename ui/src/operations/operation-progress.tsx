// The progress of a bulk action and its buttons, in the dialog and in the list.
import type { Operation } from "../../../src/dashboard/api/contract.ts";
import type { Actions } from "../kit/actions.tsx";
import { send } from "../data/api.ts";
import { ago, count, number, rate, shortId } from "../kit/format.ts";
import { me } from "../data/live-stream.ts";
import { attempt } from "../kit/toasts.tsx";
import { now } from "../data/page-clock.ts";
import { href } from "../data/router.ts";
import { verbs } from "../jobs/job-actions.ts";

/** Running or paused. */
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
        aria-label={`${verbs[operation.action].verb}: progress`}
        aria-valuemin={0}
        aria-valuemax={all}
        aria-valuenow={matched}
        aria-valuetext={
          total.more ? `${number(matched)} of ${number(all)} or more` : `${number(matched)} of ${number(all)}`
        }
      >
        <i style={{ width: `${share * 100}%` }} />
      </div>
      <p class="small muted">
        {number(matched)} of {count({ count: all, more: total.more && state !== "done" })}
        {refused > 0 && operation.refusals.length === 0 && (
          <span class="refused" title={outcomesInWords(operation)}>
            {" · "}
            {number(refused)} refused
          </span>
        )}
        {operation.rate !== null && ` · ${rate(operation.rate)}`}
        {left !== null && ` · ready ${ago(now.value + left, now.value)}`}
      </p>
      {operation.refusals.length > 0 && <Refusals operation={operation} />}
    </div>
  );
}

/** Jobs that were refused, with reasons. */
function Refusals({ operation: { refused, refusals } }: { operation: Operation }) {
  return (
    <details class="refusals small">
      <summary>
        <span class="refused">{number(refused)} refused</span>
      </summary>
      <ul>
        {refusals.map(({ id, outcome }) => (
          <li key={id}>
            <a class="mono link" href={href(`/jobs/${id}`)} title={id}>
              {shortId(id)}
            </a>{" "}
            {reasons[outcome] ?? outcome.replaceAll("_", " ")}
          </li>
        ))}
      </ul>
      {refused > refusals.length && <p class="muted">First {number(refusals.length)} only.</p>}
    </details>
  );
}

const reasons: Readonly<Record<string, string>> = {
  superseded: "another job has its unique key",
  not_ended: "not ended",
  ended: "already ended",
  not_paused: "not paused",
  not_scheduled: "not scheduled",
  not_found: "no longer exists",
  patch_failed: "the patch does not apply to its input",
  past_deadline: "past its deadline",
  keyed: "is unique within its queue",
};

/** Pause, resume, stop. Who started the action may pause and stop it; resuming needs the action's permission. */
export function steering(operation: Operation, then: (next: Operation) => void): Actions {
  const { id, action, actor, state, standsStill } = operation;
  const { permission } = verbs[action];
  const own = me.value?.user === actor && !me.value.readOnly;
  const needs = own ? "view" : permission;
  const steer = (verb: string, said: string) => (): void =>
    void attempt(said, async () => then(await send<Operation>("POST", `/operations/${id}/${verb}`)));
  return [
    state === "running" &&
      !standsStill && { verb: "Pause", needs, icon: "pause", press: steer("pause", "Paused") },
    (state === "paused" || state === "failed" || standsStill) && {
      verb: "Continue",
      needs: permission,
      icon: "play",
      primary: true,
      press: steer("resume", "Resumed"),
    },
    state !== "done" &&
      state !== "stopped" && {
        verb: "Stop",
        needs,
        icon: "stop",
        danger: true,
        press: steer("stop", "Stopped"),
      },
  ];
}
