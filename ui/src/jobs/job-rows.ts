// The rows of a list of jobs: pages that are asked for one behind the other, and what is known of them since. Rows that are shown
// stay where they are: they change in place, and what has come meanwhile is counted until somebody wants to see it.
//
// Invariants: an answer that was overtaken changes nothing; a page goes behind the one it was asked for; no job is there twice.
// No browser in here: who asks, and who is told, is handed in.
import type { CappedCount, JobLine, JobList } from "../../../src/dashboard/api/contract.ts";

const pageSize = 50;
/** From so many rows on the pages are larger: who goes this far goes on. */
const many = 200;
const largePage = 200;
/** What has come meanwhile is counted among so many. */
export const HEAD = 100;
/** As many are asked for by their ids at once: an address of 4 kB passes everywhere, and the server gives no page over 200. */
const mostIds = 100;
/** A search that stopped on the way goes on by itself so often, until there is something to look at. */
const mostOnward = 10;

export interface Rows {
  readonly jobs: readonly JobLine[];
  /** Null until the first page is there. */
  readonly next: { readonly cursor: string | null; readonly cut: boolean } | null;
  readonly error: Error | null;
  readonly loading: boolean;
  /** Jobs that match and are not shown, where they would stand between the others. */
  readonly fresh: CappedCount;
  /** Shown, and not there any more. */
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
  /** Of the page that is on its way; another first page ends it. */
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

  /** From the top, with what has come meanwhile. */
  first(): void {
    this.close();
    this.#paging = new AbortController();
    void this.#page(null, this.#paging.signal);
  }

  /** The page behind the last one. */
  more(): void {
    const { next, loading } = this.#state;
    if (loading || next === null || next.cursor === null) return;
    void this.#page(next.cursor, this.#paging.signal);
  }

  /** Looks what has become of the rows in sight, and what has come. One look at a time. `told`: the first page, where it is known. */
  async look(inSight: readonly string[], told: JobList | null = null): Promise<void> {
    if (this.#looking !== null || this.#state.next === null) return;
    const controller = new AbortController();
    this.#looking = controller;
    const { signal } = controller;
    try {
      const head = told ?? (await this.#ask({ cursor: null, limit: HEAD }, signal));
      if (signal.aborted) return;
      // Where nothing is shown, nothing can jump.
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

  /** What is on its way comes to nothing. */
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

/** Each row as it is known now, at its place. */
function updated(shown: readonly JobLine[], fresh: readonly JobLine[]): readonly JobLine[] {
  const byId = new Map(fresh.map((job) => [job.id, job]));
  return shown.some(({ id }) => byId.has(id)) ? shown.map((job) => byId.get(job.id) ?? job) : shown;
}

/**
 * How many of the first page are not shown. What stands behind the last row that is shown comes with the next page, unless
 * there was none.
 */
function freshIn(head: JobList, shown: readonly JobLine[], complete: boolean): CappedCount {
  const known = new Set(shown.map(({ id }) => id));
  const last = head.jobs.findLastIndex(({ id }) => known.has(id));
  const within = last === -1 || complete ? head.jobs : head.jobs.slice(0, last);
  const count = within.filter(({ id }) => !known.has(id)).length;
  return { count, more: last === -1 && head.cursor !== null && count > 0 };
}
