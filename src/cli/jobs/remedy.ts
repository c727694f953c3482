/** The command that helps a job that does not run. Pure. Not here: the reason (operate/why.ts). */
import type { Why, WhyReason } from "../../index.ts";
import { harmless } from "../text.ts";

type Remedy = (why: Why) => string | null;

/** Quotes a shell argument. Control characters would reach the terminal, so $'…' escapes them (bash, zsh, ksh). */
const shell = (text: string): string => {
  if (/^[\w.:@/-]+$/.test(text)) return text;
  const spelt = Array.from(text, spell).join("");
  return spelt === text.replaceAll(/[\\']/g, "\\$&") ? `'${text.replaceAll("'", `'\\''`)}'` : `$'${spelt}'`;
};
const spell = (character: string): string => {
  if (character === "\\" || character === "'") return `\\${character}`;
  if (character === "\n") return "\\n";
  if (character !== "\t" && harmless(character) === character) return character;
  const code = character.charCodeAt(0);
  // \x is a byte, which is a character only in ASCII.
  return code < 128 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
};
const wait: Remedy = () => null;
const due: Remedy = ({ id }) => `To run it now: holdfast jobs run ${id}`;
const limitOfQueue: Remedy = ({ queue }) =>
  `To raise the limit: holdfast queues set ${shell(queue ?? "")} (see its --help)`;
const limitOfLane: Remedy = ({ queue, lane }) =>
  `To raise the limit: holdfast lanes set ${shell(queue ?? "")} ${shell(lane ?? "")} (see its --help)`;
const moreOf = ({ budget }: Why): string =>
  `To raise the rate: holdfast budgets set ${shell(budget ?? "")} --rate …`;
const look: Remedy = ({ id }) => `Details: holdfast jobs show ${id}`;

const signal = ({ name, key }: Why["signals"][number]): string => {
  const option = key === null ? "" : key.startsWith("-") ? ` --key=${shell(key)}` : ` --key ${shell(key)}`;
  // A name that looks like an option needs a double dash before it, and its key before that.
  return name.startsWith("-")
    ? `holdfast signal${option} -- ${shell(name)}`
    : `holdfast signal ${shell(name)}${option}`;
};
const SIGNALS_SHOWN = 3;

const remedies: Readonly<Record<WhyReason, Remedy>> = {
  "not-found": wait,
  done: wait,
  dead: ({ id }) => `Errors: holdfast jobs show ${id}; to retry: holdfast jobs retry ${id}`,
  cancelled: ({ id }) => `To retry: holdfast jobs retry ${id}`,
  running: wait,
  waiting: look,
  asleep: ({ id }) => `To skip the sleep: holdfast jobs run ${id}; details: holdfast jobs show ${id}`,
  "waiting-for-signal": ({ id, signals }) =>
    signals.length === 0
      ? `Details: holdfast jobs show ${id}`
      : `To send it: ${signals.slice(0, SIGNALS_SHOWN).map(signal).join("; or: ")} (data as JSON after the name); details: holdfast jobs show ${id}`,
  "waiting-for-jobs": look,
  "job-paused": ({ id }) => `holdfast jobs resume ${id}`,
  future: due,
  "retry-wait": due,
  throttled: (why) => (why.budget === null ? due(why) : `${moreOf(why)}; then: holdfast jobs run ${why.id}`),
  released: due,
  paused: ({ queue }) => `holdfast queues resume ${shell(queue ?? "")}`,
  hold: ({ holds }) => holds.map((name) => `holdfast holds clear ${shell(name)}`).join("; "),
  "cool-down": wait,
  "needs-newer-version": () => "Deploy the newer code; to list workers: holdfast workers",
  "breaker-open": ({ breaker }) => `If the cause is fixed: holdfast breakers reset ${shell(breaker ?? "")}`,
  "breaker-half-open": wait,
  "budget-empty": moreOf,
  "budget-unknown": ({ budget }) => `holdfast budgets set ${shell(budget ?? "")} --rate …`,
  "lane-paused": ({ queue, lane }) => `holdfast lanes resume ${shell(queue ?? "")} ${shell(lane ?? "")}`,
  "lane-full": limitOfLane,
  "lane-rate": limitOfLane,
  "queue-full": limitOfQueue,
  "queue-rate": limitOfQueue,
  unserved: ({ queue }) =>
    `To start a worker with its handler: holdfast work --queues ${shell(queue ?? "")}; to check the names: holdfast workers`,
  "workers-quiet": () => "holdfast workers resume all",
  ready: wait,
};

/** Null if no command helps, or none is needed. */
export function remedyOf(why: Why): string | null {
  return remedies[why.reason](why);
}
