// A queue's settings as texts: label, value, source, and the changes of a form. Pure.
import type { QueueDetail } from "../../../src/dashboard/api/contract.ts";
import { NO_SETTINGS } from "../../../src/limits/rules/no-settings.ts";
import { duration, rate, rateOf, rateWords, written } from "../text/quantities.ts";

type Settings = QueueDetail["settings"];
type Name = Exclude<keyof Settings, "retention"> | "done" | "dead";

interface Setting {
  readonly name: Name;
  readonly label: string;
  /** The default, and where it comes from. */
  readonly unset: string;
  readonly by: "code" | "default";
  readonly hint: string;
  /** The value for reading. */
  readonly shown: (settings: Settings) => string | null;
  /** The value for a form; null: set in code in a way that the form cannot express. */
  readonly text: (settings: Settings) => string | null;
  /** @throws Error with the expected notation */
  readonly parsed: (text: string) => unknown;
}

const whole = (name: "slots" | "total" | "concurrency" | "weight") => ({
  name,
  shown: (settings: Settings) => (settings[name] === null ? null : String(settings[name])),
  text: (settings: Settings) => (settings[name] === null ? "" : String(settings[name])),
  parsed: (text: string) => {
    const value = Number(text);
    if (!Number.isInteger(value)) throw new Error(`${text} is not a whole number.`);
    return value;
  },
});

const kept = (name: "done" | "dead") => {
  const of = ({ retention }: Settings): number | null =>
    retention === null ? null : name === "done" ? retention.doneMs : retention.deadMs;
  return {
    name,
    shown: (settings: Settings) => {
      const ms = of(settings);
      return ms === null ? null : ms === 0 ? "for ever" : duration(ms);
    },
    text: (settings: Settings) => {
      const ms = of(settings);
      return ms === null ? "" : written(ms);
    },
    parsed: (text: string) => text,
  };
};

/** "5s to 5m", or the first alone. */
function span(text: string): { base: string; max?: string } {
  const [, base, max] = /^([\w.]+)(?:\s*(?:to|,)\s*([\w.]+))?$/.exec(text) ?? [];
  if (base === undefined) throw new Error(`Write ${text} as 5s to 5m.`);
  return max === undefined ? { base } : { base, max };
}

export const settings: readonly Setting[] = [
  {
    ...whole("slots"),
    label: "Slots of each worker",
    unset: "set when the workers start",
    by: "code",
    hint: "set at start",
  },
  {
    ...whole("total"),
    label: "Slots of all workers",
    unset: "not split",
    by: "default",
    hint: "not split",
  },
  {
    ...whole("concurrency"),
    label: "Concurrency over the cluster",
    unset: "unlimited",
    by: "default",
    hint: "unlimited",
  },
  {
    name: "rate",
    label: "Rate",
    unset: "unlimited",
    by: "default",
    hint: "100 per 1m",
    shown: ({ rate: known }) => (known === null ? null : rate(known)),
    text: ({ rate: known }) => (known === null ? "" : rateWords(known)),
    parsed: rateOf,
  },
  { ...whole("weight"), label: "Weight", unset: "1", by: "default", hint: "1" },
  {
    name: "backoff",
    label: "Backoff",
    unset: "set by each job",
    by: "code",
    hint: "set by each job; or 10s to 1h",
    shown: ({ backoff }) => {
      switch (backoff?.kind) {
        case undefined:
          return null;
        case "exponential":
          return `${duration(backoff.baseMs)} to ${duration(backoff.maxMs)}`;
        case "fixed":
          return duration(backoff.ms);
        case "power":
          return `growing to ${duration(backoff.maxMs)}`;
        case "off":
          return "none";
      }
    },
    text: ({ backoff }) =>
      backoff === null
        ? ""
        : backoff.kind === "exponential"
          ? `${written(backoff.baseMs)} to ${written(backoff.maxMs)}`
          : null,
    parsed: span,
  },
  {
    name: "breaker",
    label: "Breaker",
    unset: "off",
    by: "default",
    hint: "off; or 10 failures, 30s",
    shown: ({ breaker }) =>
      breaker === null ? null : `after ${breaker.after} failures, for ${duration(breaker.cooldownMs)}`,
    text: ({ breaker }) =>
      breaker === null ? "" : `${breaker.after} failures, ${written(breaker.cooldownMs)}`,
    parsed: (text) => {
      const [, after, cooldown] = /^(\d+)(?:\s*failures?)?(?:\s*,?\s+(?:for\s+)?([\w.]+))?$/.exec(text) ?? [];
      if (after === undefined) throw new Error("Write a breaker as: 10 failures, 30s");
      return { after: Number(after), ...(cooldown === undefined ? {} : { cooldown }) };
    },
  },
  {
    name: "cooldown",
    label: "Cool-down",
    unset: "off",
    by: "default",
    hint: "off; or 5s to 5m",
    shown: ({ cooldown }) =>
      cooldown === null ? null : `${duration(cooldown.baseMs)} to ${duration(cooldown.maxMs)}`,
    text: ({ cooldown }) =>
      cooldown === null ? "" : `${written(cooldown.baseMs)} to ${written(cooldown.maxMs)}`,
    parsed: span,
  },
  { ...kept("done"), label: "Keep done jobs", unset: "7 d", by: "default", hint: "7d" },
  { ...kept("dead"), label: "Keep dead jobs", unset: "30 d", by: "default", hint: "30d" },
];

/** A setting with its value, source, and the value a temporary limit reverts to. */
export interface SettingLine {
  readonly name: Name;
  readonly label: string;
  readonly value: string;
  readonly by: "code" | "default" | "set";
  readonly back: { readonly untilAt: number; readonly value: string } | null;
}

export function settingLines({ settings: known, temporaryLimit }: QueueDetail): SettingLine[] {
  return settings.map(({ name, label, unset, by, shown }) => {
    const value = shown(known);
    const key = name === "done" || name === "dead" ? "retention" : name;
    const back = temporaryLimit?.back ?? {};
    const passing = temporaryLimit !== null && (temporaryLimit.back === null || Object.hasOwn(back, key));
    const before = passing ? shown({ ...NO_SETTINGS, ...(back as Partial<Settings>) }) : null;
    return {
      name,
      label,
      value: value ?? unset,
      by: value === null ? by : "set",
      // Without an earlier row, unset values do not change when the limit ends.
      back:
        passing && before !== value && temporaryLimit !== null
          ? { untilAt: temporaryLimit.untilAt, value: before ?? unset }
          : null,
    };
  });
}

/** The changed settings; an empty field means the default. @throws Error for an invalid value */
export function settingsChange(
  known: Settings,
  text: (name: Name) => string | undefined,
): Readonly<Record<string, unknown>> {
  const change: Record<string, unknown> = {};
  const given = (name: Name): string => text(name) ?? "";
  for (const { name, text: before, parsed } of settings) {
    if (name === "done" || name === "dead" || given(name) === (before(known) ?? "")) continue;
    change[name] = given(name) === "" ? null : parsed(given(name));
  }
  const [done, dead] = [given("done"), given("dead")];
  const was = settings.filter(({ name }) => name === "done" || name === "dead");
  if (was.some(({ name, text: before }) => given(name) !== before(known)))
    change["retention"] =
      done === "" && dead === ""
        ? null
        : { ...(done === "" ? {} : { done }), ...(dead === "" ? {} : { dead }) };
  return change;
}
