/** Who and what answers here, and the live stream. */
import { latency } from "../../index.ts";
import { prometheus } from "../../prometheus/index.ts";
import { VERSION } from "../../version.ts";
import type { About, Me, Permission } from "../api/contract.ts";
import { json, SECURITY_HEADERS } from "../http.ts";
import type { Route } from "./route.ts";
import { resource } from "../api/resource.ts";
import { about } from "./targets.ts";

export const aboutRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/about",
    id: "about",
    summary: "Version, database and label.",
    permission: null,
    about: null,
    answer: "About",
    run: async ({ store, label, labelColor, database, databases }): Promise<About> => ({
      version: VERSION,
      dialect: store.dialect,
      label,
      labelColor,
      database,
      databases: await databases(),
    }),
  },
  {
    method: "GET",
    path: "/me",
    id: "me",
    summary: "Who you are, and what you may do.",
    permission: null,
    about: null,
    answer: "Me",
    run: async ({ user, readOnly, may }): Promise<Me> => {
      const permissions: Permission[] = [];
      const page = resource("page");
      for (const permission of user.permissions)
        if (await may(permission, () => page)) permissions.push(permission);
      return { user: user.name, permissions, readOnly: await readOnly() };
    },
  },
  {
    method: "GET",
    path: "/health",
    id: "health",
    summary: "For liveness probes, without a token: whether the database answers; 503 if it does not.",
    permission: null,
    about: null,
    probe: true,
    answer: "Health",
    run: async ({ pulse }) => yesOrNo((await pulse.now()).healthy),
  },
  {
    method: "GET",
    path: "/ready",
    id: "ready",
    summary:
      "For readiness probes, without a token: 503 if the database does not answer or a worker of this process is stopping.",
    permission: null,
    about: null,
    probe: true,
    answer: "Health",
    run: async ({ pulse }) => yesOrNo((await pulse.now()).ready),
  },
  {
    method: "GET",
    path: "/latency",
    id: "latency",
    summary:
      "How long ready jobs have been waiting, for autoscalers: all queues, or each `queue` that is named.",
    permission: "view",
    about: about.queuesOfQuery,
    query: ["queue"],
    answer: "Latency",
    run: ({ hf, query }) => {
      const queues = query.getAll("queue");
      return latency(hf, queues.length === 0 ? {} : { queues });
    },
  },
  {
    method: "GET",
    path: "/metrics",
    id: "metrics",
    summary: "Metrics of the cluster and of this process, as Prometheus scrapes them.",
    permission: "view",
    about: about.cluster,
    answer: "Metrics",
    run: async ({ hf }) => {
      const metrics = prometheus(hf);
      return new Response(await metrics.text(), {
        headers: { ...SECURITY_HEADERS, "content-type": metrics.contentType },
      });
    },
  },
  {
    method: "GET",
    path: "/openapi.json",
    id: "openapi",
    summary: "This description.",
    permission: null,
    about: null,
    answer: "OpenApi",
    run: ({ openapi }) => json(openapi()),
  },
  {
    method: "GET",
    path: "/overview",
    id: "overview",
    summary:
      "The state of everything, in one answer. With `If-None-Match` and the `ETag` of the last one: 304 while nothing has changed.",
    permission: "view",
    about: about.cluster,
    answer: "Overview",
    run: async ({ stream, request }) => {
      const { overview, etag } = await stream.poll(request.headers.get("if-none-match"));
      if (overview === null)
        return new Response(null, { status: 304, headers: { ...SECURITY_HEADERS, etag } });
      return json(overview, 200, { etag });
    },
  },
  {
    method: "GET",
    path: "/recent",
    id: "recent",
    summary: "What the live stream has seen, one point a second, at most 15 minutes.",
    permission: "view",
    about: about.cluster,
    answer: "Recent",
    run: ({ stream }) => stream.recent(),
  },
  {
    method: "GET",
    path: "/stream",
    id: "stream",
    summary:
      "Server-sent events of the `topics` that are named (`overview,queue:emails,job:<id>`; without any, of the overview): a `snapshot` of each, then `change` with what has changed, at most twice a second; `age` where only ages have grown; `current` where who comes back knows it all; `refused` where the topic's route would refuse; `trouble` while the database is away; a comment every 5 s. With `Last-Event-ID` it begins with what was missed, if that is not too long ago.",
    permission: "view",
    // Each topic is asked about by itself.
    about: about.all("page"),
    query: ["topics"],
    answer: "Stream",
    run: async ({ stream, request, topics }) =>
      stream.open(request.signal, request.headers.get("last-event-id"), await topics()),
  },
];

function yesOrNo(ok: boolean): Response {
  return json({ ok }, ok ? 200 : 503);
}
