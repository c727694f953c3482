// Data of a screen: asked for when the screen or its parameters change. A query that names its topic gets what the live stream
// tells of it, and asks no more; one whose topic is only a sign (a page of a list, what a filter leaves) asks again when that
// changes. Both as often as the settings say. What was there stays until the new is there, so nothing flickers; and what was
// read earlier never replaces what was read later: a job that was paused here is not shown as it was before. What failed is
// asked for again by itself (query-retry.ts).
import { useSignal } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { locked, readAtOf, renewed } from "./api.ts";
import { QueryRetry } from "./query-retry.ts";
import { live as going } from "./live-stream.ts";
import { refresh } from "./page-settings.ts";
import { follow } from "./followed-topics.ts";

export interface Query<T> {
  readonly data: T | null;
  readonly error: Error | null;
  readonly loading: boolean;
  readonly again: () => void;
}

export interface Live<T> {
  /** What the stream tells of it is what would be answered. */
  readonly topic?: string | undefined;
  /** Whatever changes with this topic: it is asked for again. */
  readonly sign?: string | undefined;
  /** What is told beside what is there; null: it must be asked for. */
  readonly merge?: (had: T, told: T) => T | null;
}

export function useQuery<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  options: Live<T> = {},
): Query<T> {
  const result = useSignal<{ key: string; data: T; readAt: number } | null>(null);
  const error = useSignal<Error | null>(null);
  const loading = useSignal(true);
  const asked = useRef(0);
  const running = useRef<AbortController | null>(null);
  /** Waits for the answer that is on its way. */
  const answered = useRef<(() => void) | null>(null);
  const retry = useRef<QueryRetry | null>(null);
  retry.current ??= new QueryRetry();
  const latest = useRef({ ask, key, options });
  latest.current = { ask, key, options };

  const stop = useCallback(() => {
    running.current?.abort();
    retry.current?.stop();
  }, []);

  const load = useCallback(() => {
    stop();
    const controller = new AbortController();
    running.current = controller;
    asked.current = Date.now();
    loading.value = true;
    const { ask: now, key: of } = latest.current;
    const ended = (): void => {
      loading.value = false;
      running.current = null;
      const then = answered.current;
      answered.current = null;
      then?.();
    };
    now(controller.signal).then(
      (data) => {
        if (controller.signal.aborted) return;
        result.value = { key: of, data, readAt: readAtOf(controller.signal) };
        error.value = null;
        retry.current?.succeeded();
        ended();
      },
      (failure: unknown) => {
        if (controller.signal.aborted) return;
        error.value = failure instanceof Error ? failure : new Error(String(failure));
        retry.current?.failed(failure, load);
        ended();
      },
    );
  }, [result, error, loading, stop]);

  useEffect(() => {
    load();
    return stop;
  }, [key, load, stop]);

  useEffect(() => {
    let told = false;
    return renewed.subscribe(() => {
      if (told) load();
      told = true;
    });
  }, [load]);

  const { topic, sign } = options;
  const about = topic ?? sign ?? null;
  // What was never answered is not followed: a topic that is refused would end the stream of all tabs.
  const there = result.value?.key === key;
  const followed = there || about === null ? about : "overview";
  useEffect(() => {
    if (followed === null) return undefined;
    let timer: ReturnType<typeof setTimeout> | null = null;
    let told: { readonly value: T; readonly readAt: number } | null = null;
    let shownAt = asked.current;
    const show = (): void => {
      timer = null;
      // Paused meanwhile: what has changed comes when it goes on.
      if (!going.peek() || locked.peek()) return;
      // An answer on its way may be the later one.
      if (running.current !== null) {
        answered.current = show;
        return;
      }
      shownAt = Date.now();
      const had = result.peek();
      const update = told;
      told = null;
      // Earlier than what is here. Where several servers answer, their clocks may differ: what is so now is asked for.
      if (update === null || had === null || had.key !== key || update.readAt < had.readAt) return load();
      const merge = latest.current.options.merge;
      const data = merge === undefined ? update.value : merge(had.data, update.value);
      if (data === null) return load();
      result.value = { key, data, readAt: update.readAt };
      error.value = null;
    };
    const soon = (): void => {
      const waitMs = Math.max(0, Number(refresh.peek()) * 1_000 - (Date.now() - shownAt));
      timer ??= setTimeout(show, waitMs);
    };
    const off = follow(
      followed,
      {
        value: (value, how, readAt) => {
          if (there && followed === topic) told = { value: value as unknown as T, readAt };
          else if (how === "age") return;
          soon();
        },
        ask: soon,
      },
      asked.current,
    );
    return () => {
      off();
      if (timer !== null) clearTimeout(timer);
      if (answered.current === show) answered.current = null;
    };
  }, [followed, there, topic, key]);

  return {
    data: result.value?.data ?? null,
    error: error.value,
    loading: loading.value,
    again: load,
  };
}
