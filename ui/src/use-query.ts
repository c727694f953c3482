// Data of a screen: asked for when the screen or its parameters change, and again when the live stream tells of a change,
// at most every two seconds. What was there stays until the new is there, so nothing flickers.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useCallback, useEffect, useRef } from "preact/hooks";
import { locked } from "./api.ts";
import { version } from "./live.ts";

const soonestMs = 2_000;

export interface Query<T> {
  readonly data: T | null;
  readonly error: Error | null;
  readonly loading: boolean;
  readonly again: () => void;
}

export function useQuery<T>(
  key: string,
  ask: (signal: AbortSignal) => Promise<T>,
  options: { live?: boolean } = {},
): Query<T> {
  const result = useSignal<{ key: string; data: T } | null>(null);
  const error = useSignal<Error | null>(null);
  const loading = useSignal(true);
  const asked = useRef(0);
  const running = useRef<AbortController | null>(null);
  const latest = useRef(ask);
  latest.current = ask;
  const keyNow = useRef(key);
  keyNow.current = key;

  const load = useCallback(() => {
    running.current?.abort();
    const controller = new AbortController();
    running.current = controller;
    asked.current = Date.now();
    loading.value = true;
    const of = keyNow.current;
    latest.current(controller.signal).then(
      (data) => {
        if (controller.signal.aborted) return;
        result.value = { key: of, data };
        error.value = null;
        loading.value = false;
      },
      (failure: unknown) => {
        if (controller.signal.aborted) return;
        error.value = failure instanceof Error ? failure : new Error(String(failure));
        loading.value = false;
      },
    );
  }, [result, error, loading]);

  useEffect(() => {
    load();
    return () => running.current?.abort();
  }, [key, load]);

  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  useSignalEffect(() => {
    void version.value;
    if (options.live !== true || locked.peek() || timer.current !== null) return;
    const waitMs = Math.max(0, soonestMs - (Date.now() - asked.current));
    timer.current = setTimeout(() => {
      timer.current = null;
      load();
    }, waitMs);
  });
  useEffect(
    () => () => {
      if (timer.current !== null) clearTimeout(timer.current);
    },
    [],
  );

  return {
    data: result.value?.data ?? null,
    error: error.value,
    loading: loading.value,
    again: load,
  };
}
