/** What to type about a job that does not run, where something can be done about it. Pure. Beside ../why.ts, which says why. */
import type { Why, WhyReason } from "../../index.ts";
import { harmless } from "../text.ts";

type Remedy = (why: Why) => string | null;

/** Between single quotes a shell takes everything as it is. Control characters would reach the terminal first: $'…' spells them (bash, zsh, ksh). */
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
const due: Remedy = ({ id }) => `Not to wait: holdfast jobs run ${id}`;
const limitOfQueue: Remedy = ({ queue }) =>
  `To let more run: holdfast queues set ${shell(queue ?? "")} (see its --help)`;
const limitOfLane: Remedy = ({ queue, lane }) =>
  `To let more run: holdfast lanes set ${shell(queue ?? "")} ${shell(lane ?? "")} (see its --help)`;
const moreOf = ({ budget }: Why): string =>
  `To allow more: holdfast budgets set ${shell(budget ?? "")} --rate …`;
const look: Remedy = ({ id }) => `More: holdfast jobs show ${id}`;

const signal = ({ name, key }: Why["signals"][number]): string => {
  const option = key === null ? "" : key.startsWith("-") ? ` --key=${shell(key)}` : ` --key ${shell(key)}`;
  // A name that looks like an option goes behind a double dash, and its key before that.
  return name.startsWith("-")
    ? `holdfast signal${option} -- ${shell(name)}`
    : `holdfast signal ${shell(name)}${option}`;
};
const SIGNALS_SHOWN = 3;

const remedies: Readonly<Record<WhyReason, Remedy>> = {
  "not-found": wait,
  done: wait,
  dead: ({ id }) => `What it died of: holdfast jobs show ${id}; again: holdfast jobs retry ${id}`,
  cancelled: ({ id }) => `Again: holdfast jobs retry ${id}`,
  running: wait,
  waiting: look,
  asleep: ({ id }) => `To skip the wait: holdfast jobs run ${id}; more: holdfast jobs show ${id}`,
  "waiting-for-signal": ({ id, signals }) =>
    signals.length === 0
      ? `More: holdfast jobs show ${id}`
      : `Send it: ${signals.slice(0, SIGNALS_SHOWN).map(signal).join("; or: ")} (data: as JSON after the name); more: holdfast jobs show ${id}`,
  "waiting-for-jobs": look,
  "job-paused": ({ id }) => `holdfast jobs resume ${id}`,
  future: due,
  "retry-wait": due,
  throttled: (why) => (why.budget === null ? due(why) : `${moreOf(why)}; then: holdfast jobs run ${why.id}`),
  released: due,
  paused: ({ queue }) => `holdfast queues resume ${shell(queue ?? "")}`,
  hold: ({ holds }) => holds.map((name) => `holdfast holds clear ${shell(name)}`).join("; "),
  "cool-down": wait,
  "needs-newer-version": () => "Deploy the newer code; who runs what: holdfast workers",
  "breaker-open": ({ breaker }) =>
    `What it depends on is back? holdfast breakers reset ${shell(breaker ?? "")}`,
  "breaker-half-open": wait,
  "budget-empty": moreOf,
  "budget-unknown": ({ budget }) => `holdfast budgets set ${shell(budget ?? "")} --rate …`,
  "lane-paused": ({ queue, lane }) => `holdfast lanes resume ${shell(queue ?? "")} ${shell(lane ?? "")}`,
  "lane-full": limitOfLane,
  "lane-rate": limitOfLane,
  "queue-full": limitOfQueue,
  "queue-rate": limitOfQueue,
  unserved: ({ queue }) =>
    `Start a worker with its handler: holdfast work --queues ${shell(queue ?? "")}; or is a name misspelt? holdfast workers`,
  "workers-quiet": () => "holdfast workers resume all",
  ready: wait,
};

/** Null: nothing needs to be done, or nothing can. */
export function remedyOf(why: Why): string | null {
  return remedies[why.reason](why);
}
