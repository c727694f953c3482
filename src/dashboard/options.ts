/** What `dashboard` takes, and what it gives. */
import type { Redact } from "./access/redact.ts";
import type { Auth, Authorize } from "./access/security.ts";
import type { AnyJob } from "../index.ts";

/**
 * What `dashboard` takes.
 *
 * @example
 * const handler = dashboard(hf, { auth: (request) => userOf(request), basePath: "/admin/jobs", readOnly: false });
 */
export interface DashboardOptions {
  /** Who is asking. Required: there is no default that would be safe. */
  readonly auth: Auth;
  /** Nothing can be changed, whoever asks. Default false. */
  readonly readOnly?: boolean | undefined;
  /** Where it is mounted, such as "/admin/jobs". Default: at the root. */
  readonly basePath?: string | undefined;
  /** What is taken out of payloads and errors before they leave the server. */
  readonly redact?: Redact | undefined;
  /**
   * A last word on each action, besides the user's role: who, what, about what. An action about several things (jobs of two
   * queues) is asked of each, and all must be allowed. `resource.queue` is null where it is not about one queue alone.
   *
   * @example
   * authorize: (user, permission, { type, queue }) =>
   *   type === "page" || permission === "view" || (queue?.startsWith(`${teamOf(user)}.`) ?? false),
   */
  readonly authorize?: Authorize | undefined;
  /** Host headers that are answered, such as "jobs.example.org". Default: all, since your server has its own. */
  readonly hosts?: readonly string[] | undefined;
  /** Origins besides its own that may send changes, where a proxy rewrites Host and the browser is old. */
  readonly origins?: readonly string[] | undefined;
  /** Shown on every screen, such as "production". */
  readonly label?: string | undefined;
  /** red, orange, yellow, green, blue, violet, pink or grey. */
  readonly labelColor?: string | undefined;
  /** Where a job's trace is seen, such as "https://jaeger.example.org/trace/{traceId}": a link on its page. */
  readonly traceLink?: string | undefined;
  /**
   * Definitions, with or without handlers, besides those that this process works on: a new job is checked against their
   * schemas, gets their key, lane and queue, and has a form.
   */
  readonly jobs?: readonly AnyJob[] | undefined;
  /** Largest request body in bytes. Default 1 MiB. */
  readonly maxBody?: number | undefined;
}

/**
 * A function from Request to Response, with a way to end its live streams. `address` counts wrong tokens by client.
 *
 * @example
 * const response = await handler(new Request("http://localhost/admin/jobs/api/v1/overview"));
 */
export interface DashboardHandler {
  (request: Request, from?: { readonly address?: string | undefined }): Promise<Response>;
  /** Ends the live streams. The client stays open. */
  close(): void;
}
