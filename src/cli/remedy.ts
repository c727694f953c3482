/** What to type about a job that does not run, where something can be done about it. Pure. Beside ../why.ts, which says why. */
import type { Why, WhyReason } from "../index.ts";
import { oneLine } from "./text.ts";

type Remedy = (why: Why) => string | null;

const shell = (text: string): string => {
  const clean = oneLine(text);
  return /^[\w.:@/-]+$/.test(clean) ? clean : `'${clean.replaceAll("'", `'\\''`)}'`;
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

const remedies: Readonly<Record<WhyReason, Remedy>> = {
  "not-found": wait,
  done: wait,
  dead: ({ id }) => `What it died of: holdfast jobs show ${id}; again: holdfast jobs retry ${id}`,
  cancelled: ({ id }) => `Again: holdfast jobs retry ${id}`,
  running: wait,
  waiting: look,
  asleep: look,
  "waiting-for-signal": ({ id }) =>
    `Send it, with its key if it has one: holdfast signal <name> <json> --key <key>; more: holdfast jobs show ${id}`,
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
