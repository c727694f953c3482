/**
 * `dashboard(hf, options)`: the page and its API as one function from Request to Response.
 *
 *   host ─▶ path ─┬─ a file or screen ─▶ who (unless the page is public) ─▶ the file
 *                 └─ /api/v1/… ─▶ origin ─▶ who ─▶ role ─▶ read-only? ─▶ body ─▶ authorize ─▶ route ─▶ audit
 *
 * Invariants: it never throws and never answers without the security headers; what goes wrong inside is logged with an
 * id, and only the id is told; nothing about jobs is sent before the asker is known (whether the database answers at all is,
 * for probes); a read is answered within 5 seconds.
 * Not here: the routes (dashboard/routes/table.ts), the checks (dashboard/access/security.ts), Node's request objects (node.ts), a server (serve.ts).
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isHoldfastError, shown, UsageError } from "../errors.ts";
import type { AuditEntry } from "../operate/browse.ts";
import { Operations, storable } from "../operate/operations.ts";
import { parseExact } from "../values/exact-numbers.ts";
import { checkOptions } from "../values/options.ts";
import { Assets } from "./appearance/assets.ts";
import { checkLabel, labelColors } from "./appearance/label.ts";
import { ApiError, errorResponse, json, readJson, secured } from "./http.ts";
import { checkDatabases, dashboardOfMany, type Databases, type Shared } from "./databases.ts";
import { Doctor } from "./api/doctor.ts";
import type { Permission } from "./api/contract.ts";
import { READ_AT } from "./api/headers.ts";
import { inTime } from "./live/deadline.ts";
import { openapi } from "./api/openapi.ts";
import { Pulse } from "./live/pulse.ts";
import { Writable } from "./live/writable.ts";
import type { DashboardHandler, DashboardOptions } from "./options.ts";
import { readOverview } from "./api/overview.ts";
import { PaceReader } from "./api/pace.ts";
import { readBody, readQuery } from "./api/query.ts";
import { Redactor } from "./access/redact.ts";
import { type Resource, resource } from "./api/resource.ts";
import { match, type Route, type RouteContext } from "./routes/table.ts";
import { checkHost, checkOrigin, Gate, type Identity, NOBODY } from "./access/security.ts";
import { type Followed, Stream } from "./live/stream.ts";
import { addressOf, type Topic, topicsOf } from "./live/topics.ts";
import type { AnyJob, Holdfast } from "../index.ts";
import { isClient, isJob, operatorOf, asDashboardRead } from "../operate/index.ts";

export type { DashboardHandler, DashboardOptions } from "./options.ts";

const optionNames = [
  "auth",
  "readOnly",
  "basePath",
  "redact",
  "authorize",
  "hosts",
  "origins",
  "label",
  "labelColor",
  "traceLink",
  "jobs",
  "maxBody",
];
const mebibyte = 1_048_576;
/** What a schema refused. */
const fieldsOfCodes: Readonly<Record<string, string>> = { INPUT_INVALID: "input", SIGNAL_INVALID: "data" };

/**
 * The dashboard of a client, to be mounted anywhere that speaks Request and Response; `toNodeHandler` for the rest.
 *
 * With several clients by name each database has its own address, `<basePath>/db/<name>`, and the page a switch.
 *
 * @throws UsageError BAD_OPTION without `auth`, or for a name that cannot stand in an address
 * @example
 * const handler = dashboard(hf, { auth: { token: process.env.DASHBOARD_TOKEN! } });
 * Bun.serve({ port: 8787, fetch: handler });
 * @example
 * const handler = dashboard({ main: hf, archive: { hf: old, readOnly: true } }, { auth });
 */
export function dashboard(target: Holdfast | Databases, options: DashboardOptions): DashboardHandler {
  if (isClient(target)) return dashboardWith(target, options);
  const databases = checkDatabases(target);
  const given = checkOptions(options, optionNames, "dashboard") as unknown as DashboardOptions;
  const basePath = checkBasePath(given.basePath);
  const [own] = databases.values();
  const clock = own === undefined ? undefined : operatorOf(own.hf).env.clock;
  const gate = new Gate(given.auth, () => clock?.monotonic() ?? 0);
  return dashboardOfMany(databases, given, basePath, gate, (hf, its, shared) =>
    dashboardWith(hf, its, pageDirectory(), shared),
  );
}

