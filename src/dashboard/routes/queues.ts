/** Queues: counts, settings, pause, drain and resume. */
import { anyObject, integer, maybe, object, type Schema, typed } from "../api/schema.ts";
import type { QueueOptions } from "../../index.ts";
import { QueueDetail, QueueList } from "../api/contract.ts";
import { ApiError } from "../http.ts";
import { queueLines, readCluster } from "../api/overview.ts";
import { readQueue } from "../api/queue-detail.ts";
import { change, type Route, WHILE, whileOf, route } from "./route.ts";
import { about } from "./targets.ts";

/** A setting whose parts the client checks. */
function setting<K extends keyof QueueOptions>(_name: K): Schema<QueueOptions[K]> {
  return typed<QueueOptions[K]>(maybe(anyObject));
}

export const queuesRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/queues",
    id: "listQueues",
    summary: "Every queue, with its counts.",
    permission: "view",
    about: about.all("queue"),
    answer: QueueList,
    run: async ({ store }) => ({ queues: queueLines(await readCluster(store)) }),
  }),
  route({
    method: "GET",
    path: "/queues/:name",
    id: "getQueue",
    summary:
      "One queue: job names, workers, the lanes with most jobs, settings, and the reasons why its jobs do not start.",
    permission: "view",
    about: about.queue,
    answer: QueueDetail,
    run: async ({ store, path }) => {
      const detail = await readQueue(store, path["name"] ?? "");
      if (detail === null) throw new ApiError("NOT_FOUND", "No queue of this name has jobs or settings.");
      return detail;
    },
  }),
  change(
    {
      method: "POST",
      path: "/queues/:name/pause",
      id: "pauseQueue",
      summary: "Pauses a queue. Running jobs finish.",
      permission: "queues:pause",
      about: about.queue,
    },
    ["queues.pause", "paused"],
    ({ hf }, name) => hf.queues.pause(name),
  ),
  change(
    {
      method: "POST",
      path: "/queues/:name/drain",
      id: "drainQueue",
      summary: "Drains a queue: it pauses when no job is due or running.",
      permission: "queues:pause",
      about: about.queue,
    },
    ["queues.drain", "draining"],
    ({ hf }, name) => hf.queues.drain(name),
  ),
  change(
    {
      method: "POST",
      path: "/queues/:name/resume",
      id: "resumeQueue",
      summary: "Resumes a queue; ends a drain.",
      permission: "queues:pause",
      about: about.queue,
    },
    ["queues.resume", "resumed"],
    ({ hf }, name) => hf.queues.resume(name),
  ),
  change(
    {
      method: "PATCH",
      path: "/queues/:name",
      id: "setQueue",
      summary: "Changes settings of a queue in every process; null restores the default.",
      permission: "queues:set",
      about: about.queue,
      body: object(
        {},
        {
          concurrency: maybe(integer),
          rate: setting("rate"),
          retention: setting("retention"),
          backoff: setting("backoff"),
          weight: maybe(integer),
          slots: maybe(integer),
          total: maybe(integer),
          breaker: setting("breaker"),
          cooldown: setting("cooldown"),
          ...WHILE,
        },
      ),
    },
    ["queues.set", "set"],
    ({ hf, body }, name) => hf.queues.set(name, ...whileOf(body)),
  ),
];
