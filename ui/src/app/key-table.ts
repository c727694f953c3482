// Every key and its action. The help shows this table; a test compares it with the keys that screens register. Pure.

export interface KeyLine {
  /** Names as `onKey` takes them; keys of the browser or of one part by their names. */
  readonly keys: readonly string[];
  readonly what: string;
}

export const keyTable: readonly KeyLine[] = [
  {
    keys: ["Ctrl K"],
    what: "Go to a screen, queue, schedule, worker or job, or run an action",
  },
  { keys: ["/"], what: "Search on this screen, or the palette" },
  {
    keys: ["j", "k", "Enter", "v"],
    what: "List: next, previous, open, preview",
  },
  { keys: ["x", "X", "*"], what: "Jobs: select, select a range, select all matching" },
  { keys: ["r", "n", "c", "!", "e", "#"], what: "Jobs: retry, run now, cancel, terminate, edit, delete" },
  { keys: ["p", "P"], what: "Jobs, queues, schedules: pause, resume" },
  { keys: ["s", "i", "o"], what: "Failures: resolve, ignore, reopen" },
  { keys: ["←", "→", "Shift", "Enter"], what: "Chart: move in time, select a range, open it" },
  {
    keys: ["←", "→", "Enter", "Space"],
    what: "Graph: follow edges, open a step or job, expand a job; + − 0 zoom",
  },
  { keys: ["."], what: "Pause or resume live updates" },
  { keys: ["t"], what: "Theme" },
  { keys: ["?"], what: "This" },
  { keys: ["Escape"], what: "Close, or clear the selection" },
];
