// Asking the server. The token comes behind # in the address that the CLI prints; it is taken out of the address at once
// and kept for this tab alone.
import { signal } from "@preact/signals";
import type { ErrorBody } from "../../src/dashboard/contract.ts";
import { page } from "./settings.ts";

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

export function unlock(value: string): void {
  try {
    sessionStorage.setItem(tokenKey, value);
  } catch {
    // For this page alone, then.
  }
  token.value = value;
  locked.value = false;
}

export class ApiFailure extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;

  constructor(status: number, body: ErrorBody | null) {
    super(body?.error.message ?? `The server answered ${status}.`);
    this.status = status;
    this.code = body?.error.code ?? "UNKNOWN";
    this.field = body?.error.field;
  }
}

export type Params = Readonly<
  Record<string, string | number | boolean | readonly string[] | null | undefined>
>;

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
    signal?: AbortSignal;
    headers?: Readonly<Record<string, string>>;
  } = {},
): Promise<Response> {
  const response = await fetch(`${page.basePath}/api/v1${path}`, {
    method: init.method ?? "GET",
    headers: {
      ...(token.value === null ? {} : { authorization: `Bearer ${token.value}` }),
      ...(init.body === undefined ? {} : { "content-type": "application/json" }),
      "x-holdfast": "1",
      ...init.headers,
    },
    ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
    ...(init.signal === undefined ? {} : { signal: init.signal }),
    cache: "no-store",
    redirect: "manual",
  });
  if (response.ok || response.status === 304) return response;
  if (response.status === 401 && page.auth === "token") locked.value = true;
  let body: ErrorBody | null = null;
  try {
    body = (await response.json()) as ErrorBody;
  } catch {
    body = null;
  }
  throw new ApiFailure(response.status, body);
}

export async function get<T>(path: string, params: Params = {}, signal?: AbortSignal): Promise<T> {
  const response = await call(path + query(params), signal === undefined ? {} : { signal });
  return (await response.json()) as T;
}

export async function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await call(path, body === undefined ? { method } : { method, body });
  return (await response.json()) as T;
}

/** A path segment that may hold anything. */
export function seg(text: string): string {
  return encodeURIComponent(text.toWellFormed());
}
