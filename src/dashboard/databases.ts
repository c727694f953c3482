/**
 * One dashboard over several databases: each below an address of its own, with a switch between them.
 *
 *   <basePath>/             ─▶ the first database
 *   <basePath>/db/eu/…      ─▶ the dashboard of `eu`: its page, its API, its stream, its audit trail
 *   <basePath>/db/nowhere/… ─▶ 401 for who is not signed in, else 404
 *   <basePath>/api/v1/health, …/ready ─▶ yes if each of them says so
 *
 * Invariants: a request is answered by the database that its address names and by no other; operations, streams and audit lines
 * of one are unknown to the others; signing in is shared, and so are wrong tokens, so that several databases are not
 * several guesses; what a person may do is asked of each database by itself, and those that they may not see are not listed.
 * Not here: what one dashboard does (handler.ts).
 */
import { UsageError } from "../errors.ts";
import type { Holdfast } from "../index.ts";
import { checkOptions } from "../values/options.ts";
import { isClient } from "../operate/index.ts";
import type { DatabaseLine } from "./api/contract.ts";
import type { DashboardHandler, DashboardOptions } from "./options.ts";
import { ApiError, errorResponse, json, secured } from "./http.ts";
import { resource } from "./api/resource.ts";
import { checkHost, type Gate, type Identity } from "./access/security.ts";

/**
 * A database of a dashboard that has several, with what holds for it alone; what is left out is as in the dashboard's own
 * options. `readOnly` there holds for all.
 *
 * @example
 * dashboard({ main: hf, archive: { hf: old, readOnly: true } }, { auth });
 */
export interface DashboardDatabase extends Pick<
  DashboardOptions,
  "readOnly" | "redact" | "authorize" | "label" | "labelColor"
> {
  readonly hf: Holdfast;
}

/** Several databases, by the names that stand in their addresses: letters, digits, `.`, `_` and `-`. */
export type Databases = Readonly<Record<string, Holdfast | DashboardDatabase>>;

/** What a dashboard shares with its siblings. */
export interface Shared {
  readonly gate: Gate;
  readonly database: string;
  /** The databases that this person may see. */
  readonly databases: (who: Identity, request: Request) => Promise<readonly DatabaseLine[]>;
}

const nameShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;
const mostDatabases = 100;
const probes: readonly string[] = ["/api/v1/health", "/api/v1/ready"];

/**
 * The databases, checked.
 *
 * @throws UsageError BAD_OPTION
 */
export function checkDatabases(databases: Databases): ReadonlyMap<string, DashboardDatabase> {
  const wrong = (message: string): UsageError =>
    new UsageError("BAD_OPTION", message, { details: { option: "databases" } });
  if (typeof databases !== "object" || databases === null)
    throw wrong("dashboard takes a client, or clients by name: { main: hf, eu: other }.");
  const entries = Object.entries(databases);
  if (entries.length === 0 || entries.length > mostDatabases)
    throw wrong(`dashboard takes from 1 to ${mostDatabases} databases; got ${entries.length}.`);
  return new Map(
    entries.map(([name, given]) => {
      if (!nameShape.test(name))
        throw wrong(
          `The name of a database is part of its address: letters, digits, ".", "_" and "-", at most 64; got ${JSON.stringify(name.slice(0, 80))}.`,
        );
      if (isClient(given)) return [name, { hf: given }];
      const options = checkOptions(
        given,
        ["hf", "readOnly", "redact", "authorize", "label", "labelColor"],
        `database ${name}`,
      );
      if (!isClient(options["hf"] as Holdfast)) throw wrong(`The database "${name}" needs a client \`hf\`.`);
      return [name, options as unknown as DashboardDatabase];
    }),
  );
}

/** Makes the dashboard of one database; handler.ts gives it. */
type Make = (hf: Holdfast, options: DashboardOptions, shared: Shared) => DashboardHandler;

/** One handler over all of them. */
export function dashboardOfMany(
  databases: ReadonlyMap<string, DashboardDatabase>,
  options: DashboardOptions,
  basePath: string,
  gate: Gate,
  make: Make,
): DashboardHandler {
  const hosts = options.hosts?.map((host) => host.toLowerCase());
  const pathOf = (name: string): string => `${basePath}/db/${name}`;
  const authorizeOf = (name: string): DashboardOptions["authorize"] =>
    databases.get(name)?.authorize ?? options.authorize;
  const seenBy = async (who: Identity, request: Request): Promise<readonly DatabaseLine[]> => {
    const user = { name: who.name, permissions: [...who.permissions] };
    const lines: DatabaseLine[] = [];
    for (const [name, { label }] of databases) {
      if (!who.permissions.has("view")) continue;
      if ((await authorizeOf(name)?.(user, "view", resource("page"), request)) === false) continue;
      lines.push({ name, label: label ?? null, path: pathOf(name) });
    }
    return lines;
  };
  const handlers = new Map(
    [...databases].map(([name, own]) => [
      name,
      make(
        own.hf,
        {
          ...options,
          basePath: pathOf(name),
          readOnly: options.readOnly === true || own.readOnly === true,
          label: own.label ?? options.label,
          // A label of its own does not wear the colour of another.
          labelColor: own.labelColor ?? (own.label === undefined ? options.labelColor : undefined),
          redact: own.redact ?? options.redact,
          authorize: authorizeOf(name),
        },
        { gate, database: name, databases: seenBy },
      ),
    ]),
  );
  const first = databases.keys().next().value as string;

  /** Of the process: with one database that does not answer it is not well. */
  async function probed(request: Request, path: string): Promise<Response> {
    const each = [...handlers].map(([name, own]) =>
      own(new Request(new URL(`${pathOf(name)}${path}`, request.url), { headers: request.headers })),
    );
    const ok = (await Promise.all(each)).every(({ status }) => status === 200);
    return json({ ok }, ok ? 200 : 503);
  }

  async function nobody(request: Request, address: string): Promise<Response> {
    checkHost(request, hosts);
    const { pathname } = new URL(request.url);
    const reads = request.method === "GET" || request.method === "HEAD";
    const below = pathname.startsWith(`${basePath}/`) ? pathname.slice(basePath.length) : "";
    if (reads && probes.includes(below)) return probed(request, below);
    if (reads && (pathname === basePath || pathname === `${basePath}/`))
      return secured(new Response(null, { status: 302, headers: { location: `${pathOf(first)}/` } }));
    // Which names there are is for those who are signed in.
    const who = await gate.identify(request, address);
    if (who instanceof Response) return secured(who);
    if (who === null) throw new ApiError("UNAUTHORIZED", "Send a token: Authorization: Bearer …");
    throw new ApiError(
      "NOT_FOUND",
      "There is no database at this address. Each database is at /db/ and its name.",
    );
  }

  const handler = async (
    request: Request,
    from?: { readonly address?: string | undefined },
  ): Promise<Response> => {
    const { pathname } = new URL(request.url);
    const name = pathname.startsWith(`${basePath}/db/`)
      ? (pathname.slice(basePath.length + 4).split("/")[0] ?? "")
      : "";
    const own = handlers.get(name);
    if (own !== undefined) return own(request, from);
    try {
      return await nobody(request, from?.address ?? "");
    } catch (error) {
      if (error instanceof ApiError) return errorResponse(error);
      throw error;
    }
  };
  return Object.assign(handler, { close: () => handlers.forEach((one) => one.close()) });
}
