/**
 * Answers and bodies: the headers that every response carries, errors as JSON, and reading a body within its limit.
 *
 * Invariants: no response leaves without the content security policy; an error tells its code and what to do, and never
 * what went wrong inside; nothing is cached but files whose name is their hash.
 */
import type { ApiErrorCode, ErrorBody } from "./api/contract.ts";

/** Nothing but our own files and our own API; no inline script or style, no frame, no base, no form. */
export const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join("; ");

export const SECURITY_HEADERS: Readonly<Record<string, string>> = {
  "content-security-policy": CONTENT_SECURITY_POLICY,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  "cache-control": "no-store",
};

const statuses: Readonly<Record<ApiErrorCode, number>> = {
  BAD_REQUEST: 400,
  UNAUTHORIZED: 401,
  FORBIDDEN: 403,
  READ_ONLY: 403,
  BAD_HOST: 403,
  CROSS_SITE: 403,
  NOT_FOUND: 404,
  METHOD_NOT_ALLOWED: 405,
  CONFLICT: 409,
  TOO_LARGE: 413,
  UNSUPPORTED_MEDIA_TYPE: 415,
  TOO_MANY_REQUESTS: 429,
  UNAVAILABLE: 503,
  INTERNAL: 500,
};

/** An answer that is not 2xx, thrown by a route. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly field: string | undefined;
  readonly issues: ErrorBody["error"]["issues"];
  readonly headers: Readonly<Record<string, string>>;

  constructor(
    kind: ApiErrorCode,
    message: string,
    extra: {
      code?: string;
      field?: string;
      issues?: ErrorBody["error"]["issues"];
      headers?: Readonly<Record<string, string>>;
    } = {},
  ) {
    super(message);
    this.status = statuses[kind];
    this.code = extra.code ?? kind;
    this.field = extra.field;
    this.issues = extra.issues;
    this.headers = extra.headers ?? {};
  }
}

export function json(value: unknown, status = 200, headers: Readonly<Record<string, string>> = {}): Response {
  return new Response(JSON.stringify(value), {
    status,
    headers: { ...SECURITY_HEADERS, "content-type": "application/json; charset=utf-8", ...headers },
  });
}

export function errorResponse(error: ApiError, requestId?: string): Response {
  const body: ErrorBody = {
    error: {
      code: error.code,
      message: error.message,
      ...(error.field === undefined ? {} : { field: error.field }),
      ...(error.issues === undefined ? {} : { issues: error.issues }),
      ...(requestId === undefined ? {} : { requestId }),
    },
  };
  return json(body, error.status, error.headers);
}

/** The same headers on a response that is not of our making (a redirect by the user's `auth`). */
export function secured(response: Response): Response {
  const headers = new Headers(response.headers);
  for (const [name, value] of Object.entries(SECURITY_HEADERS))
    if (!headers.has(name)) headers.set(name, value);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/**
 * As much of a body that is too large is still read, and dropped: a client that is cut off while it sends gets no answer at
 * all, and would not know why.
 */
const patienceBytes = 16_777_216;

/** A JSON object and its text, at most `limit` bytes, whatever its Content-Length claims. */
export async function readJson(
  request: Request,
  limit: number,
): Promise<{ readonly value: Record<string, unknown>; readonly text: string }> {
  const type = request.headers.get("content-type");
  const wrongType = (): ApiError =>
    new ApiError("UNSUPPORTED_MEDIA_TYPE", "Send the body as application/json.");
  if (type !== null && !/^application\/json\s*(;|$)/i.test(type)) throw wrongType();
  const tooLarge = (): ApiError => new ApiError("TOO_LARGE", `The body may have at most ${limit} bytes.`);
  if (Number(request.headers.get("content-length") ?? 0) > limit + patienceBytes) throw tooLarge();
  const chunks: Uint8Array[] = [];
  let size = 0;
  if (request.body !== null) {
    // To leave the loop cancels the rest.
    for await (const chunk of request.body as unknown as AsyncIterable<Uint8Array>) {
      size += chunk.byteLength;
      if (size > limit + patienceBytes) throw tooLarge();
      if (size > limit) chunks.length = 0;
      else chunks.push(chunk);
    }
  }
  if (size > limit) throw tooLarge();
  if (size === 0) return { value: {}, text: "{}" };
  if (type === null) throw wrongType();
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.concat(chunks));
    value = JSON.parse(text);
  } catch {
    throw new ApiError("BAD_REQUEST", "The body is not JSON.");
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ApiError("BAD_REQUEST", "The body must be a JSON object.");
  return { value: value as Record<string, unknown>, text };
}
