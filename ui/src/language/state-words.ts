// The words for states and for kinds of steps: what the API calls them is data, and stays as it is in addresses and filters.
import { t } from "./translation.ts";

const states: Readonly<Record<string, string>> = {
  scheduled: t("scheduled"),
  ready: t("ready"),
  running: t("running"),
  waiting: t("waiting"),
  done: t("done"),
  dead: t("dead"),
  failed: t("failed"),
  cancelled: t("cancelled"),
  retrying: t("retrying"),
  paused: t("paused"),
  draining: t("draining"),
  quiet: t("quiet"),
  stopping: t("stopping"),
  pending: t("pending"),
  open: t("open##state"),
  "half-open": t("half-open"),
  closed: t("closed"),
  regressed: t("regressed"),
  ignored: t("ignored"),
  resolved: t("resolved"),
  stopped: t("stopped"),
  "stands still": t("stands still"),
  gone: t("gone"),
  expected: t("expected"),
};

const kinds: Readonly<Record<string, string>> = {
  step: t("step"),
  sleep: t("sleep"),
  signal: t("signal"),
  call: t("call"),
  job: t("job"),
  run: t("run"),
};

/** What a newer server calls by another name is shown by that name. */
export function stateWord(state: string): string {
  return states[state] ?? state;
}

/** As a heading. */
export function stateName(state: string): string {
  const word = stateWord(state);
  return word.charAt(0).toUpperCase() + word.slice(1);
}

export function stepWord(kind: string): string {
  return kinds[kind] ?? kind;
}
