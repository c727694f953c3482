// Bulk actions: a dry run on the server, then the action with an optional rate, progress, pause and stop. It runs on the
// server, so the dialog can be closed; the Operations screen shows it.
import type { ComponentChildren } from "preact";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type {
  BulkVerb,
  DryRun,
  EditJson,
  FilterJson,
  Operation,
} from "../../../src/dashboard/api/contract.ts";
import { Buttons } from "../kit/actions.tsx";
import { get, send } from "../data/api.ts";
import { askEdit, editInWords, passedOver } from "./job-edit.tsx";
import { count, number, plural, shortId } from "../kit/format.ts";
import { inWords } from "../jobs/filter-words.ts";
import { Icon } from "../kit/icons.tsx";
import { commandOf } from "../jobs/job-filter.ts";
import { may } from "../data/live-stream.ts";
import { isUnderWay, OperationProgress, outcomesInWords, steering } from "./operation-progress.tsx";
import { verbOn, verbs } from "../jobs/job-actions.ts";
import { DiffView } from "../code/diff-view.tsx";
import { copy } from "../kit/clipboard.tsx";
import { Failure } from "../kit/panels.tsx";
import { JobStateOf } from "../kit/labels.tsx";
import { ConfirmingWord, showDialog } from "../kit/dialogs.tsx";
import { toast } from "../kit/toasts.tsx";

export function mayDo(action: BulkVerb): boolean {
  return may(verbs[action].permission);
}

/**
 * Opens the dialog with a dry run. `patch`: changes of the input before a retry. `dead`: all jobs are known to be
 * dead.
 */
export function startBulk(
  action: BulkVerb,
  filter: FilterJson,
  done: () => void,
  patch: object | null = null,
  dead = filter.state?.length === 1 && filter.state[0] === "dead",
): void {
  if (!mayDo(action)) {
    toast(`You do not have permission for this: ${verbs[action].verb}`, "bad");
    return;
  }
  const verb = verbOn(action, dead);
  const show = (change: EditJson | null): void =>
    showDialog(`${verb} jobs`, (close) => <Bulk {...{ action, verb, filter, change, patch, close, done }} />);
  if (action === "edit") askEdit(`${verb} ${inWords(filter)}`, dead, show);
  else show(null);
}

/** Actions that cannot be undone: deletion, and termination without compensation. */
const irreversible: readonly BulkVerb[] = ["delete", "purge", "terminate"];

