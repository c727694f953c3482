/**
 * One job's life in detail: its steps, page by page; its history as a file; what its handler said.
 *
 * Invariants: a page is bounded, however long the history; what is sent has been redacted, and a search in the log looks at
 * what is shown, so that nobody can test for values that are not.
 */
import { flag, instant, object, oneOf, text, texts, within } from "../api/schema.ts";
import { workflowOf } from "../api/workflow-history.ts";
import { isId } from "../../values/id.ts";
import type { RunFilter, RunSummary } from "../../operate/browse.ts";
import { Enqueued, WorkflowHistory, FilterJson, LogList, RunFile, RunList } from "../api/contract.ts";
import { ApiError, json } from "../http.ts";
import { bad } from "../api/query.ts";
import type { Redactor } from "../access/redact.ts";
import { resource } from "../api/resource.ts";
import { errorKind } from "../api/shapes.ts";
import { idOf, noJob } from "./jobs.ts";
import { readFilter, type Route, visible, route } from "./route.ts";
import { about } from "./targets.ts";
import { historyPage, LOG_LEVELS, type RunFile as HistoryFile, runFileOf } from "../../operate/index.ts";

const mostSteps = 1_000;
/** In place of the name of a job that this person may not view. */
const HIDDEN = "(not visible to you)";
/** Behind the number of any step. */
const lastSeq = 2_147_483_647;