/** @internal With a page of its own, for tests. */
export function dashboardWith(
  hf: Holdfast,
  options: DashboardOptions,
  directory: string = pageDirectory(),
  shared: Shared | null = null,
): DashboardHandler {
  const given = checkOptions(options, optionNames, "dashboard") as unknown as DashboardOptions;
  const operator = operatorOf(hf);
  const { store, env, settings, definitions } = operator;
  const gate = shared?.gate ?? new Gate(given.auth, () => env.clock.monotonic());
  const basePath = checkBasePath(given.basePath);
  const redactor = new Redactor(given.redact);
  const assets = new Assets(directory);
  const pace = new PaceReader(store.series, env.clock);
  const stream = new Stream({
    read: () => asDashboardRead(() => readOverview(store, pace)),
    watch: (onWake) => store.listen(onWake),
    clock: env.clock,
  });
  const pulse = new Pulse(hf, env.clock);
  const doctor = new Doctor(hf, env.clock);
  const operations = new Operations(hf);
  const hosts = given.hosts?.map((host) => host.toLowerCase());
  const origins = (given.origins ?? []).map((origin) => origin.toLowerCase());
  const writable = new Writable(store, env.clock);
  const readOnly = async (): Promise<boolean> => given.readOnly === true || !(await writable.now());
  const label = checkLabel(given.label);
  const colors = labelColors(given.labelColor);
  const traceLink = checkTraceLink(given.traceLink);
  const maxBody = given.maxBody ?? mebibyte;
  const jobs = checkJobs(given.jobs);

  const common = {
    hf,
    operator,
    store,
    insight: store.insight,
    definition: (name: string) => jobs.get(name) ?? definitions.get(name) ?? null,
    definitions: () => new Set([...jobs.keys(), ...definitions.keys()]),
    readOnly,
    label,
    labelColor: colors?.paper ?? null,
    redactor,
    operations,
    stream,
    pulse,
    doctor,
    database: shared?.database ?? null,
    openapi: () => openapi(basePath),
  };

  async function answer(request: Request, address: string): Promise<Response> {
    checkHost(request, hosts);
    const url = new URL(request.url);
    const below = pathBelow(url.pathname, basePath);
    if (below === null) throw new ApiError("NOT_FOUND", "There is no page at this address.");
    if (below.startsWith("api/")) return api(request, url, below, address);
    if (request.method !== "GET" && request.method !== "HEAD")
      throw new ApiError("METHOD_NOT_ALLOWED", "Only GET here.", { headers: { allow: "GET, HEAD" } });
    const response =
      assets.file(below, request.headers) ??
      assets.page(
        below,
        basePath,
        {
          basePath,
          label,
          labelColors: colors,
          traceLink,
          database: shared?.database ?? null,
          auth: gate.publicShell ? "token" : "page",
        },
        request.headers,
      );
    if (response === null) throw new ApiError("NOT_FOUND", "There is no page at this address.");
    if (!gate.publicShell) {
      const who = await gate.identify(request, address);
      if (who instanceof Response) return secured(who);
      if (who === null) {
        if (request.headers.get("accept")?.includes("text/html") === true) return secured(notSignedIn());
        throw new ApiError("UNAUTHORIZED", "Sign in first.");
      }
    }
    return response;
  }

  async function api(request: Request, url: URL, below: string, address: string): Promise<Response> {
    const segments = below.split("/").map(decoded);
    if (segments[1] !== "v1") throw new ApiError("NOT_FOUND", "This server has /api/v1.");
    const method = request.method === "HEAD" ? "GET" : request.method;
    const write = method !== "GET";
    checkOrigin(request, origins, write);
    const matched = match(method, segments.slice(2));
    const probe = typeof matched === "object" && matched?.route.probe === true;
    const who = probe ? NOBODY : await gate.identify(request, address);
    if (who instanceof Response) return secured(who);
    if (who === null)
      throw new ApiError("UNAUTHORIZED", "Send a token: Authorization: Bearer …", {
        headers: gate.publicShell ? { "www-authenticate": "Bearer" } : {},
      });
    if (matched === null) throw new ApiError("NOT_FOUND", "The API has no such address.");
    if (matched === "method")
      throw new ApiError("METHOD_NOT_ALLOWED", `${method.slice(0, 10)} is not possible here.`);
    const { route, path } = matched;
    const { may, need, about } = asks(who, request, route, () => context);
    // By the role alone: what it is about may be in the body, which is not read for somebody who may not do it anywhere.
    if (route.permission !== null && !who.permissions.has(route.permission)) await need(route.permission);
    // A dry run changes nothing, but whoever may change nothing has no use for it.
    if (route.write === true && (await readOnly()))
      throw new ApiError(
        "READ_ONLY",
        given.readOnly === true
          ? "This dashboard is read-only."
          : "The database is read-only: it is a standby, or the role may not write.",
      );
    const read = async () => {
      const query = readQuery(route.query, url.searchParams);
      const { value, text } =
        write && hasBody(request) ? await readJson(request, maxBody) : { value: {}, text: "{}" };
      return { query, body: readBody(route.body, value), text };
    };
    const { query, body, text } = await read().catch(async (error: unknown) => {
      // Nobody knows what an unreadable request is about: only those who may do this anywhere learn what is wrong with it.
      if (route.permission !== null) await need(route.permission, () => resource("cluster"));
      throw error;
    });
    const context: RouteContext = {
      ...common,
      request,
      path,
      query,
      body,
      exactBody: () => exactBody(text),
      user: who,
      databases: async () => (await shared?.databases(who, request)) ?? [],
      topics: () => Promise.all(topicsOf(url.searchParams).map((topic) => followed(topic, who, request))),
      may,
      need,
      about,
      audit: (action, target, outcome, details) => audit(who, { action, target, outcome, details }),
    };
    const run = async (): Promise<Response | object> => {
      if (route.permission !== null) await need(route.permission);
      return route.run(context);
    };
    const readAt = { [READ_AT]: String(env.clock.now()) };
    const result = await (route.write === true || probe ? run() : inTime(env.clock, run));
    if (result instanceof Response) return result;
    return json(result, 200, write ? {} : readAt);
  }

  /** What somebody may do, asked of what a route is about; that is read once, and only where somebody decides by it. */
  function asks(
    who: Identity,
    request: Request,
    route: Route,
    context: () => RouteContext,
  ): Pick<RouteContext, "may" | "need" | "about"> {
    let known: Promise<readonly Resource[]> | null = null;
    const about = (): Promise<readonly Resource[]> => (known ??= resourcesOf(route, context()));
    const may: RouteContext["may"] = async (permission, of) => {
      if (!who.permissions.has(permission)) return false;
      if (given.authorize === undefined) return true;
      const user = { name: who.name, permissions: [...who.permissions] };
      for (const one of [await (of ?? about)()].flat())
        if (!(await given.authorize(user, permission, one, request))) return false;
      return true;
    };
    const need: RouteContext["need"] = async (permission, of) => {
      if (await may(permission, of)) return;
      throw new ApiError(
        "FORBIDDEN",
        who.permissions.has(permission)
          ? `This needs the permission ${permission}, which you do not have for this object.`
          : `This needs the permission ${permission}, which you do not have.`,
      );
    };
    return { may, need, about };
  }

  /**
   * A topic for somebody who may ask its route: asked of the site's own `authorize` as a request to that route would be, so that a
   * stream shows nothing that the route does not. Those who may see the same share one look.
   */
  async function followed(topic: Topic, who: Identity, request: Request): Promise<Followed> {
    const { route, path, query, sees } = topic;
    // It tells of other jobs by the permission for each, which only this person's own look can ask.
    const apart = topic.apart && given.authorize !== undefined;
    const asked = new Request(new URL(`${basePath}/api/v1${addressOf(topic)}`, request.url), {
      headers: request.headers,
    });
    const seen: Permission[] = [];
    const places = new Map<string, Promise<boolean>>();
    const maySee: RouteContext["may"] = async (permission, of) => {
      if (of !== undefined && given.authorize !== undefined) {
        // A shared look cannot depend on what one person may see beside the route's own subject.
        if (!apart) return false;
        const resources = [await of()].flat();
        const key = JSON.stringify([
          permission,
          resources.map(({ type, queue, name }) => [type, queue, name]),
        ]);
        const known = places.get(key) ?? may(permission, () => resources);
        places.set(key, known);
        return known;
      }
      if (permission === route.permission) return true;
      if (sees.includes(permission)) return seen.includes(permission);
      throw new Error(`The topic ${topic.name} asks for ${permission}, which it does not name`);
    };
    const context: RouteContext = {
      ...common,
      // Nobody's: it is looked at for all of them.
      request: new Request(asked.url),
      path,
      query: readQuery(route.query, query),
      body: {},
      exactBody: () => ({}),
      user: NOBODY,
      databases: async () => [],
      topics: async () => [],
      may: maySee,
      need: async (permission) => {
        if (!(await maySee(permission))) throw new ApiError("FORBIDDEN", `This needs ${permission}.`);
      },
      about: () => about(),
      audit: async () => {},
    };
    const { may, need, about } = asks(who, asked, route, () => context);
    if (route.permission !== null) await need(route.permission);
    if (topic.name === stream.overview.topic) return stream.overview;
    for (const permission of sees) if (await may(permission)) seen.push(permission);
    return {
      topic: topic.name,
      key: [topic.name, ...seen, ...(apart ? [randomUUID()] : [])].join(" "),
      everyMs: topic.everyMs,
      read: () => asDashboardRead(async () => route.run(context)),
    };
  }

  async function audit(
    who: Identity,
    entry: Pick<AuditEntry, "action" | "target" | "outcome"> & { details: unknown },
  ): Promise<void> {
    const { action, target, outcome, details } = entry;
    try {
      await store.insight.addAudit({
        actor: storable(who.name, 200),
        action,
        target: target === null ? null : storable(target, 500),
        outcome,
        details: details === undefined ? null : storable(JSON.stringify(details), 4_000),
      });
    } catch (error) {
      // It has happened; that the trail has a gap must be known to somebody.
      settings.logger.error(
        { error, actor: who.name, action, target, outcome },
        "an action of the dashboard was not recorded in the audit trail",
      );
    }
  }

  const handler = async (
    request: Request,
    from?: { readonly address?: string | undefined },
  ): Promise<Response> => {
    let response: Response;
    try {
      response = await answer(request, from?.address ?? "");
    } catch (error) {
      response = failed(error);
    }
    if (request.method !== "HEAD") return response;
    // Nobody will read it: a stream or an export must not stay open behind it.
    void response.body?.cancel();
    return new Response(null, response);
  };

  function failed(error: unknown): Response {
    if (error instanceof ApiError) return errorResponse(error);
    if (isHoldfastError(error)) {
      if (error.name === "UsageError") {
        const field = fieldsOfCodes[error.code] ?? error.details["option"];
        const issues = error.details["issues"] as ApiError["issues"];
        return errorResponse(
          new ApiError("BAD_REQUEST", error.message, {
            code: error.code,
            ...(typeof field === "string" ? { field } : {}),
            ...(issues === undefined ? {} : { issues }),
          }),
        );
      }
      if (error.code === "FORK_REFUSED")
        return errorResponse(new ApiError("CONFLICT", error.message, { code: error.code }));
      if (error.code === "SCHEDULE_NOT_FOUND" || error.code === "JOB_NOT_FOUND")
        return errorResponse(new ApiError("NOT_FOUND", error.message, { code: error.code }));
      if (error.code === "CLOSED")
        return errorResponse(new ApiError("UNAVAILABLE", "This server is shutting down. Try again."));
      if (error.code === "READ_ONLY")
        return errorResponse(new ApiError("READ_ONLY", "The database takes no writes now."));
    }
    const requestId = randomUUID();
    settings.logger.error({ error, requestId }, "a request to the dashboard failed");
    if (isHoldfastError(error) && error.name === "StoreError")
      return errorResponse(
        new ApiError("UNAVAILABLE", "The database does not answer. Try again.", {
          headers: { "retry-after": "1" },
        }),
        requestId,
      );
    return errorResponse(
      new ApiError(
        "INTERNAL",
        "The server had an internal error. Its log has the cause under the request's id.",
      ),
      requestId,
    );
  }

  return Object.assign(handler, {
    close: () => {
      stream.close();
      operations.close();
    },
  });
}

