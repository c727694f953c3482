/**
 * `dashboard(hf, options)`: the page and its API as one function from Request to Response.
 *
 *   host ─▶ path ─┬─ a file or screen ─▶ who (unless the page is public) ─▶ the file
 *                 └─ /api/v1/… ─▶ origin ─▶ who ─▶ read-only? ─▶ permission ─▶ body ─▶ route ─▶ audit
 *
 * Invariants: it never throws and never answers without the security headers; what goes wrong inside is logged with an
 * id, and only the id is told; nothing about jobs is sent before the asker is known.
 * Not here: the routes (routes.ts), the checks (security.ts), Node's request objects (node.ts), a server (serve.ts).
 */
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isHoldfastError, shown, UsageError } from "../errors.ts";
import type { Holdfast } from "../index.ts";
import { Operations, storable } from "../operations.ts";
import { checkOptions } from "../policy/options.ts";
import { type Adapters, adaptersOf } from "./adapters.ts";
import { Assets } from "./assets.ts";
import type { Permission } from "./contract.ts";
import { ApiError, errorResponse, json, readJson, secured } from "./http.ts";
import { checkDatabases, dashboardOfMany, type Databases, isClient, type Shared } from "./databases.ts";
import { openapi } from "./openapi.ts";
import type { DashboardHandler, DashboardOptions } from "./options.ts";
import { readOverview } from "./overview.ts";
import { onlyParams } from "./query.ts";
import { Redactor } from "./redact.ts";
import { checkBody, match, type RouteContext } from "./routes.ts";
import { checkHost, checkOrigin, Gate, type Identity } from "./security.ts";
import { Stream } from "./stream.ts";

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
  "traceLink",
  "maxBody",
];
const mebibyte = 1_048_576;

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
  if (isClient(target)) return dashboardWith(target, options, adaptersOf(target));
  const databases = checkDatabases(target);
  const given = checkOptions(options, optionNames, "dashboard") as unknown as DashboardOptions;
  const basePath = checkBasePath(given.basePath);
  const [own] = databases.values();
  const clock = own?.hf.internals.env.clock;
  const gate = new Gate(given.auth, () => clock?.monotonic() ?? 0);
  return dashboardOfMany(databases, given, basePath, gate, (hf, its, adapters, shared) =>
    dashboardWith(hf, its, adapters, pageDirectory(), shared),
  );
}

