/**
 * SIGTERM and SIGINT: the first asks for a graceful end, the second for an immediate one.
 *
 * Invariant: the listeners are removed when the worker has stopped, so that they neither leak nor keep a later
 * signal from ending the process.
 * Not here: what stopping means (worker.ts).
 */
import process from "node:process";

const signals = ["SIGTERM", "SIGINT"] as const;
const exitCodes = { SIGTERM: 143, SIGINT: 130 } as const;

/** What to do at the first and at the second signal. */
export interface SignalActions {
  readonly first: (signal: string) => void;
  /** Resolves when the process may exit. */
  readonly second: (signal: string) => Promise<void>;
}

/**
 * Listens until the returned function is called.
 *
 * @example
 * const off = onSignals({ first: () => void worker.stop(), second: () => worker.hurry() });
 */
export function onSignals(actions: SignalActions): () => void {
  let seen = 0;
  const listener = (signal: (typeof signals)[number]): void => {
    seen += 1;
    if (seen === 1) actions.first(signal);
    else if (seen === 2) void actions.second(signal).finally(() => process.exit(exitCodes[signal]));
    else process.exit(exitCodes[signal]);
  };
  for (const signal of signals) process.on(signal, listener);
  return () => {
    for (const signal of signals) process.off(signal, listener);
  };
}
