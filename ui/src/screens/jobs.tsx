// Jobs, and its two sisters with a fixed filter: scheduled (next due first) and retries.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type {
  BulkAction,
  CappedCount,
  FilterJson,
  JobFacets,
  JobState,
} from "../../../src/dashboard/contract.ts";
import { get, type Params } from "../api.ts";
import { inWords, mayDo, startBulk } from "../bulk.tsx";
import { enqueueDialog } from "../enqueue.tsx";
import { count, plural, windowText } from "../format.ts";
import { Icon } from "../icons.tsx";
import { chooseColumns, jobColumns } from "../job-columns.tsx";
import { exportDialog } from "../job-export.tsx";
import { Facets } from "../job-facets.tsx";
import { CHIPS, chipText, commandOf, filterJson, filterOf, type ListFilter } from "../job-filter.ts";
import { useJobPages } from "../job-pages.ts";
import { SearchBar } from "../job-search.tsx";
import { onKey } from "../keys.ts";
import { may } from "../live.ts";
import { copy, Empty, Failure, Head } from "../parts.tsx";
import { go, href, params, setParams } from "../router.ts";
import { Table } from "../table.tsx";
import { useQuery } from "../use-query.ts";
import { actions } from "../verbs.ts";
import { SavedViews } from "../views.tsx";

const states: readonly JobState[] = ["running", "ready", "scheduled", "waiting", "dead", "cancelled", "done"];

export type JobsKind = "jobs" | "scheduled" | "retries";

const kinds: Readonly<
  Record<JobsKind, { title: string; note: string; fixed: Params; empty: string; hint: string }>
> = {
  jobs: {
    title: "Jobs",
    note: "Newest first, over all states.",
    fixed: {},
    empty: "No job matches",
    hint: "",
  },
  scheduled: {
    title: "Scheduled",
    note: "Due later; the next one first.",
    fixed: { state: "scheduled", order: "due" },
    empty: "Nothing is scheduled",
    hint: "Jobs with a delay, and retries until their time has come, wait here.",
  },
  retries: {
    title: "Retries",
    note: "Failed, and will try again.",
    fixed: { retrying: true },
    empty: "Nothing is waiting for a retry",
    hint: "A job that failed waits here for its next attempt; out of attempts, it is under Dead.",
  },
};

export function Jobs({ kind }: { kind: JobsKind }) {
  const { title, note, fixed } = kinds[kind];
  const given = params.value.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(given)), [given]);
  // Next due first is the claim's own order, which knows queue and name and nothing else.
  const simple = Object.keys(filter).every((name) => name === "queue" || name === "name");
  const asked: Params = { ...filter, ...fixed, ...(kind === "scheduled" && !simple ? { order: null } : {}) };
  const key = JSON.stringify([kind, filter]);
  const facets = useQuery(
    `facets ${key}`,
    (signal) => get<JobFacets>("/jobs/facets", { ...asked, order: null }, signal),
    { live: true },
  );
  const total = totalOf(facets.data, asked["state"]);
  return (
    <>
      <Head title={title} note={note}>
        <button type="button" class="button quiet" onClick={chooseColumns}>
          <Icon name="columns" size={14} /> Columns
        </button>
        <button
          type="button"
          class="button quiet"
          title="The same list in a terminal"
          onClick={() => void copy(commandOf("list", filterJson(asked)))}
        >
          <Icon name="copy" size={14} /> Copy as command
        </button>
        {may("jobs:export") && (
          <button
            type="button"
            class="button quiet"
            onClick={() => exportDialog(asked, total, inWords(filterJson(asked)))}
          >
            <Icon name="download" size={14} /> Export
          </button>
        )}
        {may("jobs:enqueue") && (
          <button type="button" class="button" onClick={() => enqueueDialog({})}>
            <Icon name="plus" size={14} /> New job
          </button>
        )}
      </Head>
      <SearchBar facets={facets.data} asked={asked} />
      <div class="row tight filters">
        <SavedViews />
        <Chips filter={filter} />
      </div>
      {kind === "jobs" && <StateTabs facets={facets.data} chosen={filter["state"] ?? null} />}
      {facets.data !== null && <Facets facets={facets.data} filter={filter} />}
      <List key={key} kind={kind} asked={asked} total={total} filtered={Object.keys(filter).length > 0} />
    </>
  );
}

