/**
 * The jobs that a filter matches, as a file: one page after the other, as fast as the reader takes them, so that a million
 * jobs need no more memory than one page.
 *
 * Invariants: what is written is redacted like everything else, and without `view:payload` it has no input and no error;
 * jobs that are enqueued meanwhile are left out, so that it ends; a cell that a spreadsheet would take for a formula
 * begins with an apostrophe. An answer that breaks off is broken off on the wire too, never ended as if it were whole.
 */
import { object, oneOf } from "../api/schema.ts";
import { Export, FilterJson } from "../api/contract.ts";
import type { InsightFilter, InsightPage, JobSummary } from "../../operate/browse.ts";
import { ApiError, SECURITY_HEADERS } from "../http.ts";
import type { Redactor } from "../access/redact.ts";
import { fullLine } from "../api/shapes.ts";
import { readFilter, type Route, type RouteContext, route } from "./route.ts";
import { about } from "./targets.ts";

const pageSize = 500;
const chunkLength = 256 * 1_024;
const mostRunning = 4;
const mostOfOne = 2;
/** A reader that takes nothing for so long has its export broken off. */
const stalledMs = 30_000;
/** Who has exports under way, by server: each reads the database as fast as its reader allows. */
const running = new WeakMap<RouteContext["operations"], string[]>();

export const exportRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/jobs/export",
    id: "exportJobs",
    summary: "Every job that matches, newest first, as NDJSON or CSV; streamed.",
    permission: "jobs:export",
    about: about.jobsOfQuery,
    query: object({ format: { ...oneOf("ndjson", "csv"), default: "ndjson" } }, FilterJson.properties),
    answer: Export,
    type: "application/x-ndjson",
    run: async (context) => {
      const { store, operations } = context;
      const { format, ...filter } = context.query;
      const given = await readFilter(context, filter);
      const until = Math.min(given.until ?? Infinity, (await store.now()) + 1);
      const under = running.get(operations) ?? [];
      running.set(operations, under);
      const { name } = context.user;
      if (under.length >= mostRunning || under.filter((one) => one === name).length >= mostOfOne)
        throw new ApiError(
          "TOO_MANY_REQUESTS",
          `At most ${mostOfOne} exports of one user and ${mostRunning} in all may run at once. Wait for one to end.`,
          {
            headers: { "retry-after": "5" },
          },
        );
      under.push(name);
      const ended = (): void => void under.splice(under.indexOf(name), 1);
      const write = format === "csv" ? csv : ndjson;
      const body = await lines(context, { ...given, until }, write, ended);
      return new Response(body, {
        headers: {
          ...SECURITY_HEADERS,
          "content-type":
            format === "csv" ? "text/csv; charset=utf-8" : "application/x-ndjson; charset=utf-8",
          "content-disposition": `attachment; filename="jobs.${format}"`,
        },
      });
    },
  }),
];

interface Format {
  readonly head: string;
  line(job: JobSummary, redactor: Redactor, mayPayload: boolean): string;
}

/** The input as JSON within the line, its digits as they were stored; null: not yours to see. */
const ndjson: Format = {
  head: "",
  line: (job, redactor, mayPayload) => {
    const { input, ...rest } = fullLine(job, redactor, mayPayload);
    return `${JSON.stringify(rest).slice(0, -1)},"input":${input ?? "null"}}\n`;
  },
};

const columns = [
  "id",
  "name",
  "queue",
  "state",
  "priority",
  "attempt",
  "maxAttempts",
  "lane",
  "key",
  "context",
  "createdAt",
  "runAt",
  "startedAt",
  "endedAt",
  "error",
  "failureGroup",
  "inputBytes",
  "input",
] as const;

const csv: Format = {
  head: `${columns.join(",")}\r\n`,
  line: (job, redactor, mayPayload) => {
    const line = fullLine(job, redactor, mayPayload);
    return `${columns.map((column) => cell(column, line[column])).join(",")}\r\n`;
  },
};

function cell(column: string, value: string | number | null): string {
  if (value === null) return "";
  if (typeof value === "number") return column.endsWith("At") ? new Date(value).toISOString() : String(value);
  return quoted(value);
}

/** RFC 4180, and safe to open: = + - @, tab and carriage return begin a formula in the known spreadsheets. */
export function quoted(text: string): string {
  const safe = /^[\s\0]*[=+\-@\t\r\uFF1D\uFF0B\uFF0D\uFF20]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) || safe !== text ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** The first page is read before the answer begins: what is wrong with the filter is an error, not half a file. */
async function lines(
  context: RouteContext,
  filter: InsightFilter,
  format: Format,
  ended: () => void,
): Promise<ReadableStream<Uint8Array>> {
  const chunks = chunksOf(context, filter, format, await context.may("view:payload"));
  const encoder = new TextEncoder();
  let first: IteratorResult<string> | null = null;
  let over = false;
  const { clock } = context.operator.env;
  let patience: { cancel(): void } | null = null;
  const end = (): void => {
    patience?.cancel();
    if (!over) ended();
    over = true;
  };
  try {
    first = await chunks.next();
  } catch (error) {
    end();
    throw error;
  }
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      patience?.cancel();
      try {
        const chunk: IteratorResult<string> = first ?? (await chunks.next());
        first = null;
        if (chunk.done !== true) {
          controller.enqueue(encoder.encode(chunk.value.toWellFormed()));
          const stalled = (): void => {
            end();
            controller.error(new Error("The export was not read for 30 seconds."));
          };
          patience = clock.after(stalledMs, stalled, { unref: true });
          return;
        }
        end();
        controller.close();
      } catch (error) {
        end();
        throw error;
      }
    },
    cancel: end,
  });
}

/** Pieces of text of about `chunkLength`, so that large inputs do not gather to a page of them. */
async function* chunksOf(
  { insight, redactor }: RouteContext,
  filter: InsightFilter,
  format: Format,
  mayPayload: boolean,
): AsyncGenerator<string, void> {
  let text = format.head;
  let cursor: string | null = null;
  do {
    const page: InsightPage = await insight.browse(filter, { limit: pageSize, cursor });
    for (const job of page.jobs) {
      // A list leaves large inputs out.
      const large = mayPayload && job.input === null && job.inputBytes > 0;
      const input = large ? ((await insight.inspect(job.id))?.input ?? null) : job.input;
      text += format.line({ ...job, input }, redactor, mayPayload);
      if (text.length < chunkLength) continue;
      yield text;
      text = "";
    }
    ({ cursor } = page);
    if (text !== "") yield text;
    text = "";
  } while (cursor !== null);
}
