// Jobs, and its two sisters with a fixed filter: scheduled (next due first) and retries.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type {
  BulkAction,
  FilterJson,
  JobCount,
  JobLine,
  JobList,
  JobState,
} from "../../../src/dashboard/contract.ts";
import { get, type Params } from "../api.ts";
import { actions, inWords, mayDo, startBulk } from "../bulk.tsx";
import { bytes, count, duration, plural } from "../format.ts";
import { Icon } from "../icons.tsx";
import { enqueueDialog } from "../enqueue.tsx";
import { onKey } from "../keys.ts";
import { live, may, version } from "../live.ts";
import { Ago, Empty, Failure, Head, JobLink, JobStateOf } from "../parts.tsx";
import { go, href, params, setParams } from "../router.ts";
import { useQuery } from "../use-query.ts";

const states: readonly JobState[] = ["running", "ready", "scheduled", "waiting", "dead", "cancelled", "done"];
const words = ["queue", "name", "lane", "key", "id", "error", "state", "since", "until"] as const;
const paramOf: Readonly<Record<(typeof words)[number], string>> = {
  queue: "queue",
  name: "name",
  lane: "lane",
  key: "key",
  id: "ids",
  error: "errorGroup",
  state: "state",
  since: "since",
  until: "until",
};
const chips = ["ids", "queue", "name", "lane", "key", "errorGroup", "search", "since", "until"] as const;

export type JobsKind = "jobs" | "scheduled" | "retries";

const kinds: Readonly<Record<JobsKind, { title: string; note: string; fixed: Params; empty: string }>> = {
  jobs: { title: "Jobs", note: "Newest first, over all states.", fixed: {}, empty: "No job matches" },
  scheduled: {
    title: "Scheduled",
    note: "Due later; the next one first.",
    fixed: { state: "scheduled", order: "due" },
    empty: "Nothing is scheduled",
  },
  retries: {
    title: "Retries",
    note: "Failed, and will try again.",
    fixed: { retrying: true },
    empty: "Nothing is waiting for a retry",
  },
};

/** What is typed into the search: `queue:mail name:"x"` are filters, the rest is text; a whole id is an id. */
export function parseSearch(text: string, now: number): Record<string, string> {
  const found: Record<string, string> = {};
  const rest: string[] = [];
  for (const [part, word, quoted, bare] of text.matchAll(/(\w+):(?:"([^"]*)"|(\S+))|\S+/g)) {
    const value = quoted ?? bare;
    const known = words.find((one) => one === word);
    if (known === undefined || value === undefined) {
      if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(part)) found["ids"] = part.toLowerCase();
      else rest.push(part);
    } else
      found[paramOf[known]] = known === "since" || known === "until" ? String(instantOf(value, now)) : value;
  }
  if (rest.length > 0) found["search"] = rest.join(" ");
  return found;
}

/** "2h" ago, or a date. */
function instantOf(text: string, now: number): number {
  const match = /^(\d+)(m|min|h|d)$/.exec(text);
  const units: Readonly<Record<string, number>> = { m: 60_000, min: 60_000, h: 3_600_000, d: 86_400_000 };
  if (match !== null) return now - Number(match[1]) * (units[match[2] ?? "m"] ?? 0);
  const date = Date.parse(text);
  return Number.isNaN(date) ? now : date;
}

export function Jobs({ kind }: { kind: JobsKind }) {
  const { title, note, fixed } = kinds[kind];
  const given = params.value;
  const filter = useMemo(() => {
    const chosen: Record<string, string> = {};
    for (const name of [...chips, "state"]) {
      const value = given.get(name);
      if (value !== null && value !== "") chosen[name] = value;
    }
    return chosen;
  }, [given.toString()]);
  // Next due first is the claim's own order, which knows queue and name and nothing else.
  const simple = Object.keys(filter).every((name) => name === "queue" || name === "name");
  const asked: Params = { ...filter, ...fixed, ...(kind === "scheduled" && !simple ? { order: null } : {}) };
  const countable: Params = { ...asked, order: null, ...(kind === "jobs" ? { state: null } : {}) };
  const key = JSON.stringify([kind, filter]);
  const counts = useQuery(`count ${key}`, (signal) => get<JobCount>("/jobs/count", countable, signal), {
    live: true,
  });

  return (
    <>
      <Head title={title} note={note}>
        {may("jobs:enqueue") && (
          <button type="button" class="button" onClick={() => enqueueDialog({})}>
            <Icon name="plus" size={14} /> New job
          </button>
        )}
      </Head>
      <SearchBar />
      <Chips filter={filter} />
      {kind === "jobs" && <StateTabs counts={counts.data} chosen={filter["state"] ?? null} />}
      <List key={key} kind={kind} asked={asked} counts={counts.data} filter={filter} />
    </>
  );
}

function SearchBar() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => onKey("/", () => input.current?.focus()), []);
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const text = input.current?.value ?? "";
        if (text.trim() === "") return;
        setParams(parseSearch(text, Date.now()));
        if (input.current !== null) input.current.value = "";
      }}
    >
      <Icon name="search" />
      <input
        ref={input}
        class="input"
        type="search"
        aria-label="Find jobs"
        placeholder="Text in the payload, an id, or queue:mail name:send state:dead lane:acme key:… since:2h"
        spellcheck={false}
        autocomplete="off"
      />
    </form>
  );
}

