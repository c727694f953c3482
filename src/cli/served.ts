/** Notes about unknown and unserved names. None is an error, because a worker may start later. */
import type { Holdfast } from "../index.ts";
import { isName } from "../values/name.ts";
import { isQuiet, takesJobs } from "../operate/index.ts";
import type { Context } from "./command-context.ts";
import { oneLine } from "./text.ts";

/** A queue needs no creation, so a misspelt name is a new queue. */
export async function noteUnknown(ctx: Context, hf: Holdfast): Promise<void> {
  const known = new Set((await hf.queues.list({ upTo: 1 })).map(({ name }) => name));
  const served = new Set((await hf.workers.list()).flatMap(({ queues }) => Object.keys(queues)));
  for (const name of ctx.args)
    // The call itself refuses an invalid name.
    if (isName(name) && !known.has(name) && !served.has(name))
      ctx.note(`${oneLine(name)} has no jobs, settings or workers yet.`);
}

/** The same for a lane: its first job or setting creates it. */
export async function noteUnknownLane(
  ctx: Context,
  hf: Holdfast,
  queue: string,
  lane: string,
): Promise<void> {
  if (!isName(queue) || lane === "") return;
  const { lanes } = await hf.lanes.list({ queue, key: lane });
  if (lanes.length === 0) ctx.note(`${oneLine(lane, 60)} in ${oneLine(queue)} has no jobs or settings yet.`);
}

/** Why no live worker runs jobs of this name in this queue; null if one does. */
export async function unservedText(hf: Holdfast, queue: string, name: string): Promise<string | null> {
  const workers = await hf.workers.list();
  const live = workers.filter(takesJobs);
  const ofQueue = live.filter(({ queues }) => Object.hasOwn(queues, queue));
  if (ofQueue.some(({ names }) => names.includes(name))) return null;
  const wait = "The job waits until one does.";
  if (
    workers.some(
      (worker) => isQuiet(worker) && Object.hasOwn(worker.queues, queue) && worker.names.includes(name),
    )
  )
    return "Its workers are quiet. The job waits until one is resumed.";
  if (live.length === 0) return "No worker is running. The job waits until one starts.";
  return ofQueue.length === 0
    ? `No live worker serves queue ${oneLine(queue)}. ${wait} Served queues: ${oneLine(servedQueues(live).join(", "), 120)}.`
    : `No live worker of queue ${oneLine(queue)} has a handler for ${oneLine(name)}. ${wait}`;
}

function servedQueues(live: readonly { readonly queues: Readonly<Record<string, number>> }[]): string[] {
  return [...new Set(live.flatMap(({ queues }) => Object.keys(queues)))].sort();
}