function Bulk({
  action,
  verb,
  filter,
  change,
  patch,
  close,
  done,
}: {
  action: BulkVerb;
  verb: string;
  filter: FilterJson;
  change: EditJson | null;
  patch: object | null;
  close: () => void;
  done: () => void;
}) {
  const dry = useSignal<DryRun | null>(null);
  const running = useSignal<Operation | null>(null);
  const error = useSignal<Error | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const perSecond = useSignal("");
  const wrong = useSignal<string | null>(null);
  const closed = useRef(false);
  const { danger } = verbs[action];
  const edit = { ...(change === null ? {} : { change }), ...(patch === null ? {} : { patch }) };

  const look = (): void => {
    error.value = null;
    send<DryRun>("POST", "/jobs/bulk", { action, filter, ...edit, dryRun: true }).then(
      (answer) => (dry.value = answer),
      (failure: unknown) => (error.value = failure as Error),
    );
  };
  useEffect(look, []);

  useEffect(() => () => void (closed.current = true), []);
  const follow = async (operation: Operation): Promise<void> => {
    let current = operation;
    running.value = current;
    while (isUnderWay(current) && !closed.current) {
      await new Promise((resolve) => setTimeout(resolve, 500));
      current = await get<Operation>(`/operations/${current.id}`);
      running.value = current;
    }
    if (closed.current) return;
    toast(
      current.matched === 0 ? "No matching jobs" : `${verb}: ${outcomesInWords(current)}.`,
      current.state === "failed" ? "bad" : "good",
    );
    close();
    done();
  };

  const matched = dry.value?.matched;
  const typed =
    matched !== undefined && (irreversible.includes(action) || matched.more || matched.count > 1_000)
      ? action
      : null;
  const start = (): void => {
    if (dry.value === null || running.value !== null) return;
    if (typed !== null && input.current?.value !== typed) {
      input.current?.focus();
      return;
    }
    const rate = rateOf(perSecond.value);
    if (rate === "wrong") {
      wrong.value = "Enter a whole number of jobs per second, or leave the rate empty.";
      return;
    }
    error.value = null;
    send<Operation>("POST", "/jobs/bulk", {
      action,
      ...edit,
      ...(rate === null ? {} : { rate }),
      filter: dry.value.bounded,
    })
      .then(follow)
      .catch((failure: unknown) => (error.value = failure as Error));
  };

  const what = (): ComponentChildren => (
    <>
      {verb} all <b>{inWords(filter)}</b>
      {change !== null ? (
        <>
          {" "}
          to <b>{editInWords(change)}</b>
        </>
      ) : (
        patch !== null && " with the changed input"
      )}
      .
    </>
  );

  return (
    <form
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        start();
      }}
    >
      <header>
        <h2>
          {matched === undefined || running.value !== null
            ? `${verb}…`
            : matched.more
              ? `${verb} ${count(matched)} jobs?`
              : `${verb} ${plural(matched.count, "job")}?`}
        </h2>
      </header>
      <div class="content">
        {error.value !== null && <Failure error={error.value} again={look} />}
        {wrong.value !== null && (
          <div class="banner bad" role="alert">
            {wrong.value}
          </div>
        )}
        <p>{what()}</p>
        {dry.value !== null && <PassedOver dry={dry.value} />}
        {running.value !== null ? (
          <>
            <OperationProgress operation={running.value} />
            <p class="muted small">Runs on the server. You can close this window.</p>
          </>
        ) : dry.value === null ? (
          <p class="muted">Loading the preview…</p>
        ) : (
          <>
            {dry.value.patched !== null ? (
              <Patched samples={dry.value.patched} />
            ) : (
              <>
                <h3>{dry.value.samples.length === 0 ? "No matches." : "For example"}</h3>
                {dry.value.samples.length > 0 && (
                  <ul class="samples">
                    {dry.value.samples.map((job) => (
                      <li key={job.id}>
                        <JobStateOf job={job} />
                        <span class="nowrap">{job.name}</span>
                        <span class="mono muted nowrap">{shortId(job.id)}</span>
                        <span class="mono clip muted">{job.preview}</span>
                      </li>
                    ))}
                  </ul>
                )}
              </>
            )}
            {action !== "edit" && (matched?.count ?? 0) > 1 && (
              <label class="field rate">
                <span>At most</span>
                <input
                  class="input"
                  inputMode="numeric"
                  autocomplete="off"
                  placeholder="unlimited"
                  aria-label="Maximum jobs per second"
                  value={perSecond.value}
                  aria-invalid={wrong.value !== null}
                  onInput={(event) => {
                    perSecond.value = event.currentTarget.value;
                    wrong.value = null;
                  }}
                />
                <span>a second</span>
              </label>
            )}
            {typed !== null && <ConfirmingWord word={typed} input={input} />}
          </>
        )}
      </div>
      <footer>
        {running.value === null ? (
          <>
            <button type="button" class="button" onClick={close}>
              Not now
            </button>
            <button
              type="submit"
              class={`button ${danger ? "danger fill" : "primary"}`}
              disabled={dry.value === null || (matched?.count === 0 && !matched.more)}
            >
              {matched === undefined ? verb : `${verb} ${count(matched)}`}
            </button>
          </>
        ) : (
          <>
            <button
              type="button"
              class="button"
              onClick={() => {
                close();
                done();
              }}
            >
              Close
            </button>
            <Buttons of={steering(running.value, (next) => (running.value = next))} on="" />
          </>
        )}
        <button
          type="button"
          class="button quiet aside"
          title="The same in a terminal"
          onClick={() => void copy(commandOf(action, filter, change, rateOf(perSecond.value), patch))}
        >
          <Icon name="copy" size={13} /> Copy as command
        </button>
      </footer>
    </form>
  );
}

/** Examples of patched inputs. */
function Patched({ samples }: { samples: NonNullable<DryRun["patched"]> }) {
  const misfits = samples.filter(({ after }) => after === null).length;
  return (
    <>
      {misfits > 0 && (
        <div class="banner warn" role="status">
          The patch does not apply to {number(misfits)} of these {number(samples.length)}. They stay dead and
          unchanged.
        </div>
      )}
      {samples.length === 0 && <h3>No matches.</h3>}
      {samples.map(({ id, before, after }) => (
        <figure key={id} class="patched">
          <figcaption class="mono muted">{shortId(id)}</figcaption>
          {after === null ? (
            <p class="muted">The patch does not apply.</p>
          ) : (
            <DiffView before={before} after={after} label={`Input of ${shortId(id)}, before and after`} />
          )}
        </figure>
      ))}
    </>
  );
}

/** "50" per second; null: unlimited. */
function rateOf(text: string): { limit: number; per: string } | null | "wrong" {
  if (text.trim() === "") return null;
  const limit = Number(text);
  return Number.isInteger(limit) && limit > 0 ? { limit, per: "1s" } : "wrong";
}

/** Jobs that an edit skips, as far as the dry run has read. */
function PassedOver({ dry: { outcomes, judged, matched } }: { dry: DryRun }) {
  const left = Object.entries(outcomes ?? {}).filter(([outcome]) => outcome !== "edited");
  if (left.length === 0) return null;
  const all = judged >= matched.count && !matched.more;
  return (
    <div class="banner warn" role="status">
      <span>
        {all
          ? `${number(outcomes?.["edited"] ?? 0)} will change; skipped: ${left.map(([outcome, n]) => `${number(n)} ${passedOver[outcome] ?? outcome}`).join(", ")}.`
          : `Of the newest ${number(judged)}, ${number(outcomes?.["edited"] ?? 0)} will change; skipped: ${left.map(([outcome, n]) => `${number(n)} ${passedOver[outcome] ?? outcome}`).join(", ")}.`}
      </span>
    </div>
  );
}
