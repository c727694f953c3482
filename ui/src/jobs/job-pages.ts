// Rows of a job list. The live stream updates the first page; other visible rows are read when something changed, at
// most as often as the settings allow. job-rows.ts applies the answers.
import { useComputed, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JobList } from "../../../src/dashboard/api/contract.ts";
import { get, locked, type Params, query } from "../data/api.ts";
import { QueryRetry } from "../data/query-retry.ts";
import { HEAD, JobRows, type Rows } from "./job-rows.ts";
import { live } from "../data/live-stream.ts";
import { refresh } from "../data/page-settings.ts";
import { follow } from "../data/followed-topics.ts";

export interface JobPages {
  readonly rows: ReadonlySignal<Rows>;
  readonly more: () => void;
  readonly again: () => void;
}

/** Parameters that a topic may have. */
const longestFilter = 1_000;

/** `inSight`: ids of the rows that are in the document. */
export function useJobPages(asked: Params, inSight: () => readonly string[]): JobPages {
  const kept = useRef<JobRows | null>(null);
  kept.current ??= new JobRows(
    (wanted, signal) => get<JobList>("/jobs", "ids" in wanted ? wanted : { ...asked, ...wanted }, signal),
    (now) => (rows.value = now),
  );
  const pages = kept.current;
  const rows = useSignal<Rows>(pages.now);
  useEffect(() => {
    pages.first();
    return () => pages.close();
  }, []);
  useEffect(() => {
    const retry = new QueryRetry();
    const off = rows.subscribe(({ error, loading }) => {
      if (loading) retry.stop();
      else if (error === null) retry.succeeded();
      else retry.failed(error, () => pages.first());
    });
    return () => {
      off();
      retry.stop();
    };
  }, []);
  // A rejected request would be rejected again.
  const there = useComputed(() => rows.value.next !== null).value;
  useEffect(() => {
    if (!there) return undefined;
    const filter = query({ ...asked, limit: HEAD }).slice(1);
    const topic = filter.length > longestFilter ? null : `jobs?${filter}`;
    let timer: ReturnType<typeof setTimeout> | null = null;
    let lookedAt = Date.now();
    let head: JobList | null = null;
    let looking = false;
    let over = false;
    const look = async (): Promise<void> => {
      timer = null;
      // One update at a time; later ones wait.
      if (!live.peek() || locked.peek() || looking) return;
      lookedAt = Date.now();
      const told = head;
      head = null;
      looking = true;
      await pages.look(inSight(), told);
      looking = false;
      if (head !== null && !over) soon();
    };
    const soon = (): void => {
      if (!live.peek()) return;
      timer ??= setTimeout(
        () => void look(),
        Math.max(0, Number(refresh.peek()) * 1_000 - (Date.now() - lookedAt)),
      );
    };
    const offs = [
      follow("overview", {
        value: (_value, how) => {
          // The list's own topic covers the first rows.
          if (how !== "age" && (topic === null || rows.peek().jobs.length > HEAD)) soon();
        },
        ask: soon,
      }),
    ];
    if (topic !== null)
      offs.push(
        follow(topic, {
          value: (value) => {
            head = value as unknown as JobList;
            soon();
          },
          ask: soon,
        }),
      );
    return () => {
      over = true;
      for (const off of offs) off();
      if (timer !== null) clearTimeout(timer);
    };
  }, [there]);
  return { rows, more: () => pages.more(), again: () => pages.first() };
}
