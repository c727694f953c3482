// Jobs, and two lists with a fixed filter: scheduled (next due first) and retries.
import { useSignal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type {
  BulkAction,
  CappedCount,
  FilterJson,
  JobFacets,
  JobLine,
  JobState,
} from "../../../src/dashboard/api/contract.ts";
import { searchedAtOnce } from "../../../src/operate/browse-bounds.ts";
import { STATES_OF } from "../../../src/operate/bulk-verbs.ts";
import { get, type Params } from "../data/api.ts";
import { mayDo, startBulk } from "../operations/bulk-dialog.tsx";
import { enqueueDialog } from "../new-job/lazy-new-job.tsx";
import { instantText, inWords } from "../jobs/filter-words.ts";
import { count, countBeside, number, plural, windowText } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { chooseColumns, jobColumns, type JobsOfName } from "../jobs/job-columns.tsx";
import { exportDialog } from "../jobs/job-export.tsx";
import { Facets } from "../jobs/job-facets.tsx";
import { CHIPS, chipText, commandOf, filterJson, filterOf, type ListFilter } from "../jobs/job-filter.ts";
import { useJobPages } from "../jobs/job-pages.ts";
import { SearchBar, searchProblem } from "../jobs/job-search.tsx";
import { onKey } from "../kit/shortcuts.ts";
import { openPreview, previewColumn } from "../jobs/lazy-job-preview.tsx";
import { VirtualTable } from "../kit/virtual-table.tsx";
import type { FixedOrder } from "../kit/table.tsx";
import { may } from "../data/live-stream.ts";
import { copy } from "../kit/clipboard.tsx";
import { Empty, Failure, Head } from "../kit/panels.tsx";
import { go, href, params, setParams } from "../data/router.ts";
import { density } from "../data/page-settings.ts";
import { useQuery } from "../data/live-query.ts";
import { actions, verbOn } from "../jobs/job-actions.ts";
import { SavedViews } from "../jobs/saved-views.tsx";

const states: readonly JobState[] = ["running", "ready", "scheduled", "waiting", "dead", "cancelled", "done"];

const kinds: Readonly<
  Record<JobsOfName, { title: string; note: string; fixed: Params; empty: string; hint: string }>
> = {
  jobs: {
    title: "Jobs",
    note: "Newest first.",
    fixed: {},
    empty: "No matching jobs",
    hint: "",
  },
  scheduled: {
    title: "Scheduled",
    note: "Due later, next first.",
    fixed: { state: "scheduled" },
    empty: "No scheduled jobs",
    hint: "Delayed jobs and retries wait here until they are due.",
  },
  retries: {
    title: "Retries",
    note: "Failed jobs that will be retried.",
    fixed: { retrying: true },
    empty: "No retries",
    hint: "Failed jobs wait here for their next attempt. Jobs without attempts left are dead.",
  },
};

export function JobsScreen({ kind }: { kind: JobsOfName }) {
  const { title, note, fixed } = kinds[kind];
  const given = params.value.toString();
  const filter = useMemo(() => filterOf(new URLSearchParams(given)), [given]);
  const { due, choice } = orderOf(kind, filter);
  const asked: Params = { ...filter, ...fixed, order: due ? "due" : null };
  const key = JSON.stringify([kind, filter, due]);
  const facets = useQuery(
    `facets ${key}`,
    (signal) => get<JobFacets>("/jobs/facets", { ...asked, order: null }, signal),
    { sign: "overview" },
  );
  const total = totalOf(facets.data, asked["state"]);
  const compact = density.value === "compact";
  const counts = useSignal(false);
  return (
    <>
      <Head title={title} note={note}>
        {compact && (
          <button
            type="button"
            class="button quiet"
            aria-expanded={counts.value}
            title="Queues and names with counts, and recently ended jobs"
            onClick={() => (counts.value = !counts.value)}
          >
            <Icon name="overview" size={14} /> Counts
          </button>
        )}
        <button type="button" class="button quiet" onClick={() => chooseColumns(kind)}>
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
            onClick={() => exportDialog(asked, total && count(total), inWords(filterJson(asked)))}
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
      {facets.data !== null && (!compact || counts.value) && <Facets facets={facets.data} filter={filter} />}
      <List
        key={key}
        kind={kind}
        asked={asked}
        order={shownOrder(due, choice)}
        all={total}
        filtered={Object.keys(filter).length > 0}
      />
    </>
  );
}

/**
 * Newest first works for every filter. Next due first is the claim's order, for scheduled jobs by queue and name
 * only. `choice`: both are offered.
 */
function orderOf(kind: JobsOfName, { state, ...filter }: ListFilter): { due: boolean; choice: boolean } {
  const scheduled = kind === "scheduled" || (kind === "jobs" && state === "scheduled");
  const choice = scheduled && Object.keys(filter).every((name) => name === "queue" || name === "name");
  const wanted = params.value.get("order") ?? (kind === "scheduled" ? "due" : "newest");
  return { due: choice && wanted === "due", choice };
}

function shownOrder(due: boolean, choice: boolean): FixedOrder {
  const to = (order: string) => () => setParams({ order });
  return {
    ...(due ? { head: "Due", down: false } : { head: "Created", down: true }),
    why: due
      ? "Next due first. A list in pages has one order. Use a filter to narrow it."
      : "Newest first. A list in pages has one order. Use a filter to narrow it.",
    press: choice ? { Due: to("due"), Created: to("newest") } : {},
  };
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
                ? instantText(Number(value))
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
            {state.charAt(0).toUpperCase() + state.slice(1)}{" "}
            {n !== undefined && <span class="n">{count(n)}</span>}
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

/** The sum over the chosen states. */
function totalOf(facets: JobFacets | null, state: Params[string]): CappedCount | null {
  if (facets === null) return null;
  const wanted = state === undefined || state === null || state === "" ? states : String(state).split(",");
  const counts = wanted.map((one) => countOf(facets, one));
  const sum = counts.reduce((n, one) => n + one.count, 0);
  return { count: Math.min(sum, most), more: sum > most || counts.some(({ more }) => more) };
}

function List({
  kind,
  asked,
  order,
  all,
  filtered,
}: {
  kind: JobsOfName;
  asked: Params;
  order: FixedOrder;
  all: CappedCount | null;
  filtered: boolean;
}) {
  const picked = useSignal<ReadonlySet<string>>(new Set());
  const everything = useSignal(false);
  const current = useSignal(-1);
  const lastPicked = useRef(-1);
  const panel = useRef<HTMLElement>(null);
  const moved = useRef(false);
  const inPage = useRef<readonly JobLine[]>([]);
  const pages = useJobPages(asked, () => inPage.current.map(({ id }) => id));
  const { jobs, next, fresh, gone, error, loading } = pages.rows.value;
  const total = all === null ? null : countBeside(all, jobs.length);
  // Unknown while the search is invalid or was rejected.
  const unread = searchProblem.value !== null || error !== null;

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
    const now = new Set(picked.value);
    const job = jobs[index];
    if (job === undefined) return;
    const on = !now.has(job.id);
    const from = range && lastPicked.current >= 0 ? lastPicked.current : index;
    for (const one of jobs.slice(Math.min(from, index), Math.max(from, index) + 1)) {
      if (on) now.add(one.id);
      else now.delete(one.id);
    }
    lastPicked.current = index;
    picked.value = now;
    everything.value = false;
  };
  const shown = String(asked["state"] ?? "");
  const act = (action: BulkAction): void => {
    const job = jobs[current.value];
    if (picked.value.size === 0 && !everything.value && job !== undefined) picked.value = new Set([job.id]);
    if (picked.value.size === 0 && !everything.value) return;
    if (everything.value && unread) return;
    startBulk(action, chosen(), again, null, shown === "dead");
  };
  const move = (by: number): void => {
    current.value = Math.max(0, Math.min(jobs.length - 1, current.value + by));
    moved.current = true;
  };
  useLayoutEffect(() => {
    if (!moved.current) return;
    moved.current = false;
    panel.current
      ?.querySelector<HTMLAnchorElement>(`tr[aria-rowindex="${current.value + 2}"] a.main-link`)
      ?.focus();
  });
  // Before the paint, so that keys work as soon as the list is visible.
  useLayoutEffect(() => {
    const offs = [
      onKey("j", () => move(1)),
      onKey("k", () => move(-1)),
      onKey("x", () => pick(current.value, false)),
      onKey("X", () => pick(current.value, true)),
      onKey("*", () => (everything.value = !unread)),
      onKey("v", () => jobs[current.value] !== undefined && openPreview(jobs[current.value]!)),
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
  // Hides actions that apply to none of the listed states.
  const fits = (action: BulkAction): boolean =>
    shown === "" || STATES_OF[action].some((state) => shown.split(",").includes(state));
  const isPicked = (id: string): boolean => everything.value || picked.value.has(id);
  return (
    <>
      <div class="new-rows" role="status">
        {fresh.count > 0 && !some && (
          <button
            type="button"
            class="button primary small pill"
            title="Show them"
            onClick={() => {
              current.value = -1;
              again();
              panel.current?.scrollIntoView({ block: "start" });
            }}
          >
            <Icon name="plus" size={12} />
            {fresh.more ? `${number(fresh.count)} or more new` : `${number(fresh.count)} new`}
          </button>
        )}
      </div>
      <section class="panel" aria-label="Jobs" ref={panel}>
        {some && (
          <div class="toolbar" role="toolbar" aria-label="Actions on the selected jobs">
            <b>
              {everything.value
                ? `All ${total ?? ""} ${inWords(chosen())}`
                : `${plural(picked.value.size, "job")} selected`}
            </b>
            {!everything.value && total !== null && (
              <button
                type="button"
                class="button quiet small"
                disabled={unread}
                onClick={() => (everything.value = true)}
              >
                Select all {total} matching
              </button>
            )}
            <span style={{ flex: 1 }} />
            {(Object.keys(actions) as BulkAction[])
              .filter(mayDo)
              .filter(fits)
              .map((action) => (
                <button
                  key={action}
                  type="button"
                  disabled={everything.value && unread}
                  class={`button small ${actions[action].danger ? "danger" : ""}`}
                  onClick={() => act(action)}
                >
                  {verbOn(action, shown === "dead")}
                </button>
              ))}
            <button type="button" class="button quiet small" onClick={pickNone}>
              None
            </button>
          </div>
        )}
        {error !== null && <Failure error={error} again={pages.again} />}
        {jobs.length > 0 ? (
          <VirtualTable
            rows={jobs}
            rowKey={({ id }) => id}
            current={current.value}
            inPage={inPage}
            fixed={order}
            first={
              <label class="hit">
                <input
                  type="checkbox"
                  aria-label="Select all on this page"
                  checked={picked.value.size >= jobs.length}
                  onChange={(event) => {
                    picked.value = event.currentTarget.checked
                      ? new Set(jobs.map(({ id }) => id))
                      : new Set();
                    everything.value = false;
                  }}
                />
              </label>
            }
            row={(job, index) => ({
              class: `${isPicked(job.id) ? "picked" : ""} ${index === current.value ? "current" : ""} ${gone.has(job.id) ? "gone" : ""}`,
              ...(gone.has(job.id) ? { title: "This job no longer exists." } : {}),
              onClick: (event) => {
                if ((event.target as Element).closest("a, input, label, button") === null)
                  go(`/jobs/${job.id}`);
              },
            })}
            columns={[
              {
                head: "Select",
                style: { width: "36px" },
                cell: (job, index) => (
                  <label class="hit">
                    <input
                      type="checkbox"
                      aria-label={`Select ${job.name} ${job.id}`}
                      checked={isPicked(job.id)}
                      onClick={(event) => {
                        pick(index, event.shiftKey);
                      }}
                    />
                  </label>
                ),
              },
              ...jobColumns(kind),
              previewColumn,
            ]}
          />
        ) : next !== null ? (
          <Nothing kind={kind} asked={asked} cut={next.cut} filtered={filtered} />
        ) : (
          error === null && (
            <div class="empty" role="status">
              <p>Loading…</p>
            </div>
          )
        )}
        <footer>
          <span>
            {jobs.length === 0
              ? ""
              : total === null
                ? `${plural(jobs.length, "job")} shown`
                : `${plural(jobs.length, "job")} shown of ${total}`}
          </span>
          <span class="spring" />
          {next?.cut === true && (
            <span>Searched down to here, {number(searchedAtOnce(asked))} jobs at a time.</span>
          )}
          {next !== null && next.cursor !== null && (
            <button type="button" class="button small" disabled={loading} onClick={pages.more}>
              {next.cut ? "Search on" : "Load more"}
            </button>
          )}
        </footer>
      </section>
    </>
  );
}

function Nothing({
  kind,
  asked,
  cut,
  filtered,
}: {
  kind: JobsOfName;
  asked: Params;
  cut: boolean;
  filtered: boolean;
}) {
  if (cut)
    return (
      <Empty icon="jobs" title="No matches among the newest">
        <p>The search reads {number(searchedAtOnce(asked))} jobs at a time. Continue to search older jobs.</p>
      </Empty>
    );
  return (
    <Empty icon="jobs" title={kinds[kind].empty}>
      <p>
        {filtered
          ? "Remove a filter or choose another state."
          : kind === "jobs"
            ? "Jobs appear here within a second. Create one with “New job” or on the command line:"
            : kinds[kind].hint}
      </p>
      {!filtered && kind === "jobs" && (
        <pre class="code">{`holdfast enqueue send-mail '{"to":"ada@example.org"}'`}</pre>
      )}
    </Empty>
  );
}