function Chips({ filter }: { filter: ListFilter }) {
  const shown = CHIPS.flatMap((name) => (filter[name]?.split("\n") ?? []).map((value) => ({ name, value })));
  if (shown.length === 0) return null;
  return (
    <div class="row tight" aria-label="Filters" role="group">
      {shown.map(({ name, value }) => {
        const chip = chipText(name, value);
        const rest = filter[name]?.split("\n").filter((one) => one !== value) ?? [];
        return (
          <span class="chip" key={`${name} ${value}`}>
            <span class="muted">{chip.name}</span>
            <b class="clip">
              {name === "since" || name === "until"
                ? new Date(Number(value)).toISOString().slice(0, 16).replace("T", " ")
                : name === "ended"
                  ? windowText(value)
                  : chip.text}
            </b>
            <button
              type="button"
              aria-label={`Remove the filter ${chip.name}`}
              onClick={() => setParams({ [name]: rest.length === 0 ? null : rest.join("\n") })}
            >
              <Icon name="close" size={12} />
            </button>
          </span>
        );
      })}
      <button
        type="button"
        class="button quiet small"
        onClick={() => setParams(Object.fromEntries(shown.map(({ name }) => [name, null])))}
      >
        Clear
      </button>
    </div>
  );
}

function StateTabs({ facets, chosen }: { facets: JobFacets | null; chosen: string | null }) {
  const link = (state: string | null): string => {
    const next = new URLSearchParams(params.value);
    if (state === null) next.delete("state");
    else next.set("state", state);
    const text = next.toString();
    return href(`/jobs${text === "" ? "" : `?${text}`}`);
  };
  return (
    <nav class="tabs" aria-label="States">
      <a href={link(null)} aria-current={chosen === null ? "page" : undefined}>
        All
      </a>
      {states.map((state) => {
        const n = facets === null ? undefined : countOf(facets, state);
        return (
          <a key={state} href={link(state)} aria-current={chosen === state ? "page" : undefined}>
            {state[0]?.toUpperCase()}
            {state.slice(1)} {n !== undefined && <span class="n">{count(n)}</span>}
          </a>
        );
      })}
    </nav>
  );
}

const none: CappedCount = { count: 0, more: false };
/** The server counts no further. */
const most = 10_000;

function countOf({ states: found }: JobFacets, state: string): CappedCount {
  return found.find(({ value }) => value === state) ?? none;
}

/** Over the states that are asked for. */
function totalOf(facets: JobFacets | null, state: Params[string]): string | null {
  if (facets === null) return null;
  const wanted = state === undefined || state === null || state === "" ? states : String(state).split(",");
  const counts = wanted.map((one) => countOf(facets, one));
  const sum = counts.reduce((n, one) => n + one.count, 0);
  return count({ count: Math.min(sum, most), more: sum > most || counts.some(({ more }) => more) });
}

