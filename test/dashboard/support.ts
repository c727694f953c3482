// A dashboard over a fresh store, asked like a browser's page or a program would.
import { onTestFinished } from "vitest";
import type { Holdfast, OpenOptions } from "../../src/index.ts";
import { dashboard, type DashboardHandler, type DashboardOptions } from "../../src/dashboard/handler.ts";
import type { ErrorBody } from "../../src/dashboard/api/contract.ts";
import { fresh } from "../support/test-clients.ts";
import type { FreshStore, StoreTarget } from "../support/stores.ts";

export const TOKEN = "a-token-that-is-long-enough";

export interface Answer<T = unknown> {
  readonly status: number;
  readonly body: T;
  readonly headers: Headers;
}

export interface Api {
  readonly hf: Holdfast;
  readonly store: FreshStore;
  readonly handler: DashboardHandler;
  readonly get: <T = never>(path: string, headers?: Record<string, string>) => Promise<Answer<T>>;
  readonly send: <T = never>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Record<string, string>,
  ) => Promise<Answer<T>>;
}

export async function api(
  target: StoreTarget,
  options: Partial<DashboardOptions> = {},
  open: OpenOptions = {},
): Promise<Api> {
  const { hf, store } = await fresh(target, open);
  return { hf, store, ...over(hf, options) };
}

export function over(
  hf: Holdfast,
  options: Partial<DashboardOptions> = {},
): Pick<Api, "handler" | "get" | "send"> {
  const handler = dashboard(hf, { auth: { token: TOKEN }, ...options });
  onTestFinished(() => handler.close());
  const base = `http://localhost${options.basePath ?? ""}/api/v1`;
  const ask = async (method: string, path: string, body: unknown, headers: Record<string, string>) => {
    const response = await handler(
      new Request(base + path, {
        method,
        headers: {
          authorization: `Bearer ${TOKEN}`,
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
      }),
    );
    const text = await response.text();
    return {
      status: response.status,
      headers: response.headers,
      body: (text === "" ? null : JSON.parse(text)) as never,
    };
  };
  return {
    handler,
    get: (path, headers = {}) => ask("GET", path, undefined, headers),
    send: (method, path, body, headers = {}) => ask(method, path, body, headers),
  };
}

/** The code of an error answer. */
export function code(answer: Answer): string {
  return (answer.body as ErrorBody).error.code;
}
