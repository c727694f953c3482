/** Who and what answers here, and the live stream. */
import { object, texts } from "../api/schema.ts";
import { latency } from "../../index.ts";
import { prometheus } from "../../prometheus/index.ts";
import { VERSION } from "../../version.ts";
import {
  About,
  Health,
  Latency,
  Me,
  Metrics,
  OpenApi,
  Overview,
  type Permission,
  Recent,
  Stream,
} from "../api/contract.ts";
import { json, SECURITY_HEADERS } from "../http.ts";
import { type Route, route } from "./route.ts";
import { resource } from "../api/resource.ts";
import { about } from "./targets.ts";

export const aboutRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/about",
    id: "about",
    summary: "Version, database and label.",
    permission: null,
    about: null,
    answer: About,
    run: async ({ store, label, labelColor, database, databases }) => ({
      version: VERSION,
      dialect: store.dialect,
      label,
      labelColor,
      database,
      databases: await databases(),
    }),
  }),
  route({
    method: "GET",
    path: "/me",
    id: "me",
    summary: "The current user and their permissions.",
    permission: null,
    about: null,
    answer: Me,
    run: async ({ user, readOnly, may }) => {
      const permissions: Permission[] = [];
      const page = resource("page");
      for (const permission of user.permissions)
        if (await may(permission, () => page)) permissions.push(permission);
      return { user: user.name, permissions, readOnly: await readOnly() };
    },
  }),
  route({
    method: "GET",
    path: "/health",
    id: "health",
    summary: "For liveness probes, without a token: 503 if the database does not answer.",
    permission: null,
    about: null,
    probe: true,
    answer: Health,
    run: async ({ pulse }) => yesOrNo((await pulse.now()).healthy),
  }),
  route({
    method: "GET",
    path: "/ready",
    id: "ready",
    summary:
      "For readiness probes, without a token: 503 if the database does not answer or a worker of this process is stopping.",
    permission: null,
    about: null,
    probe: true,
    answer: Health,
    run: async ({ pulse }) => yesOrNo((await pulse.now()).ready),
  }),
  route({
    method: "GET",
    path: "/latency",
    id: "latency",
    summary: "Age of the oldest ready job, for autoscalers: of all queues, or of each given `queue`.",
    permission: "view",
    about: about.queuesOfQuery,
    query: object({}, { queue: texts }),
    answer: Latency,
    run: ({ hf, query }) => {
      const { queue: queues } = query;
      return latency(hf, queues === undefined ? {} : { queues });
    },
  }),
  route({
    method: "GET",
    path: "/metrics",
    id: "metrics",
    summary: "Metrics of the cluster and of this process, in the Prometheus text format.",
    permission: "view",
    about: about.cluster,
    answer: Metrics,
    type: "text/plain",
    run: async ({ hf }) => {
      const metrics = prometheus(hf);
      return new Response(await metrics.text(), {
        headers: { ...SECURITY_HEADERS, "content-type": metrics.contentType },
      });
    },
  }),
  route({
    method: "GET",
    path: "/openapi.json",
    id: "openapi",
    summary: "This description.",
    permission: null,
    about: null,
    answer: OpenApi,
    run: ({ openapi }) => json(openapi()),
  }),
  route({
    method: "GET",
    path: "/overview",
    id: "overview",
    summary: "The whole state in one answer. With `If-None-Match`: 304 while it has not changed.",
    permission: "view",
    about: about.cluster,
    answer: Overview,
    tagged: true,
    run: async ({ stream, request }) => {
      const { overview, etag } = await stream.poll(request.headers.get("if-none-match"));
      if (overview === null)
        return new Response(null, { status: 304, headers: { ...SECURITY_HEADERS, etag } });
      return json(overview, 200, { etag });
    },
  }),
  route({
    method: "GET",
    path: "/recent",
    id: "recent",
    summary: "The points of the live stream, one a second, for at most 15 minutes.",
    permission: "view",
    about: about.cluster,
    answer: Recent,
    run: ({ stream }) => stream.recent(),
  }),
  route({
    method: "GET",
    path: "/stream",
    id: "stream",
    summary:
      "Server-sent events of the `topics` that are named (`overview,queue:emails,job:<id>`; without any, of the overview): a `snapshot` of each, then `change` with what has changed, at most twice a second; `age` where only ages have grown; `current` where who comes back knows it all; `refused` where the topic's route would refuse; `trouble` while the database is away; a comment every 5 s. With `Last-Event-ID` it begins with what was missed, if that is not too long ago.",
    permission: "view",
    // Each topic is asked about by itself.
    about: about.all("page"),
    query: object({}, { topics: { ...texts, explode: true } }),
    answer: Stream,
    type: "text/event-stream",
    run: async ({ stream, request, topics }) =>
      stream.open(request.signal, request.headers.get("last-event-id"), await topics()),
  }),
];

function yesOrNo(ok: boolean): Response {
  return json({ ok }, ok ? 200 : 503);
}