function Chips({ filter }: { filter: Readonly<Record<string, string>> }) {
  const shown = chips.filter((name) => filter[name] !== undefined);
  if (shown.length === 0) return null;
  return (
    <div class="row tight" aria-label="Filters" role="group">
      {shown.map((name) => (
        <span class="chip" key={name}>
          <span class="muted">{name === "errorGroup" ? "error" : name}</span>
          <b class="clip">
            {name === "since" || name === "until"
              ? new Date(Number(filter[name])).toISOString().slice(0, 16).replace("T", " ")
              : filter[name]}
          </b>
          <button
            type="button"
            aria-label={`Remove the filter ${name}`}
            onClick={() => setParams({ [name]: null })}
          >
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      <button
        type="button"
        class="button quiet small"
        onClick={() => setParams(Object.fromEntries(shown.map((name) => [name, null])))}
      >
        Clear
      </button>
    </div>
  );
}

function StateTabs({ counts, chosen }: { counts: JobCount | null; chosen: string | null }) {
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
        const n = counts?.states[state];
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

function totalOf(kind: JobsKind, counts: JobCount | null, state: string | undefined): string | null {
  if (counts === null) return null;
  if (kind !== "jobs" || state === undefined) return count(counts.total);
  const chosen = state.split(",").flatMap((one) => counts.states[one as JobState] ?? []);
  return count({ count: chosen.reduce((n, one) => n + one.count, 0), more: chosen.some(({ more }) => more) });
}

function List({
  kind,
  asked,
  counts,
  filter,
}: {
  kind: JobsKind;
  asked: Params;
  counts: JobCount | null;
  filter: Readonly<Record<string, string>>;
}) {
  const pages = useSignal<readonly JobLine[]>([]);
  const next = useSignal<{ cursor: string | null; cut: boolean } | null>(null);
  const error = useSignal<Error | null>(null);
  const loading = useSignal(true);
  const stale = useSignal(false);
  const picked = useSignal<ReadonlySet<string>>(new Set());
  const everything = useSignal(false);
  const current = useSignal(-1);
  const lastPicked = useRef(-1);
  const body = useRef<HTMLTableSectionElement>(null);

  const load = (cursor: string | null): void => {
    loading.value = true;
    get<JobList>("/jobs", { ...asked, limit: 50, cursor }).then(
      (page) => {
        pages.value = cursor === null ? page.jobs : [...pages.value, ...page.jobs];
        next.value = { cursor: page.cursor, cut: page.cut };
        error.value = null;
        loading.value = false;
        if (cursor === null) stale.value = false;
      },
      (failure: unknown) => {
        error.value = failure as Error;
        loading.value = false;
      },
    );
  };
  const again = (): void => {
    picked.value = new Set();
    everything.value = false;
    load(null);
  };
  useEffect(() => load(null), []);
  // The first page follows the changes; a list that somebody works in does not jump under the hand.
  const lastLoad = useRef(Date.now());
  useEffect(
    () =>
      version.subscribe(() => {
        if (!live.peek() || next.peek() === null) return;
        const busy = picked.peek().size > 0 || pages.peek().length > 50 || current.peek() >= 0;
        if (busy) stale.value = true;
        else if (Date.now() - lastLoad.current > 1_900) {
          lastLoad.current = Date.now();
          load(null);
        }
      }),
    [],
  );

  const jobs = pages.value;
  const chosenFilter = (): FilterJson => {
    if (!everything.value) return { ids: [...picked.value] };
    const { ids, state, queue, name, since, until, ...rest } = {
      ...filter,
      ...(asked["state"] ? { state: String(asked["state"]) } : {}),
    } as Record<string, string>;
    return {
      ...rest,
      ...(ids === undefined ? {} : { ids: ids.split(",") }),
      ...(state === undefined ? {} : { state: state.split(",") as JobState[] }),
      ...(queue === undefined ? {} : { queue: queue.split(",") }),
      ...(name === undefined ? {} : { name: name.split(",") }),
      ...(since === undefined ? {} : { since: Number(since) }),
      ...(until === undefined ? {} : { until: Number(until) }),
      ...(kind === "retries" ? { retrying: true } : {}),
    };
  };
  const pick = (index: number, range: boolean): void => {
    const chosen = new Set(picked.value);
    const job = jobs[index];
    if (job === undefined) return;
    const on = !chosen.has(job.id);
    const from = range && lastPicked.current >= 0 ? lastPicked.current : index;
    for (const one of jobs.slice(Math.min(from, index), Math.max(from, index) + 1)) {
      if (on) chosen.add(one.id);
      else chosen.delete(one.id);
    }
    lastPicked.current = index;
    picked.value = chosen;
    everything.value = false;
  };
  const act = (action: BulkAction): void => {
    const job = jobs[current.value];
    if (picked.value.size === 0 && !everything.value && job !== undefined) picked.value = new Set([job.id]);
    if (picked.value.size === 0 && !everything.value) return;
    startBulk(action, chosenFilter(), again);
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
        picked.value = new Set();
        everything.value = false;
        current.value = -1;
      }),
      ...(Object.keys(actions) as BulkAction[]).map((action) =>
        onKey(actions[action].key, () => act(action)),
      ),
    ];
    return () => offs.forEach((off) => off());
  });

  const total = totalOf(kind, counts, filter["state"]);
  const some = picked.value.size > 0 || everything.value;
  return (
    <section class="panel" aria-label="Jobs">
      {stale.value && !some && (
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
              ? `All ${total ?? ""} ${inWords(chosenFilter())}`
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
          <button
            type="button"
            class="button quiet small"
            onClick={() => {
              picked.value = new Set();
              everything.value = false;
            }}
          >
            None
          </button>
        </div>
      )}
      {error.value !== null && <Failure error={error.value} again={() => load(null)} />}
      {jobs.length === 0 ? (
        next.value === null ? (
          error.value === null && (
            <div class="empty" role="status">
              <p>Loading…</p>
            </div>
          )
        ) : (
          <Empty icon="jobs" title={next.value.cut ? "Nothing among the newest" : kinds[kind].empty}>
            <p>
              {next.value.cut
                ? "The search looks at 20,000 to 50,000 jobs at a time. Go on to look further back."
                : Object.keys(filter).length > 0
                  ? "Try fewer filters, or another state."
                  : "Jobs appear here within a second of being enqueued."}
            </p>
          </Empty>
        )
      ) : (
        <div class="scroll">
          <table>
            <thead>
              <tr>
                <th scope="col" style={{ width: "36px" }}>
                  <label class="hit">
                    <input
                      type="checkbox"
                      aria-label="Choose all on this page"
                      checked={jobs.length > 0 && picked.value.size >= jobs.length}
                      onChange={(event) => {
                        picked.value = event.currentTarget.checked
                          ? new Set(jobs.map(({ id }) => id))
                          : new Set();
                        everything.value = false;
                      }}
                    />
                  </label>
                </th>
                <th scope="col">Job</th>
                <th scope="col">State</th>
                <th scope="col" class="medium-only">
                  Queue
                </th>
                <th scope="col" class="num medium-only">
                  Attempt
                </th>
                <th scope="col" class="num wide-only">
                  Took
                </th>
                <th scope="col" class="num">
                  {kind === "jobs" ? "Created" : "Due"}
                </th>
              </tr>
            </thead>
            <tbody ref={body}>
              {jobs.map((job, index) => (
                <tr
                  key={job.id}
                  class={`${picked.value.has(job.id) || everything.value ? "picked" : ""} ${index === current.value ? "current" : ""}`}
                  onClick={(event) => {
                    if ((event.target as Element).closest("a, input, label, button") === null)
                      go(`/jobs/${job.id}`);
                  }}
                >
                  <td>
                    <label class="hit">
                      <input
                        type="checkbox"
                        aria-label={`Choose ${job.name} ${job.id}`}
                        checked={picked.value.has(job.id) || everything.value}
                        onClick={(event) => {
                          pick(index, event.shiftKey);
                        }}
                      />
                    </label>
                  </td>
                  <td style={{ maxWidth: "460px" }}>
                    <JobLink id={job.id}>{job.name}</JobLink>
                    <span class="sub mono clip">
                      {job.error !== null && job.state !== "done"
                        ? job.error
                        : (job.preview ?? (job.inputBytes > 0 ? `(${bytes(job.inputBytes)})` : ""))}
                    </span>
                  </td>
                  <td>
                    <JobStateOf job={job} />
                  </td>
                  <td class="medium-only">
                    <a class="link" href={href(`/queues/${job.queue}`)}>
                      {job.queue}
                    </a>
                    {job.lane !== null && <span class="sub clip">{job.lane}</span>}
                  </td>
                  <td class="num medium-only">
                    {job.attempt}
                    <span class="muted"> / {job.maxAttempts}</span>
                  </td>
                  <td class="num wide-only muted nowrap">
                    {job.startedAt === null || job.endedAt === null
                      ? "—"
                      : duration(job.endedAt - job.startedAt)}
                  </td>
                  <td class="num muted">
                    <Ago at={kind === "jobs" ? job.createdAt : job.runAt} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      <footer>
        <span>
          {jobs.length === 0
            ? ""
            : `${plural(jobs.length, "job")} shown${total === null ? "" : ` of ${total}`}`}
        </span>
        <span class="spring" />
        {next.value?.cut === true && (
          <span>Searched as far as {jobs.at(-1) === undefined ? "the bound" : "here"}.</span>
        )}
        {next.value !== null && next.value.cursor !== null && (
          <button
            type="button"
            class="button small"
            disabled={loading.value}
            onClick={() => load(next.value?.cursor ?? null)}
          >
            {next.value.cut ? "Search on" : "Load more"}
          </button>
        )}
      </footer>
    </section>
  );
}