function List({
  kind,
  asked,
  total,
  filtered,
}: {
  kind: JobsKind;
  asked: Params;
  total: string | null;
  filtered: boolean;
}) {
  const picked = useSignal<ReadonlySet<string>>(new Set());
  const everything = useSignal(false);
  const current = useSignal(-1);
  const lastPicked = useRef(-1);
  const body = useRef<HTMLTableSectionElement>(null);
  const pages = useJobPages(asked, () => picked.peek().size > 0 || current.peek() >= 0);
  const jobs = pages.jobs.value;
  const next = pages.next.value;

  const pickNone = (): void => {
    picked.value = new Set();
    everything.value = false;
  };
  const again = (): void => {
    pickNone();
    pages.again();
  };
  const chosen = (): FilterJson => (everything.value ? filterJson(asked) : { ids: [...picked.value] });
  const pick = (index: number, range: boolean): void => {
    const all = new Set(picked.value);
    const job = jobs[index];
    if (job === undefined) return;
    const on = !all.has(job.id);
    const from = range && lastPicked.current >= 0 ? lastPicked.current : index;
    for (const one of jobs.slice(Math.min(from, index), Math.max(from, index) + 1)) {
      if (on) all.add(one.id);
      else all.delete(one.id);
    }
    lastPicked.current = index;
    picked.value = all;
    everything.value = false;
  };
  const act = (action: BulkAction): void => {
    const job = jobs[current.value];
    if (picked.value.size === 0 && !everything.value && job !== undefined) picked.value = new Set([job.id]);
    if (picked.value.size === 0 && !everything.value) return;
    startBulk(action, chosen(), again);
  };
  const move = (by: number): void => {
    current.value = Math.max(0, Math.min(jobs.length - 1, current.value + by));
    body.current?.querySelectorAll<HTMLAnchorElement>("a.main-link")[current.value]?.focus();
  };
  // Before the paint: who sees the job can press a key.
  useLayoutEffect(() => {
    const offs = [
      onKey("j", () => move(1)),
      onKey("k", () => move(-1)),
      onKey("x", () => pick(current.value, false)),
      onKey("X", () => pick(current.value, true)),
      onKey("*", () => (everything.value = true)),
      onKey("Escape", () => {
        pickNone();
        current.value = -1;
      }),
      ...(Object.keys(actions) as BulkAction[]).map((action) =>
        onKey(actions[action].key, () => act(action)),
      ),
    ];
    return () => offs.forEach((off) => off());
  });

  const some = picked.value.size > 0 || everything.value;
  const isPicked = (id: string): boolean => everything.value || picked.value.has(id);
  return (
    <section class="panel" aria-label="Jobs">
      {pages.stale.value && !some && (
        <div class="toolbar">
          <span>There are changes.</span>
          <button
            type="button"
            class="button small"
            onClick={() => {
              current.value = -1;
              again();
            }}
          >
            Show them
          </button>
        </div>
      )}
      {some && (
        <div class="toolbar" role="toolbar" aria-label="Actions on the chosen jobs">
          <b>
            {everything.value
              ? `All ${total ?? ""} ${inWords(chosen())}`
              : `${plural(picked.value.size, "job")} chosen`}
          </b>
          {!everything.value && total !== null && (
            <button type="button" class="button quiet small" onClick={() => (everything.value = true)}>
              Choose all {total} that match
            </button>
          )}
          <span style={{ flex: 1 }} />
          {(Object.keys(actions) as BulkAction[]).filter(mayDo).map((action) => (
            <button
              key={action}
              type="button"
              class={`button small ${actions[action].danger ? "danger" : ""}`}
              onClick={() => act(action)}
            >
              {actions[action].verb}
            </button>
          ))}
          <button type="button" class="button quiet small" onClick={pickNone}>
            None
          </button>
        </div>
      )}
      {pages.error.value !== null && <Failure error={pages.error.value} again={pages.again} />}
      {jobs.length > 0 ? (
        <Table
          rows={jobs}
          rowKey={({ id }) => id}
          body={body}
          first={
            <label class="hit">
              <input
                type="checkbox"
                aria-label="Choose all on this page"
                checked={picked.value.size >= jobs.length}
                onChange={(event) => {
                  picked.value = event.currentTarget.checked ? new Set(jobs.map(({ id }) => id)) : new Set();
                  everything.value = false;
                }}
              />
            </label>
          }
          row={(job, index) => ({
            class: `${isPicked(job.id) ? "picked" : ""} ${index === current.value ? "current" : ""}`,
            onClick: (event) => {
              if ((event.target as Element).closest("a, input, label, button") === null)
                go(`/jobs/${job.id}`);
            },
          })}
          columns={[
            {
              head: "Choose",
              style: { width: "36px" },
              cell: (job, index) => (
                <label class="hit">
                  <input
                    type="checkbox"
                    aria-label={`Choose ${job.name} ${job.id}`}
                    checked={isPicked(job.id)}
                    onClick={(event) => {
                      pick(index, event.shiftKey);
                    }}
                  />
                </label>
              ),
            },
            ...jobColumns(kind !== "jobs"),
          ]}
        />
      ) : next !== null ? (
        <Nothing kind={kind} asked={asked} cut={next.cut} filtered={filtered} />
      ) : (
        pages.error.value === null && (
          <div class="empty" role="status">
            <p>Loading…</p>
          </div>
        )
      )}
      <footer>
        <span>
          {jobs.length === 0
            ? ""
            : `${plural(jobs.length, "job")} shown${total === null ? "" : ` of ${total}`}`}
        </span>
        <span class="spring" />
        {next?.cut === true && <span>Searched {searched(asked)} newest at a time, as far as here.</span>}
        {next !== null && next.cursor !== null && (
          <button type="button" class="button small" disabled={pages.loading.value} onClick={pages.more}>
            {next.cut ? "Search on" : "Load more"}
          </button>
        )}
      </footer>
    </section>
  );
}

/** What one search looks at: fewer where each costs a look at the job's own row. */
function searched(asked: Params): string {
  const deep = ["lane", "key", "since", "until", "age", "search", "payload", "error"];
  return deep.some((name) => asked[name] !== undefined && asked[name] !== null) ? "20,000" : "50,000";
}

function Nothing({
  kind,
  asked,
  cut,
  filtered,
}: {
  kind: JobsKind;
  asked: Params;
  cut: boolean;
  filtered: boolean;
}) {
  if (cut)
    return (
      <Empty icon="jobs" title="Nothing among the newest">
        <p>The search looks at the {searched(asked)} newest at a time. Go on to look further back.</p>
      </Empty>
    );
  return (
    <Empty icon="jobs" title={kinds[kind].empty}>
      <p>
        {filtered
          ? "Try fewer filters, or another state."
          : kind === "jobs"
            ? "Jobs appear here within a second of being enqueued. “New job” makes one; so does the command line:"
            : kinds[kind].hint}
      </p>
      {!filtered && kind === "jobs" && (
        <pre class="code">{`holdfast enqueue send-mail '{"to":"ada@example.org"}'`}</pre>
      )}
    </Empty>
  );
}
