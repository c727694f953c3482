/** Who and what answers here, and the live stream. */
import { VERSION } from "../../version.ts";
import type { About, Me, Permission } from "../contract.ts";
import { json, SECURITY_HEADERS } from "../http.ts";
import type { Route } from "./route.ts";

export const aboutRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/about",
    id: "about",
    summary: "Version, database and label.",
    permission: null,
    answer: "About",
    run: async ({ store, label, database, databases }): Promise<About> => ({
      version: VERSION,
      dialect: store.dialect,
      label,
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
    answer: "Me",
    run: async ({ user, readOnly, may }): Promise<Me> => {
      const permissions: Permission[] = [];
      for (const permission of user.permissions) if (await may(permission)) permissions.push(permission);
      return { user: user.name, permissions, readOnly };
    },
  },
  {
    method: "GET",
    path: "/health",
    id: "health",
    summary: "Whether the database answers; 503 if it does not.",
    permission: null,
    answer: "Health",
    run: async ({ store }) => ({ ok: true, now: await store.now() }),
  },
  {
    method: "GET",
    path: "/openapi.json",
    id: "openapi",
    summary: "This description.",
    permission: null,
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
    answer: "Recent",
    run: ({ stream }) => stream.recent(),
  },
  {
    method: "GET",
    path: "/stream",
    id: "stream",
    summary:
      "Server-sent events: `snapshot`, then `change` (at least every 5 s), `trouble` while the database is away. With `Last-Event-ID` it begins with what was missed, if that is not too long ago.",
    permission: "view",
    answer: "Stream",
    run: ({ stream, request }) => stream.open(request.signal, request.headers.get("last-event-id")),
  },
];
