// Bulk actions: first what would happen (a dry run by the server), then doing it, with progress and a way to stop.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type {
  BulkAction,
  BulkVerb,
  DryRun,
  EditJson,
  FilterJson,
  Operation,
  Permission,
} from "../../src/dashboard/contract.ts";
import { get, send } from "./api.ts";
import { askEdit, editInWords, passedOver } from "./bulk-edit.tsx";
import { count, number, plural, shortId } from "./format.ts";
import { Icon } from "./icons.tsx";
import { commandOf } from "./job-filter.ts";
import { may } from "./live.ts";
import { copy, Failure, JobStateOf, showDialog, toast } from "./parts.tsx";

export const actions: Readonly<
  Record<BulkAction, { verb: string; done: string; permission: Permission; danger: boolean; key: string }>
> = {
  retry: { verb: "Retry", done: "retried", permission: "jobs:retry", danger: false, key: "r" },
  "run-now": { verb: "Run now", done: "made due", permission: "jobs:run", danger: false, key: "n" },
  edit: { verb: "Edit", done: "seen to", permission: "jobs:edit", danger: false, key: "e" },
  cancel: { verb: "Cancel", done: "cancelled", permission: "jobs:cancel", danger: true, key: "c" },
  delete: { verb: "Delete", done: "deleted", permission: "jobs:delete", danger: true, key: "#" },
};

const verbs: Readonly<Record<BulkVerb, (typeof actions)[BulkAction]>> = {
  ...actions,
  purge: { verb: "Purge", done: "deleted", permission: "jobs:delete", danger: true, key: "" },
};

export function mayDo(action: BulkVerb): boolean {
  return may(verbs[action].permission);
}

/** Opens the dialog: a dry run, then the confirmation. */
export function startBulk(action: BulkVerb, filter: FilterJson, done: () => void): void {
  if (!mayDo(action)) {
    toast(`You may not ${verbs[action].verb.toLowerCase()} jobs here.`, "bad");
    return;
  }
  const show = (change: EditJson | null): void =>
    showDialog(`${verbs[action].verb} jobs`, (close) => (
      <Bulk action={action} filter={filter} change={change} close={close} done={done} />
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
  return parts.join(" ");
}

function Bulk({
  action,
  filter,
  change,
  close,
  done,
}: {
  action: BulkVerb;
  filter: FilterJson;
  change: EditJson | null;
  close: () => void;
  done: () => void;
}) {
  const dry = useSignal<DryRun | null>(null);
  const running = useSignal<Operation | null>(null);
  const error = useSignal<Error | null>(null);
  const input = useRef<HTMLInputElement>(null);
  const { verb, danger, done: did } = verbs[action];
  const edit = change === null ? {} : { change };

  const look = (): void => {
    error.value = null;
    send<DryRun>("POST", "/jobs/bulk", { action, filter, ...edit, dryRun: true }).then(
      (answer) => (dry.value = answer),
      (failure: unknown) => (error.value = failure as Error),
    );
  };
  useEffect(look, []);

  const follow = async (operation: Operation): Promise<void> => {
    let current = operation;
    running.value = current;
    while (current.state === "running") {
      await new Promise((resolve) => setTimeout(resolve, 500));
      current = await get<Operation>(`/operations/${current.id}`);
      running.value = current;
    }
    const changed = Object.entries(current.outcomes).map(
      ([outcome, n]) => `${number(n)} ${outcome.replaceAll("_", " ")}`,
    );
    toast(
      changed.length === 0 ? "No job matched any more." : `${verb}: ${changed.join(", ")}.`,
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
    send<Operation>("POST", "/jobs/bulk", { action, ...edit, filter: dry.value.bounded })
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
          {matched === undefined
            ? `${verb}…`
            : `${verb} ${count(matched)} ${matched.count === 1 && !matched.more ? "job" : "jobs"}?`}
        </h2>
      </header>
      <div class="content">
        {error.value !== null && <Failure error={error.value} again={look} />}
        <p>
          {verb} every one of: <b>{inWords(filter)}</b>
          {change !== null && (
            <>
              , to <b>{editInWords(change)}</b>
            </>
          )}
          .
        </p>
        {dry.value !== null && <PassedOver dry={dry.value} />}
        {running.value !== null ? (
          <div role="status" class="stack">
            <p>
              {number(running.value.matched)} {did} so far…
            </p>
            <div class="progress">
              <i
                style={{
                  width: `${Math.min(100, (running.value.matched / Math.max(1, matched?.count ?? 1)) * 100)}%`,
                }}
              />
            </div>
          </div>
        ) : dry.value === null ? (
          <p class="muted">Looking what that would be…</p>
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
        <button
          type="button"
          class="button"
          onClick={() => {
            if (running.value !== null) void send("POST", `/operations/${running.value.id}/stop`);
            else close();
          }}
        >
          {running.value === null ? "Not now" : "Stop"}
        </button>
        <button
          type="submit"
          class={`button ${danger ? "danger fill" : "primary"}`}
          disabled={dry.value === null || running.value !== null || (matched?.count === 0 && !matched.more)}
        >
          {matched === undefined ? verb : `${verb} ${count(matched)}`}
        </button>
        <button
          type="button"
          class="button quiet aside"
          title="The same in a terminal"
          onClick={() => void copy(commandOf(action, filter, change))}
        >
          <Icon name="copy" size={13} /> Copy as command
        </button>
      </footer>
    </form>
  );
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
