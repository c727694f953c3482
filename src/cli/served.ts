/** Who runs what, for commands that name a queue: nothing of it is an error, since a worker may come later. */
import type { Holdfast } from "../index.ts";
import { isName } from "../values/name.ts";
import { isQuiet, takesJobs } from "../limits/serving.ts";
import type { Context } from "./command-context.ts";
import { oneLine } from "./text.ts";

/** A queue needs no creation, so a slip of the fingers is one too. */
export async function noteUnknown(ctx: Context, hf: Holdfast): Promise<void> {
  const known = new Set((await hf.queues.list({ upTo: 1 })).map(({ name }) => name));
  const served = new Set((await hf.workers.list()).flatMap(({ queues }) => Object.keys(queues)));
  for (const name of ctx.args)
    // What cannot be a name is refused by whoever takes it.
    if (isName(name) && !known.has(name) && !served.has(name))
      ctx.note(`${oneLine(name)} has no jobs, no settings and no worker until now.`);
}

/** The same of a lane: it is made by the first job that names it, or by what is set of it. */
export async function noteUnknownLane(
  ctx: Context,
  hf: Holdfast,
  queue: string,
  lane: string,
): Promise<void> {
  if (!isName(queue) || lane === "") return;
  const { lanes } = await hf.lanes.list({ queue, key: lane });
  if (lanes.length === 0)
    ctx.note(`${oneLine(lane, 60)} in ${oneLine(queue)} has no jobs and no settings until now.`);
}

/** What is in the way of a job of this kind in this queue; null where a live worker runs it. */
export async function unservedText(hf: Holdfast, queue: string, name: string): Promise<string | null> {
  const workers = await hf.workers.list();
  const live = workers.filter(takesJobs);
  const ofQueue = live.filter(({ queues }) => Object.hasOwn(queues, queue));
  if (ofQueue.some(({ names }) => names.includes(name))) return null;
  const wait = "it waits until one does";
  if (
    workers.some(
      (worker) => isQuiet(worker) && Object.hasOwn(worker.queues, queue) && worker.names.includes(name),
    )
  )
    return "Its workers are quiet: it waits until one is resumed.";
  if (live.length === 0) return `No worker is running: it waits until one does.`;
  return ofQueue.length === 0
    ? `No live worker serves queue ${oneLine(queue)}: ${wait}. Served: ${oneLine(servedQueues(live).join(", "), 120)}.`
    : `No live worker of queue ${oneLine(queue)} has a handler for ${oneLine(name)}: ${wait}.`;
}

function servedQueues(live: readonly { readonly queues: Readonly<Record<string, number>> }[]): string[] {
  return [...new Set(live.flatMap(({ queues }) => Object.keys(queues)))].sort();
}
