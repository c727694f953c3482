/** Queues: counts, settings, pause, drain and resume. */
import { ApiError } from "../http.ts";
import { queueLines, readCluster } from "../api/overview.ts";
import { readQueue } from "../api/queue-detail.ts";
import { change, type Route, WHILE, whileOf } from "./route.ts";
import { about } from "./targets.ts";

export const queuesRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/queues",
    id: "listQueues",
    summary: "Every queue, with its counts.",
    permission: "view",
    about: about.all("queue"),
    answer: "QueueList",
    run: async ({ store }) => ({ queues: queueLines(await readCluster(store)) }),
  },
  {
    method: "GET",
    path: "/queues/:name",
    id: "getQueue",
    summary:
      "One queue: kinds, workers, the lanes with most jobs, settings, and what keeps it from being claimed from.",
    permission: "view",
    about: about.queue,
    answer: "QueueDetail",
    run: async ({ store, path }) => {
      const detail = await readQueue(store, path["name"] ?? "");
      if (detail === null) throw new ApiError("NOT_FOUND", "No queue of this name has jobs or settings.");
      return detail;
    },
  },
  change(
    {
      method: "POST",
      path: "/queues/:name/pause",
      id: "pauseQueue",
      summary: "Nothing more is claimed from it; what runs finishes.",
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
      summary: "It goes on until nothing in it is due and nothing of it runs; then it is paused by itself.",
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
      summary: "It may be claimed from again; a draining ends.",
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
      summary: "Changes settings in every process; null is back to the default.",
      permission: "queues:set",
      about: about.queue,
      body: [
        "concurrency",
        "rate",
        "retention",
        "backoff",
        "weight",
        "slots",
        "total",
        "breaker",
        "cooldown",
        ...WHILE,
      ],
    },
    ["queues.set", "set"],
    ({ hf, body }, name) => hf.queues.set(name, ...whileOf(body)),
  ),
];
