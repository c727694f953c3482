// Bulk actions: first what would happen (a dry run by the server), then doing it, at a rate if one is wished, with progress, a
// rest and a way to stop. The server does it: the dialog can be closed, and Operations shows how far it is.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { BulkVerb, DryRun, EditJson, FilterJson, Operation } from "../../src/dashboard/contract.ts";
import { get, send } from "./api.ts";
import { wordOf } from "../../src/policy/words.ts";
import { askEdit, editInWords, passedOver } from "./bulk-edit.tsx";
import { count, number, plural, shortId, windowText } from "./format.ts";
import { Icon } from "./icons.tsx";
import { commandOf } from "./job-filter.ts";
import { may } from "./live.ts";
import { isUnderWay, OperationProgress, outcomesInWords, Steering } from "./operation-parts.tsx";
import { verbs } from "./verbs.ts";
import { Diff } from "./diff-view.tsx";
import { copy, Failure, JobStateOf, showDialog, toast } from "./parts.tsx";

export function mayDo(action: BulkVerb): boolean {
  return may(verbs[action].permission);
}

/** Opens the dialog: a dry run, then the confirmation. `patch`: what a retry changes in the inputs first. */
export function startBulk(
  action: BulkVerb,
  filter: FilterJson,
  done: () => void,
  patch: object | null = null,
): void {
  if (!mayDo(action)) {
    toast(`You may not ${verbs[action].verb.toLowerCase()} jobs here.`, "bad");
    return;
  }
  const show = (change: EditJson | null): void =>
    showDialog(`${verbs[action].verb} jobs`, (close) => (
      <Bulk action={action} filter={filter} change={change} patch={patch} close={close} done={done} />
    ));
  if (action === "edit") askEdit(`Edit ${inWords(filter)}`, show);
  else show(null);
}

/** The filter as a sentence. */
export function inWords(filter: FilterJson): string {
  const parts: string[] = [];
  if (filter.ids !== undefined) return plural(filter.ids.length, "chosen job");
  if (filter.retrying === true) parts.push("retrying");
  if (filter.state !== undefined) parts.push(filter.state.join(" or "));
  parts.push("jobs");
  if (filter.name !== undefined) parts.push(`named ${filter.name.join(" or ")}`);
  if (filter.queue !== undefined) parts.push(`in queue ${filter.queue.join(" or ")}`);
  if (filter.lane !== undefined) parts.push(`in lane ${filter.lane}`);
  if (filter.key !== undefined) parts.push(`with key ${filter.key}`);
  if (filter.errorGroup !== undefined) parts.push(`with error ${filter.errorGroup.slice(0, 8)}`);
  if (filter.search !== undefined) parts.push(`that contain “${filter.search}”`);
  for (const param of ["attempt", "age", "run", "worker", "error"] as const)
    if (filter[param] !== undefined) parts.push(wordOf(param, filter[param]));
  for (const value of filter.payload ?? []) parts.push(wordOf("payload", value));
  if (filter.ended !== undefined) parts.push(`that ended ${windowText(filter.ended)}`);
  return parts.join(" ");
}

function Bulk({
  action,
  filter,
  change,
  patch,
  close,
  done,
}: {
  action: BulkVerb;
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
  const { verb, danger } = verbs[action];
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
      current.matched === 0 ? "No job matched any more." : `${verb}: ${outcomesInWords(current)}.`,
      current.state === "failed" ? "bad" : "good",
    );
    close();
    done();
  };

  const matched = dry.value?.matched;
  const typed =
    matched !== undefined &&
    (action === "delete" || action === "purge" || matched.more || matched.count > 1_000)
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
      wrong.value = "A rate is a whole number of jobs a second, or empty.";
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
            : `${verb} ${count(matched)} ${matched.count === 1 && !matched.more ? "job" : "jobs"}?`}
        </h2>
      </header>
      <div class="content">
        {error.value !== null && <Failure error={error.value} again={look} />}
        {wrong.value !== null && (
          <div class="banner bad" role="alert">
            {wrong.value}
          </div>
        )}
        <p>
          {verb} every one of: <b>{inWords(filter)}</b>
          {change !== null && (
            <>
              , to <b>{editInWords(change)}</b>
            </>
          )}
          {patch !== null && ", with another input"}.
        </p>
        {dry.value !== null && <PassedOver dry={dry.value} />}
        {running.value !== null ? (
          <>
            <OperationProgress operation={running.value} />
            <p class="muted small">The server does it: this window can be closed.</p>
          </>
        ) : dry.value === null ? (
          <p class="muted">Looking what that would be…</p>
        ) : (
          <>
            {dry.value.patched !== null ? (
              <Patched samples={dry.value.patched} />
            ) : (
              <>
                <h3>{dry.value.samples.length === 0 ? "Nothing matches now." : "For example"}</h3>
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
                  placeholder="as fast as it goes"
                  aria-label="At most so many jobs a second"
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
            {typed !== null && (
              <label class="field">
                <span>
                  Type <b class="mono">{typed}</b> to confirm
                </span>
                <input ref={input} class="input" autocomplete="off" spellcheck={false} />
              </label>
            )}
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
            <Steering operation={running.value} then={(next) => (running.value = next)} />
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

/** What becomes of some inputs. */
function Patched({ samples }: { samples: NonNullable<DryRun["patched"]> }) {
  const misfits = samples.filter(({ after }) => after === null).length;
  return (
    <>
      {misfits > 0 && (
        <div class="banner warn" role="status">
          The patch does not fit {number(misfits)} of these {number(samples.length)}: they stay dead, as they
          are.
        </div>
      )}
      {samples.length === 0 && <h3>Nothing matches now.</h3>}
      {samples.map(({ id, before, after }) => (
        <figure key={id} class="patched">
          <figcaption class="mono muted">{shortId(id)}</figcaption>
          {after === null ? (
            <p class="muted">The patch does not fit.</p>
          ) : (
            <Diff before={before} after={after} label={`Input of ${shortId(id)}, before and after`} />
          )}
        </figure>
      ))}
    </>
  );
}

/** "50" a second; null: no limit. */
function rateOf(text: string): { limit: number; per: string } | null | "wrong" {
  if (text.trim() === "") return null;
  const limit = Number(text);
  return Number.isInteger(limit) && limit > 0 ? { limit, per: "1s" } : "wrong";
}

/** What an edit will leave as it is, as far as the dry run looked. */
function PassedOver({ dry: { outcomes, judged, matched } }: { dry: DryRun }) {
  const left = Object.entries(outcomes ?? {}).filter(([outcome]) => outcome !== "edited");
  if (left.length === 0) return null;
  const all = judged >= matched.count && !matched.more;
  return (
    <div class="banner warn" role="status">
      <span>
        {all ? "" : `Of the newest ${number(judged)}, `}
        {number(outcomes?.["edited"] ?? 0)} will change; passed over:{" "}
        {left.map(([outcome, n]) => `${number(n)} ${passedOver[outcome] ?? outcome}`).join(", ")}.
      </span>
    </div>
  );
}
