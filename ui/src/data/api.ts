// Asking the server. The token comes behind # in the address that the CLI prints; it is taken out of the address at once
// and kept for this tab alone.
import { signal } from "@preact/signals";
import type { ErrorBody } from "../../../src/dashboard/api/contract.ts";
import { READ_AT } from "../../../src/dashboard/api/headers.ts";
import type { Params } from "./query-params.ts";
import { page } from "./page-settings.ts";

const tokenKey = "holdfast.token";

function takeToken(): string | null {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  try {
    if (match?.[1] !== undefined) {
      sessionStorage.setItem(tokenKey, match[1]);
      history.replaceState(null, "", location.pathname + location.search);
    }
    return sessionStorage.getItem(tokenKey);
  } catch {
    return match?.[1] ?? null;
  }
}

export const token = signal<string | null>(takeToken());
/** The server did not know us: a token must be put in. */
export const locked = signal(page.auth === "token" && token.value === null);

/** Why the token that was put in does not open: said beside its field. */
export const denied = signal<string | null>(null);

/** One question with the token: wrong ones are counted, and a whole screen would use up all guesses at once. */
export async function unlock(value: string): Promise<void> {
  denied.value = null;
  token.value = value;
  try {
    await call("/me");
  } catch (error) {
    if (denied.value === null) denied.value = error instanceof Error ? error.message : String(error);
    return;
  }
  try {
    sessionStorage.setItem(tokenKey, value);
  } catch {
    // For this page alone, then.
  }
  locked.value = false;
}

export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly issues: NonNullable<ErrorBody["error"]["issues"]>;

  constructor(status: number, body: ErrorBody | null) {
    super(body?.error.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = body?.error.code ?? "UNKNOWN";
    this.field = body?.error.field;
    this.issues = body?.error.issues ?? [];
  }
}

export type { Params };

export function query(params: Params): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(params)) {
    if (value === null || value === undefined || value === "") continue;
    const text = Array.isArray(value) ? value.join(",") : String(value);
    // A line each: several values of one parameter.
    if (text !== "") for (const one of text.split("\n")) search.append(name, one);
  }
  const text = search.toString();
  return text === "" ? "" : `?${text}`;
}

export async function call(
  path: string,
  init: {
    method?: string;
    body?: unknown;
    /** A body that is JSON already. */
    json?: string;
    signal?: AbortSignal;
    headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Response> {
  const body = init.json ?? (init.body === undefined ? undefined : JSON.stringify(init.body, exactly));
  const asking = fetch(`${page.basePath}/api/v1${path}`, {
    method: init.method ?? "GET",
    headers: {
      ...(token.value === null ? {} : { authorization: `Bearer ${token.value}` }),
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      "x-holdfast": "1",
      ...init.headers,
    },
    ...(body === undefined ? {} : { body }),
    ...(init.signal === undefined ? {} : { signal: init.signal }),
    cache: "no-store",
    redirect: "manual",
  });
  const response = await (init.method === undefined ? asking : noticed(asking));
  if (response.ok || response.status === 304) return response;
  // Elsewhere 429 may tell of too many streams; here it is wrong tokens alone.
  const guessed = response.status === 429 && path === "/me";
  if (page.auth === "token" && (response.status === 401 || guessed)) {
    locked.value = true;
    if (guessed) denied.value = "Too many wrong tokens. Wait a minute, then try again.";
    else if (token.value !== null) denied.value ??= "Wrong token.";
  }
  let told: ErrorBody | null = null;
  try {
    told = (await response.json()) as ErrorBody;
  } catch {
    told = null;
  }
  throw new ApiFailure(response.status, told);
}

/** How many changes have waited so long for the database that it must be said. */
export const slow = signal(0);
const slowMs = 1_000;

async function noticed<T>(change: Promise<T>): Promise<T> {
  let late = 0;
  const timer = setTimeout(() => {
    late = 1;
    slow.value += 1;
  }, slowMs);
  try {
    return await change;
  } finally {
    clearTimeout(timer);
    slow.value -= late;
  }
}

/** JSON has no NaN and would write null, which takes a limit away. */
function exactly(name: string, value: unknown): unknown {
  if (typeof value === "number" && !Number.isFinite(value)) throw new Error(`The ${name} is not a number.`);
  return value;
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const response = await call(path + query(params), signal === undefined ? {} : { signal });
  if (signal !== undefined)
    readAts.set(signal, Math.max(readAtOf(signal), Number(response.headers.get(READ_AT) ?? 0)));
  return (await response.json()) as T;
}

/** Counts undone actions: after each, every query of the page is repeated. */
export const renewed = signal(0);

const readAts = new WeakMap<AbortSignal, number>();

/** When the server began to read the last of what was asked for with this signal, by its clock. */
export function readAtOf(signal: AbortSignal): number {
  return readAts.get(signal) ?? 0;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await call(path, body === undefined ? { method } : { method, body });
  return (await response.json()) as T;
}

/** A path segment that may hold anything. */
export function seg(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
