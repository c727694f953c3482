/**
 * Who is asking, from where, and what they may do: decided before any route runs.
 *
 *   host allow-list ─▶ same origin ─▶ who ─▶ may they ─▶ route
 *
 * Invariants: a token is compared in constant time over digests; wrong tokens are counted for each address and answered
 * 429 after ten, and the right one never is: behind a proxy everybody has one address, and who guesses must shut nobody out;
 * a request that a browser made for another site changes nothing, whoever is signed in; read-only and permissions are
 * decided here, not in the page.
 * Not here: what a route needs (dashboard/routes/table.ts), redaction (redact.ts).
 */
import { createHash, timingSafeEqual } from "node:crypto";
import { UsageError } from "../../errors.ts";
import { type Permission, PERMISSIONS } from "../api/contract.ts";
import { ApiError } from "../http.ts";
import type { Resource } from "../api/resource.ts";

/** What a person may do, by one word. An operator does everything but delete, change settings and read the audit trail. */
export type Role = "viewer" | "operator" | "admin";

/** Who is asking, as `auth` says. */
export interface User {
  readonly name: string;
  /** Default: admin. */
  readonly role?: Role;
  /** In place of a role. */
  readonly permissions?: readonly Permission[];
}

/**
 * Says who is asking: a user (or just a name, for an admin), null for nobody, or a response of your own, such as a
 * redirect to your sign-in. `{ token }` asks for `Authorization: Bearer …` instead.
 */
export type Auth = { readonly token: string } | ((request: Request) => AuthAnswer | Promise<AuthAnswer>);
/** What an `auth` function gives. */
export type AuthAnswer = User | string | null | undefined | Response;

/**
 * Whether somebody may do something to something.
 *
 * @example
 * const authorize: Authorize = (user, permission, { queue }) => permission === "view" || queue === user.name;
 */
export type Authorize = (
  user: User,
  permission: Permission,
  resource: Resource,
  request: Request,
) => boolean | Promise<boolean>;

/** Who is asking, settled. */
export interface Identity {
  readonly name: string;
  readonly permissions: ReadonlySet<Permission>;
}

/** Who asks for what everybody may know. */
export const NOBODY: Identity = { name: "", permissions: new Set() };

const viewer: readonly Permission[] = ["view", "view:payload"];
const operator: readonly Permission[] = [
  ...viewer,
  "jobs:search",
  "jobs:export",
  "jobs:retry",
  "jobs:run",
  "jobs:pause",
  "jobs:cancel",
  "jobs:edit",
  "jobs:enqueue",
  "errors:decide",
  "queues:pause",
  "schedules:trigger",
  "workflows:signal",
];
export const ROLES: Readonly<Record<Role, readonly Permission[]>> = { viewer, operator, admin: PERMISSIONS };

const maxFailures = 10;
const failureWindowMs = 60_000;
const maxAddresses = 10_000;

/** Wrong tokens of each address. */
class Attempts {
  readonly #failures = new Map<string, { count: number; until: number }>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** @throws ApiError 429 while no more guesses are taken from the address. */
  check(address: string): void {
    const entry = this.#failures.get(address);
    if (entry === undefined) return;
    const leftMs = entry.until - this.#now();
    if (leftMs <= 0) this.#failures.delete(address);
    else if (entry.count >= maxFailures)
      throw new ApiError("TOO_MANY_REQUESTS", "Too many wrong tokens. Wait a minute.", {
        headers: { "retry-after": String(Math.ceil(leftMs / 1_000)) },
      });
  }

  failed(address: string): void {
    const known = this.#failures.get(address);
    // Bounded: an attacker with many addresses must not fill the memory.
    if (known === undefined && this.#failures.size >= maxAddresses) this.#failures.clear();
    this.#failures.set(address, { count: (known?.count ?? 0) + 1, until: this.#now() + failureWindowMs });
  }
}

export class Gate {
  readonly #auth: (request: Request, address: string) => Promise<Identity | null | Response>;
  /** The page itself may be loaded without: it holds no data, and it is where a token is put in. */
  readonly publicShell: boolean;