/** @internal With adapters of one's own: for tests of values that no client lets in. */
export function dashboardWith(
  hf: Holdfast,
  options: DashboardOptions,
  adapters: Adapters,
  directory: string = pageDirectory(),
  shared: Shared | null = null,
): DashboardHandler {
  const given = checkOptions(options, optionNames, "dashboard") as unknown as DashboardOptions;
  const { store, env, settings } = hf.internals;
  const gate = shared?.gate ?? new Gate(given.auth, () => env.clock.monotonic());
  const basePath = checkBasePath(given.basePath);
  const redactor = new Redactor(given.redact);
  const assets = new Assets(directory);
  const stream = new Stream({
    read: () => readOverview(store),
    watch: (onWake) => store.listen(onWake),
    clock: env.clock,
  });
  const operations = new Operations(hf);
  const hosts = given.hosts?.map((host) => host.toLowerCase());
  const origins = (given.origins ?? []).map((origin) => origin.toLowerCase());
  const readOnly = given.readOnly === true;
  const label = given.label ?? null;
  const traceLink = checkTraceLink(given.traceLink);
  const maxBody = given.maxBody ?? mebibyte;

  async function answer(request: Request, address: string): Promise<Response> {
    checkHost(request, hosts);
    const url = new URL(request.url);
    const below = pathBelow(url.pathname, basePath);
    if (below === null) throw new ApiError("NOT_FOUND", "There is nothing here.");
    if (below.startsWith("api/")) return api(request, url, below, address);
    if (request.method !== "GET" && request.method !== "HEAD")
      throw new ApiError("METHOD_NOT_ALLOWED", "Only GET here.", { headers: { allow: "GET, HEAD" } });
    const response =
      assets.file(below) ??
      assets.page(below, basePath, {
        basePath,
        label,
        traceLink,
        database: shared?.database ?? null,
        auth: gate.publicShell ? "token" : "page",
      });
    if (response === null) throw new ApiError("NOT_FOUND", "There is nothing here.");
    if (!gate.publicShell) {
      const who = await gate.identify(request, address);
      if (who instanceof Response) return secured(who);
      if (who === null) throw new ApiError("UNAUTHORIZED", "Sign in first.");
    }
    return response;
  }

  async function api(request: Request, url: URL, below: string, address: string): Promise<Response> {
    const segments = below.split("/").map(decoded);
    if (segments[1] !== "v1") throw new ApiError("NOT_FOUND", "This server has /api/v1.");
    const method = request.method === "HEAD" ? "GET" : request.method;
    const write = method !== "GET";
    checkOrigin(request, origins, write);
    const who = await gate.identify(request, address);
    if (who instanceof Response) return secured(who);
    if (who === null)
      throw new ApiError("UNAUTHORIZED", "Say who you are: Authorization: Bearer …", {
        headers: gate.publicShell ? { "www-authenticate": "Bearer" } : {},
      });
    const matched = match(method, segments.slice(2));
    if (matched === null) throw new ApiError("NOT_FOUND", "The API has no such address.");
    if (matched === "method")
      throw new ApiError("METHOD_NOT_ALLOWED", `${method.slice(0, 10)} is not possible here.`);
    const { route, path } = matched;
    const may = async (permission: Permission): Promise<boolean> => {
      if (!who.permissions.has(permission)) return false;
      if (given.authorize === undefined) return true;
      return given.authorize({ name: who.name, permissions: [...who.permissions] }, permission, request);
    };
    const need = async (permission: Permission): Promise<void> => {
      if (!(await may(permission)))
        throw new ApiError("FORBIDDEN", `This needs the permission ${permission}, which you do not have.`);
    };
    if (route.permission !== null) await need(route.permission);
    // A dry run changes nothing, but whoever may change nothing has no use for it.
    if (route.write === true && readOnly) throw new ApiError("READ_ONLY", "This dashboard is read-only.");
    onlyParams(url.searchParams, route.query ?? []);
    const body = write && hasBody(request) ? await readJson(request, maxBody) : {};
    checkBody(route, body);
    const context: RouteContext = {
      hf,
      store,
      insight: store.insight,
      request,
      path,
      query: url.searchParams,
      body,
      user: who,
      readOnly,
      label,
      redactor,
      operations,
      stream,
      adapters,
      database: shared?.database ?? null,
      databases: async () => (await shared?.databases(who, request)) ?? [],
      openapi: () => openapi(basePath),
      may,
      need,
      audit: (action, target, outcome, details) => audit(who, action, target, outcome, details),
    };
    const result = await route.run(context);
    return result instanceof Response ? result : json(result);
  }

  async function audit(
    who: Identity,
    action: string,
    target: string | null,
    outcome: string,
    details?: unknown,
  ) {
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
        "an action of the dashboard is missing on the audit trail",
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
        const field = error.details["option"];
        return errorResponse(
          new ApiError("BAD_REQUEST", error.message, {
            code: error.code,
            ...(typeof field === "string" ? { field } : {}),
          }),
        );
      }
      if (error.code === "FORK_REFUSED")
        return errorResponse(new ApiError("CONFLICT", error.message, { code: error.code }));
      if (error.code === "SCHEDULE_NOT_FOUND" || error.code === "JOB_NOT_FOUND")
        return errorResponse(new ApiError("NOT_FOUND", error.message, { code: error.code }));
      if (error.code === "READ_ONLY")
        return errorResponse(new ApiError("READ_ONLY", "The database takes no changes now."));
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
      new ApiError("INTERNAL", "Something went wrong here. The log has it under the request's id."),
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

/** Beside this file in the package; in dist/ when the sources run as they are. */
function pageDirectory(): string {
  const here = fileURLToPath(new URL("./page", import.meta.url));
  return existsSync(here) ? here : fileURLToPath(new URL("../../dist/dashboard/page", import.meta.url));
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
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ApiError("BAD_REQUEST", "The address has a % that is no encoding.");
  }
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