/** Never none: what is about nothing would be allowed to all. */
async function resourcesOf({ about }: Route, context: RouteContext): Promise<readonly Resource[]> {
  const found = [(await about?.(context)) ?? []].flat();
  return found.length === 0 ? [resource("cluster")] : found;
}

/** Beside this file in the package; in dist/ when the sources run as they are. */
function pageDirectory(): string {
  const here = fileURLToPath(new URL("./page", import.meta.url));
  return existsSync(here) ? here : fileURLToPath(new URL("../../dist/dashboard/page", import.meta.url));
}

function checkJobs(jobs: unknown = []): ReadonlyMap<string, AnyJob> {
  if (Array.isArray(jobs) && jobs.every(isJob)) return new Map(jobs.map((job) => [job.name, job]));
  throw new UsageError("BAD_OPTION", "jobs must be an array of definitions made by defineJob.", {
    details: { option: "jobs" },
  });
}

function hasBody(request: Request): boolean {
  return request.body !== null || request.headers.has("content-type");
}

function checkBasePath(basePath: unknown): string {
  if (basePath === undefined || basePath === "" || basePath === "/") return "";
  if (
    typeof basePath === "string" &&
    /^(\/[A-Za-z0-9._~-]+)+\/?$/.test(basePath) &&
    !/\/\.\.?(\/|$)/.test(basePath)
  )
    return basePath.replace(/\/$/, "");
  throw new UsageError("BAD_OPTION", 'basePath must be a path such as "/admin/jobs".', {
    details: { option: "basePath" },
  });
}

