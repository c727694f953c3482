/**
 * The checker: a pure function from the history of a run and its final database to the promises that were broken.
 *
 * It knows nothing of the code under test. Each rule is one promise of docs/promises.md.
 */
import type { Entry, FinalState, RowEntry } from "./history.ts";
import { laneConcurrency, limitedConcurrency } from "./programs.ts";

/** The state of one job as its row's changes tell it. */
interface Life {
  readonly id: string;
  readonly name: string;
  born: number;
  ended: number;
  left: number;
  live: boolean;
  token: number | null;
  highestToken: number;
  /** Tokens whose outcome has been recorded. */
  readonly settled: Set<number>;
  starts: number;
  readonly finishes: Map<number, string>;
  readonly doneSteps: Set<string>;
  lastToken: number | null;
}

/** Every promise that this run broke, as one sentence each. */
export function check(history: readonly Entry[], final: FinalState): string[] {
  const found: string[] = [];
  const lives = new Map<string, Life>();
  const operated = new Map<string, Set<string>>();
  const keys = new Map<string, string>();
  const taken = new Map<number, string>();
  const occurrences = new Map<number, string>();
  const say = (entry: Entry, text: string): void => void found.push(`at ${entry.at.toFixed(1)} ms: ${text}`);
  const lifeOf = (id: string, name = "unknown"): Life => {
    let life = lives.get(id);
    if (life === undefined) {
      life = {
        id,
        name,
        born: 0,
        ended: 0,
        left: 0,
        live: false,
        token: null,
        highestToken: -1,
        settled: new Set(),
        starts: 0,
        finishes: new Map(),
        doneSteps: new Set(),
        lastToken: null,
      };
      lives.set(id, life);
    }
    return life;
  };

  for (const entry of history) {
    switch (entry.what) {
      case "row":
        rowChanged(entry);
        break;
      case "accepted":
        if (lifeOf(entry.id, entry.name).born === 0)
          say(entry, `${entry.name} ${entry.id} was accepted without a row`);
        break;
      case "operator": {
        const acts = operated.get(entry.id) ?? new Set();
        operated.set(entry.id, acts.add(entry.act));
        break;
      }
      case "start": {
        const life = lifeOf(entry.id, entry.name);
        life.starts += 1;
        if (!life.live && !entry.stale) say(entry, `${entry.name} ${entry.id} started after its end`);
        if (entry.token !== life.token && !entry.stale)
          say(
            entry,
            `${entry.name} ${entry.id} started with token ${entry.token}, the row has ${life.token}`,
          );
        break;
      }
      case "finish":
        lifeOf(entry.id, entry.name).finishes.set(entry.token, entry.how ?? "ok");
        break;
      case "stepStart": {
        const life = lifeOf(entry.id);
        if (life.doneSteps.has(entry.step) && !entry.stale)
          say(entry, `step ${entry.step} of ${entry.id} ran again`);
        break;
      }
      case "taken": {
        const by = taken.get(entry.data);
        // A replayed run is told the same data again.
        if (by !== undefined && by !== entry.id)
          say(entry, `signal ${entry.data} was taken by ${by} and ${entry.id}`);
        taken.set(entry.data, entry.id);
        break;
      }
      case "occurrence": {
        const by = occurrences.get(entry.instant);
        if (by !== undefined && by !== entry.id)
          say(entry, `occurrence ${entry.instant} ran as ${by} and as ${entry.id}`);
        occurrences.set(entry.instant, entry.id);
        break;
      }
      // A step that was undone runs again when the job is retried.
      case "undone":
        lifeOf(entry.id).doneSteps.delete(entry.step);
        break;
      case "sent":
        break;
    }
  }
  atTheEnd();
  return found;

  function rowChanged(entry: RowEntry): void {
    const life = lifeOf(entry.id, entry.name);
    const key = entry.key === null ? null : `${entry.name} ${entry.key}`;
    switch (entry.change) {
      case "born": {
        if (life.live) say(entry, `${entry.name} ${entry.id} has two rows`);
        life.born += 1;
        life.live = true;
        life.token = null;
        if (key !== null) {
          const holder = keys.get(key);
          if (holder !== undefined && holder !== entry.id)
            say(entry, `unique key ${key} is held by ${holder} and ${entry.id}`);
          keys.set(key, entry.id);
        }
        break;
      }
      case "claimed": {
        const token = entry.token ?? -1;
        if (token <= life.highestToken)
          say(entry, `token ${token} of ${entry.id} is not above ${life.highestToken}`);
        life.highestToken = Math.max(life.highestToken, token);
        life.token = token;
        const most = entry.lane === null ? limitedConcurrency : laneConcurrency;
        if ((entry.holders ?? 0) > most)
          say(
            entry,
            `${entry.holders} jobs of ${entry.lane ?? entry.queue} are claimed by live sessions, ${most} may`,
          );
        break;
      }
      case "released":
        life.lastToken = life.token;
        life.token = null;
        break;
      case "left":
        life.left += 1;
        life.live = false;
        life.lastToken = life.token;
        life.token = null;
        if (key !== null && keys.get(key) === entry.id) keys.delete(key);
        break;
      case "ended": {
        life.ended += 1;
        if (life.ended > life.born) say(entry, `${entry.name} ${entry.id} has two recorded ends`);
        const token = life.token ?? life.lastToken;
        const how = token === null ? undefined : life.finishes.get(token);
        if (entry.detail === "done" && how !== "ok" && how !== "aborted" && life.name !== "machine")
          say(
            entry,
            `${entry.name} ${entry.id} is done, its last run (token ${token}) came to ${how ?? "nothing"}`,
          );
        break;
      }
      case "stepDone":
        life.doneSteps.add(entry.detail ?? "");
        break;
      case "stepChanged":
        say(entry, `the recorded step ${entry.detail} of ${entry.id} changed`);
        break;
    }
  }

  function atTheEnd(): void {
    if (!final.drained) found.push("not everything ended within the bound after the last fault");
    for (const [name, n] of Object.entries(final.leftovers))
      if (n !== 0 && final.drained) found.push(`${n} ${name} are left`);
    for (const entry of history) {
      if (entry.what !== "accepted") continue;
      const life = lifeOf(entry.id, entry.name);
      const acts = operated.get(entry.id);
      if (acts?.has("delete") === true) continue;
      const job = final.jobs.get(entry.id);
      const fleeting = entry.name === "fleeting";
      if (final.drained && job === undefined && !fleeting)
        found.push(`${entry.name} ${entry.id} was accepted and is gone`);
      if (job?.state === "done" && life.starts === 0)
        found.push(`${entry.name} ${entry.id} is done and never ran`);
      if (fleeting && final.drained && job === undefined && ![...life.finishes.values()].includes("ok"))
        found.push(`fleeting ${entry.id} is gone and never finished`);
    }
    const sent = new Set<number>();
    for (const entry of history) if (entry.what === "sent") sent.add(entry.data);
    const left = new Set(final.signals);
    for (const data of sent)
      if (!taken.has(data) && !left.has(data) && final.drained)
        found.push(`signal ${data} was accepted and is gone`);
    for (const data of left) if (taken.has(data)) found.push(`signal ${data} was taken and is still there`);
  }
}
