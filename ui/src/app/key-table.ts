// Every key and what it does: the help shows this table, and a test holds it against the keys that screens ask for. Pure.

export interface KeyLine {
  /** As `onKey` takes them; those of the browser or of a part by their names. */
  readonly keys: readonly string[];
  readonly what: string;
}

export const keyTable: readonly KeyLine[] = [
  {
    keys: ["Ctrl K"],
    what: "Go to or do anything: a screen, a queue, schedule, worker or job, an action",
  },
  { keys: ["/"], what: "The search of this screen; the palette where it has none" },
  {
    keys: ["j", "k", "Enter", "v"],
    what: "In a list: next, previous, open; of jobs, look at it beside the list",
  },
  { keys: ["x", "X", "*"], what: "Jobs: choose, choose a range, choose all that match" },
  { keys: ["r", "n", "c", "!", "e", "#"], what: "Jobs: retry, run now, cancel, terminate, edit, delete" },
  { keys: ["p", "P"], what: "Jobs, queues, schedules: pause (and go on), resume" },
  { keys: ["s", "i", "o"], what: "Failures: resolve, ignore, reopen" },
  { keys: ["←", "→", "Shift", "Enter"], what: "On a chart: through time, choose a stretch, open it" },
  {
    keys: ["←", "→", "Enter", "Space"],
    what: "In a graph: along the edges, open a step or a job, show the steps of a job; + − 0 its size",
  },
  { keys: ["."], what: "Live or paused" },
  { keys: ["t"], what: "Theme" },
  { keys: ["?"], what: "This" },
  { keys: ["Escape"], what: "Close, or choose none" },
];