/** What follows the base path, undecoded; null: not ours. */
function pathBelow(pathname: string, basePath: string): string | null {
  if (pathname === basePath) return "";
  return pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length + 1) : null;
}

function decoded(segment: string): string {
  let text: string;
  try {
    text = decodeURIComponent(segment);
  } catch {
    throw new ApiError("BAD_REQUEST", "The address has an invalid % encoding.");
  }
  if (text.includes("\0")) throw new ApiError("BAD_REQUEST", "The address has a NUL character.");
  return text;
}

function checkTraceLink(link: unknown): string | null {
  if (link === undefined) return null;
  if (typeof link === "string" && /^https?:\/\/[^\s{}]+/.test(link) && link.includes("{traceId}"))
    return link;
  throw new UsageError(
    "BAD_OPTION",
    `traceLink must be a web address with {traceId} in it, such as "https://jaeger.example.org/trace/{traceId}"; got ${shown(link)}.`,
    { details: { option: "traceLink" } },
  );
}

/** A body that JSON.parse took: only how deep it is can be too much, because digits are looked at member by member. */
function exactBody(text: string): Record<string, unknown> {
  try {
    return parseExact(text) as Record<string, unknown>;
  } catch {
    throw new ApiError("BAD_REQUEST", "The body is nested too deeply.");
  }
}

/** For a browser that `auth` rejects: the application around the dashboard signs people in. */
function notSignedIn(): Response {
  const html = `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Not signed in</title></head><body><main class="gate"><h1>You are not signed in</h1><p>Sign in to the application that this dashboard belongs to, then reload this page.</p></main></body></html>`;
  return new Response(html, { status: 401, headers: { "content-type": "text/html; charset=utf-8" } });
}