export const runsRoutes: readonly Route[] = [
  route({
    method: "POST",
    path: "/jobs/:id/fork",
    id: "forkJob",
    summary:
      "Runs an ended workflow again from one of its steps, as a new job that keeps the results of earlier steps.",
    permission: "jobs:retry",
    about: about.job,
    write: true,
    body: object({ from: text }),
    answer: Enqueued,
    run: async ({ hf, path, body, audit }) => {
      const { from } = body;
      const { id, status } = await hf.jobs.fork(idOf(path), { from });
      await audit("jobs.fork", idOf(path), "forked", { from, job: id });
      return { status, id };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/:id/history",
    id: "jobHistory",
    summary: "Attempts, steps, signals, children and the graph of a job. Steps come in pages, newest first.",
    permission: "view",
    about: about.job,
    query: object({ before: within(0, lastSeq, lastSeq), limit: within(1, mostSteps, 500) }),
    answer: WorkflowHistory,
    run: async (context) => {
      const { hf, store, path, redactor, insight, query } = context;
      const id = idOf(path);
      const job = await insight.inspect(id);
      const known = job === null ? null : await hf.jobs.get(id);
      if (job === null || known === null) throw noJob(id);
      const { before, limit } = query;
      // The graph shows more steps than a page has.
      const read = await historyPage(store, known, { before, limit: Math.max(limit, mostSteps) });
      const history = workflowOf(known, read, limit);
      const mayPayload = await context.may("view:payload");
      const shown = (text: string | null): string | null => (mayPayload ? redactor.json(text, job, 2) : null);
      const error = (text: string | null): string | null => (mayPayload ? redactor.text(text) : null);
      // A child may be in a queue that is not this person's to see.
      const calls = history.steps.flatMap(({ jobId }) => jobId ?? []);
      const see = await visible(context, [...history.children.map((child) => child.id), ...calls]);
      const own = history.children.map(async (child) => {
        if (!see(child.id)) return { ...child, name: null, state: null, error: null, hidden: true };
        if (!mayPayload || child.error === null) return { ...child, error: null };
        const place = await insight.inspect(child.id);
        const seen =
          place !== null &&
          (await context.may("view:payload", () =>
            resource("job", child.id, { queue: place.queue, name: place.name }),
          ));
        return { ...child, error: seen ? redactor.text(child.error) : errorKind(child.error) };
      });
      const children = await Promise.all(own);
      const graph = {
        ...history.graph,
        nodes: history.graph.nodes.map((node) =>
          node.kind !== "job" || see(node.id) ? node : { ...node, label: HIDDEN, state: null, jobId: null },
        ),
      };
      return {
        ...history,
        attempts: history.attempts.map((attempt) => ({
          ...attempt,
          error: mayPayload ? redactor.text(attempt.error) : errorKind(attempt.error),
        })),
        // The result of a call is the result of the job that it called.
        steps: history.steps.map((step) => {
          const seen = step.jobId === null || see(step.jobId);
          return {
            ...step,
            output: seen ? shown(step.output) : null,
            error: seen ? error(step.error) : errorKind(step.error),
          };
        }),
        signals: history.signals.map((signal) => ({ ...signal, data: shown(signal.data) })),
        children,
        graph,
      };
    },
  }),
  route({
    method: "GET",
    path: "/runs",
    id: "listRuns",
    summary:
      "Workflow runs with their current step and progress, newest first. With `at` (milliseconds), those at one step for longer; a sleep that has not ended does not count.",
    permission: "view",
    about: about.jobsOfQuery,
    query: object(
      { limit: within(1, 200, 50) },
      {
        state: FilterJson.properties.state,
        queue: texts,
        name: texts,
        retrying: flag,
        at: instant,
        cursor: text,
      },
    ),
    answer: RunList,
    run: async (context) => {
      const { limit, cursor = null, at, retrying, ...where } = context.query;
      const { states, queues, names } = await readFilter(context, where);
      const filter: RunFilter = {
        ...(states === undefined ? null : { states }),
        ...(queues === undefined ? null : { queues }),
        ...(names === undefined ? null : { names }),
        ...(retrying === true ? { retrying } : null),
        ...(at === undefined ? null : { atLeastMs: at }),
      };
      const page = await context.insight.runs(filter, { limit, cursor });
      return { ...page, runs: page.runs.map(runLine) };
    },
  }),
  route({
    method: "GET",
    path: "/jobs/:id/run.json",
    id: "runFile",
    summary: "The history of a run as a file for `holdfast check`, redacted.",
    permission: "jobs:export",
    about: about.job,
    answer: RunFile,
    run: async (context) => {
      await context.need("view:payload");
      const { store, path, redactor, insight, operator, audit } = context;
      const id = idOf(path);
      const job = await insight.inspect(id);
      const file = job === null ? null : await runFileOf(store, job.id, operator.env.clock.now());
      if (job === null || file === null) throw noJob(id);
      // A file holds what the jobs came to that the run called.
      const calls = file.steps.flatMap(({ child }) => child ?? []);
      if (!calls.every(await visible(context, calls)))
        throw new ApiError("FORBIDDEN", "This run called jobs that you may not view.");
      const shown = redactedFile(file, redactor, job);
      await audit("jobs.history", id, "exported");
      return json(shown, 200, {
        "content-disposition": `attachment; filename="run-${job.id}.json"`,
      });
    },
  }),
  route({
    method: "GET",
    path: "/jobs/:id/log",
    id: "jobLog",
    summary: "The stored ctx.log lines of a job: oldest first, the newest page first.",
    permission: "view:payload",
    about: about.job,
    query: object(
      { level: { ...oneOf(...LOG_LEVELS), default: "trace" }, limit: within(1, 1_000, 500) },
      { search: text, before: text },
    ),
    answer: LogList,
    run: async ({ hf, path, insight, redactor, query }) => {
      const { limit, level, before = null } = query;
      const search = (query.search ?? "").toLowerCase();
      if (search.length > 400) throw bad("search", "is too long.");
      if (before !== null && !isId(before))
        throw bad("before", "must be the value `earlier` returned with the previous page.");
      const id = idOf(path);
      const job = await insight.inspect(id);
      if (job === null) throw noJob(id);
      const kept = await hf.jobLog.list(id);
      const least = LOG_LEVELS.indexOf(level);
      const matching = kept
        .filter((line) => LOG_LEVELS.indexOf(line.level) >= least)
        .map(({ details, ...line }) => ({
          ...line,
          at: line.at.getTime(),
          message: redactor.text(line.message),
          details: details === null ? null : redactor.json(JSON.stringify(details), job),
        }))
        .filter(
          ({ message, details }) =>
            search === "" || `${message}\n${details ?? ""}`.toLowerCase().includes(search),
        );
      const earlier = before === null ? matching : matching.filter((line) => line.id < before);
      const lines = earlier.slice(-limit);
      return {
        lines,
        kept: kept.length,
        matched: matching.length,
        earlier: lines.length < earlier.length ? (lines[0]?.id ?? null) : null,
      };
    },
  }),
];

/** Inputs, results and errors without their secrets; everything that leads a replay stays. */
function redactedFile(
  file: HistoryFile,
  redactor: Redactor,
  job: { name: string; queue: string },
): HistoryFile {
  const shown = (text: string | null): string | null => redactor.json(text, job);
  const { run } = file;
  return {
    ...file,
    redacted: true,
    run: { ...run, input: shown(run.input) ?? "null" },
    steps: file.steps.map((step) => ({
      ...step,
      output: shown(step.output),
      error: shown(step.error),
    })),
  };
}

function runLine({ job, known, done, retrying, at }: RunSummary): RunList["runs"][number] {
  const { id, name, queue, state, paused, createdAt, endedAt, failureGroup } = job;
  const step =
    at === null ? null : { name: at.name, kind: at.kind, since: at.since, until: at.until, jobId: at.child };
  return {
    id,
    name,
    queue,
    state,
    paused,
    createdAt,
    endedAt,
    failureGroup,
    known,
    done,
    retrying,
    at: step,
  };
}
