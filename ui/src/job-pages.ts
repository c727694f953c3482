// The pages of a list of jobs. The first follows the changes; a list that somebody works in does not jump under the hand,
// and says that there are changes instead.
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JobLine, JobList } from "../../src/dashboard/contract.ts";
import { get, type Params } from "./api.ts";
import { live, version } from "./live.ts";

const pageSize = 50;
const soonestMs = 1_900;
const mostOnward = 10;

export interface JobPages {
  readonly jobs: ReadonlySignal<readonly JobLine[]>;
  /** Null until the first page is there. */
  readonly next: ReadonlySignal<{ readonly cursor: string | null; readonly cut: boolean } | null>;
  readonly error: ReadonlySignal<Error | null>;
  readonly loading: ReadonlySignal<boolean>;
  readonly stale: ReadonlySignal<boolean>;
  readonly more: () => void;
  readonly again: () => void;
}

/** `busy`: whether somebody works in the list. */
export function useJobPages(asked: Params, busy: () => boolean): JobPages {
  const jobs = useSignal<readonly JobLine[]>([]);
  const next = useSignal<{ cursor: string | null; cut: boolean } | null>(null);
  const error = useSignal<Error | null>(null);
  const loading = useSignal(true);
  const stale = useSignal(false);
  const loadedAt = useRef(Date.now());

  const load = (cursor: string | null, onward = mostOnward): void => {
    loading.value = true;
    get<JobList>("/jobs", { ...asked, limit: pageSize, cursor }).then(
      (page) => {
        jobs.value = cursor === null ? page.jobs : [...jobs.value, ...page.jobs];
        next.value = { cursor: page.cursor, cut: page.cut };
        error.value = null;
        loading.value = false;
        if (cursor === null) stale.value = false;
        // A search that stopped on the way goes on by itself until there is something to look at.
        if (page.cut && onward > 0 && jobs.peek().length < pageSize) load(page.cursor, onward - 1);
      },
      (failure: unknown) => {
        error.value = failure as Error;
        loading.value = false;
      },
    );
  };
  useEffect(() => load(null), []);
  useEffect(
    () =>
      version.subscribe(() => {
        if (!live.peek() || next.peek() === null) return;
        if (busy() || jobs.peek().length > pageSize) stale.value = true;
        else if (Date.now() - loadedAt.current > soonestMs) {
          loadedAt.current = Date.now();
          load(null);
        }
      }),
    [],
  );
  return {
    jobs,
    next,
    error,
    loading,
    stale,
    more: () => load(next.peek()?.cursor ?? null),
    again: () => load(null),
  };
}