  constructor(auth: Auth | undefined, now: () => number) {
    this.publicShell = typeof auth === "object" && auth !== null;
    if (typeof auth === "function") this.#auth = (request) => byFunction(auth, request);
    else this.#auth = byToken(checkToken(auth), new Attempts(now));
  }

  identify(request: Request, address: string): Promise<Identity | null | Response> {
    return this.#auth(request, address);
  }
}

function checkToken(auth: unknown): string {
  const token = (auth as { token?: unknown } | null | undefined)?.token;
  if (typeof token === "string" && token.length >= 16) return token;
  throw new UsageError(
    "BAD_OPTION",
    token === undefined
      ? "dashboard needs `auth`: a function that returns the user, or { token }. Without it, anyone who reaches the address could read and delete jobs."
      : "auth.token must be a string of at least 16 characters.",
    { details: { option: "auth" } },
  );
}

async function byFunction(auth: (request: Request) => AuthAnswer | Promise<AuthAnswer>, request: Request) {
  const answer = await auth(request);
  if (answer === null || answer === undefined || answer === "") return null;
  if (answer instanceof Response) return answer;
  return identity(typeof answer === "string" ? { name: answer } : answer);
}

function identity(user: User): Identity {
  const role = user.role ?? "admin";
  const granted = user.permissions ?? (Object.hasOwn(ROLES, role) ? ROLES[role] : []);
  return {
    name: user.name,
    permissions: new Set(granted.filter((one) => PERMISSIONS.includes(one))),
  };
}

function byToken(token: string, attempts: Attempts) {
  const wanted = digest(token);
  return async (request: Request, address: string): Promise<Identity | null> => {
    const given = /^bearer +(\S+)$/i.exec(request.headers.get("authorization") ?? "")?.[1];
    // A request without a token is no guess: a page of another site can make a browser send those.
    if (given === undefined) return null;
    if (timingSafeEqual(digest(given), wanted)) return identity({ name: "token" });
    attempts.check(address);
    attempts.failed(address);
    attempts.check(address);
    return null;
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

/** @throws ApiError 403 for a Host that is not ours: DNS rebinding makes a foreign name point here. */
export function checkHost(request: Request, hosts: readonly string[] | undefined): void {
  if (hosts === undefined) return;
  const host = (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
  if (!hosts.includes(host)) throw new ApiError("BAD_HOST", "This server does not answer to this host name.");
}

/**
 * A browser says for whom it asks. Changes are for our own page alone; reading is refused to other sites too, though
 * they could not see the answer. Programs send neither header; they must say so with Authorization or `x-holdfast`,
 * which no other site's page can send without asking first.
 *
 * @throws ApiError 403
 */
export function checkOrigin(request: Request, origins: readonly string[], write: boolean): void {
  const refuse = (): never => {
    throw new ApiError("CROSS_SITE", "Requests from other sites are refused.");
  };
  const site = request.headers.get("sec-fetch-site");
  const origin = request.headers.get("origin");
  const trusted = origin !== null && origins.includes(origin.toLowerCase());
  if (trusted) return;
  if (site !== null) {
    if (site === "same-origin" || (site === "none" && !write)) return;
    refuse();
  }
  if (origin !== null) {
    const host = (request.headers.get("host") ?? new URL(request.url).host).toLowerCase();
    if (hostOf(origin) !== host) refuse();
    return;
  }
  if (write && !request.headers.has("authorization") && !request.headers.has("x-holdfast"))
    throw new ApiError(
      "CROSS_SITE",
      "Send the header x-holdfast: 1 with a change. It keeps pages of other sites from making changes.",
    );
}

function hostOf(origin: string): string | null {
  try {
    return new URL(origin).host.toLowerCase();
  } catch {
    return null; // "null", from a sandboxed frame or a file
  }
}
