// The rows of a job list: pages and their updates. Visible rows keep their place and change there; new jobs are counted
// until the reader asks for them. Invariants: an outdated answer changes nothing; a page is appended only after the page
// it was requested for; no job is listed twice. No browser API: requests and notifications are passed in.
import type { CappedCount, JobLine, JobList } from "../../../src/dashboard/api/contract.ts";

const pageSize = 50;
/** From this many rows on, pages are larger. */
const many = 200;
const largePage = 200;
/** New jobs are counted up to this number. */
export const HEAD = 100;
/** Ids per request: an address of 4 kB passes everywhere, and the server returns at most 200 rows. */
const mostIds = 100;
/** Times a search continues by itself while it has found nothing. */
const mostOnward = 10;

export interface Rows {
  readonly jobs: readonly JobLine[];
  /** Null until the first page has arrived. */
  readonly next: { readonly cursor: string | null; readonly cut: boolean } | null;
  readonly error: Error | null;
  readonly loading: boolean;
  /** Matching jobs that are not shown yet. */
  readonly fresh: CappedCount;
  /** Listed jobs that no longer exist. */
  readonly gone: ReadonlySet<string>;
}

export type Asked =
  | { readonly cursor: string | null; readonly limit: number }
  | { readonly ids: readonly string[]; readonly limit: number };

const none: CappedCount = { count: 0, more: false };

export class JobRows {
  #state: Rows = { jobs: [], next: null, error: null, loading: false, fresh: none, gone: new Set() };
  readonly #ask: (asked: Asked, signal: AbortSignal) => Promise<JobList>;
  readonly #tell: (rows: Rows) => void;
  /** Identifies the pending page; a new first page cancels it. */
  #paging = new AbortController();
  #looking: AbortController | null = null;

  constructor(
    ask: (asked: Asked, signal: AbortSignal) => Promise<JobList>,
    tell: (rows: Rows) => void = () => {},
  ) {
    this.#ask = ask;
    this.#tell = tell;
  }

  get now(): Rows {
    return this.#state;
  }

  /** Reloads the first page, with new jobs. */
  first(): void {
    this.close();
    this.#paging = new AbortController();
    void this.#page(null, this.#paging.signal);
  }

  /** Loads the next page. */
  more(): void {
    const { next, loading } = this.#state;
    if (loading || next === null || next.cursor === null) return;
    void this.#page(next.cursor, this.#paging.signal);
  }

  /** Updates the visible rows and counts new jobs. One update at a time. `told`: the first page, if it is known. */
  async look(inSight: readonly string[], told: JobList | null = null): Promise<void> {
    if (this.#looking !== null || this.#state.next === null) return;
    const controller = new AbortController();
    this.#looking = controller;
    const { signal } = controller;
    try {
      const head = told ?? (await this.#ask({ cursor: null, limit: HEAD }, signal));
      if (signal.aborted) return;
      // An empty list has no row that could move.
      if (this.#state.jobs.length === 0 && head.jobs.length > 0 && !this.#state.loading) {
        this.#looking = null;
        this.first();
        return;
      }
      const { jobs, next } = this.#state;
      const fresh = freshIn(head, jobs, next?.cursor === null);
      this.#set({ jobs: updated(jobs, head.jobs), fresh, error: null });
      const seen = new Set(head.jobs.map(({ id }) => id));
      const others = inSight.filter((id) => !seen.has(id));
      for (let from = 0; from < others.length; from += mostIds) {
        const ids = others.slice(from, from + mostIds);
        const answer = await this.#ask({ ids, limit: ids.length }, signal);
        if (signal.aborted) return;
        const there = new Set(answer.jobs.map(({ id }) => id));
        const gone = new Set([...this.#state.gone].filter((id) => !there.has(id)));
        for (const id of ids) if (!there.has(id)) gone.add(id);
        this.#set({ jobs: updated(this.#state.jobs, answer.jobs), gone });
      }
    } catch (error) {
      if (!signal.aborted) this.#set({ error: error as Error });
    } finally {
      if (this.#looking === controller) this.#looking = null;
    }
  }

  /** Discards pending answers. */
  close(): void {
    this.#paging.abort();
    this.#looking?.abort();
    this.#looking = null;
  }

  async #page(from: string | null, signal: AbortSignal): Promise<void> {
    this.#set({ loading: true });
    let cursor = from;
    try {
      for (let onward = mostOnward; ; onward -= 1) {
        const limit = this.#state.jobs.length >= many && cursor !== null ? largePage : pageSize;
        const page = await this.#ask({ cursor, limit }, signal);
        if (signal.aborted) return;
        const before = cursor === null ? [] : this.#state.jobs;
        const known = new Set(before.map(({ id }) => id));
        const jobs = [...before, ...page.jobs.filter(({ id }) => !known.has(id))];
        const goesOn = page.cut && onward > 0 && jobs.length < pageSize;
        this.#set({
          jobs,
          next: { cursor: page.cursor, cut: page.cut },
          error: null,
          loading: goesOn,
          ...(cursor === null ? { fresh: none, gone: new Set<string>() } : {}),
        });
        if (!goesOn) return;
        ({ cursor } = page);
      }
    } catch (error) {
      if (!signal.aborted) this.#set({ error: error as Error, loading: false });
    }
  }

  #set(change: Partial<Rows>): void {
    this.#state = { ...this.#state, ...change };
    this.#tell(this.#state);
  }
}

/** Replaces rows in place. */
function updated(shown: readonly JobLine[], fresh: readonly JobLine[]): readonly JobLine[] {
  const byId = new Map(fresh.map((job) => [job.id, job]));
  return shown.some(({ id }) => byId.has(id)) ? shown.map((job) => byId.get(job.id) ?? job) : shown;
}

/**
 * Jobs of the first page that are not listed. Jobs after the last listed row come with the next page, unless there
 * is none.
 */
function freshIn(head: JobList, shown: readonly JobLine[], complete: boolean): CappedCount {
  const known = new Set(shown.map(({ id }) => id));
  const last = head.jobs.findLastIndex(({ id }) => known.has(id));
  const within = last === -1 || complete ? head.jobs : head.jobs.slice(0, last);
  const count = within.filter(({ id }) => !known.has(id)).length;
  return { count, more: last === -1 && head.cursor !== null && count > 0 };
}
