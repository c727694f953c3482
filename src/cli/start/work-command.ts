/**
 * `holdfast work`: runs the jobs of holdfast.config.ts in this process.
 *
 * Invariants: a first signal lets running jobs finish, a second ends the process at once; the banner and the manifest never delay
 * the start; with --watch the worker is a child process that is stopped gracefully and started again when a file changes.
 * Not here: the worker itself (hf.work), watching (watch.ts), the small server (probe-server.ts).
 */
import { hostname } from "node:os";
import type { HoldfastConfig, Manifest } from "../../config.ts";
import { UsageError } from "../../errors.ts";
import type { AnyJob, Holdfast, Logger, WorkOptions } from "../../index.ts";
import { describeFailure } from "../../operate/index.ts";
import { VERSION } from "../../version.ts";
import type { Command } from "../command.ts";
import type { Context } from "../command-context.ts";
import { loggerTo } from "../log.ts";
import { serve } from "./probe-server.ts";
import type { Target } from "../target.ts";
import { aborted } from "../io.ts";
import { oneLine } from "../text.ts";
import { watchAndRestart } from "./watch.ts";

export const work: Command = {
  name: "work",
  summary: "run the jobs of holdfast.config.ts",
  options: {
    queues: {
      type: "string",
      short: "q",
      multiple: true,
      value: "name[=n]",
      help: "Queues and their slots in this process: mail=20,default",
    },
    name: { type: "string", value: "text", help: "Name of the worker; default the host's" },
    once: { type: "boolean", help: "Exit with 0 when no job can run now" },
    watch: {
      type: "boolean",
      short: "w",
      help: "Restart when a file beside the config changes (development)",
    },
    jobs: { type: "boolean", help: "--no-jobs: run no jobs here (or HOLDFAST_JOBS=off)" },
    schedules: {
      type: "boolean",
      help: "--no-schedules: fire no schedules here (or HOLDFAST_SCHEDULES=off)",
    },
    server: {
      type: "boolean",
      help: "--no-server: do not serve health checks here (or HOLDFAST_SERVER=off)",
    },
    port: {
      type: "string",
      value: "port",
      help: "Serve /health, /ready, /latency and /metrics on this port",
    },
    host: { type: "string", value: "address", help: "Default 127.0.0.1; any other needs HOLDFAST_TOKEN" },
    "log-level": { type: "string", value: "level", help: "trace, debug, info, warn, error; default info" },
  },
  details:
    "Runs until SIGTERM or Ctrl-C, then lets running jobs finish (30 s, see the config's work.shutdown); a second signal ends the process at once. Logs go to standard error; with --json, one JSON object per line.",
  json: 'Standard output: { type: "started", … } with the manifest, { type: "stopped" }. Standard error: log lines',
  examples: [
    { line: "work", says: "All jobs of the config" },
    { line: "work --queues mail=20,default=5 --port 9464", says: "Two queues, and metrics for Prometheus" },
    { line: "work --watch", says: "For development" },
    { line: "work --no-schedules", says: "Other processes fire the schedules" },
  ],
  run: async (ctx) => {
    const { config, path } = await ctx.config();
    if (path === null)
      throw new UsageError(
        "BAD_CONFIG",
        "There is no holdfast.config.ts here or up to 4 folders up. Create a project with: holdfast init",
      );
    if (ctx.flag("watch")) return watchAndRestart(ctx, path);
    return runWorker(ctx, config);
  },
};

/** Whether a part of the process is on: the flag, else the environment, else yes. */
function isOn(ctx: Context, part: "jobs" | "schedules" | "server"): boolean {
  const flag = ctx.switch(part);
  if (flag !== undefined) return flag;
  return !/^(off|0|false|no)$/i.test(ctx.io.env[`HOLDFAST_${part.toUpperCase()}`] ?? "");
}

async function runWorker(ctx: Context, config: HoldfastConfig): Promise<number> {
  const target = await ctx.target();
  const logger = config.open?.logger ?? loggerTo(ctx, ctx.string("log-level") ?? "info");
  const hf = await ctx.client({ migrate: true, logger });
  const definitions = (config.jobs ?? []).filter((job) => job.run !== null);
  const jobsOn = isOn(ctx, "jobs");
  // Both places are documented: an own key, and an option of `hf.work`.
  const given = config.work?.schedules ?? [];
  const scheduling = isOn(ctx, "schedules") && given !== false;
  const schedules = scheduling ? [...(config.schedules ?? []), ...given] : [];
  if (jobsOn && definitions.length === 0 && schedules.length === 0)
    throw new UsageError(
      "BAD_CONFIG",
      "The config has no jobs with handlers. Add some to `jobs`, or use --no-jobs.",
    );
  const queues = queuesOf(ctx, config, definitions);
  const options: WorkOptions = {
    ...config.work,
    queues,
    schedules: scheduling ? schedules : false,
    ...(ctx.string("name") === undefined ? {} : { name: ctx.string("name") as string }),
  };
  const worker = jobsOn ? hf.work(definitions, options) : null;
  const server = isOn(ctx, "server") ? await serve(ctx, hf, config) : null;
  tell(
    ctx,
    config,
    manifestOf(target, jobsOn ? definitions : [], queues, schedules),
    logger,
    server?.address ?? null,
  );
  try {
    if (worker === null) await untilSignal(ctx.io.signal);
    else {
      ctx.io.signal.addEventListener("abort", () => stopTwice(ctx, worker), { once: true });
      if (ctx.flag("once")) {
        await worker.ready;
        await worker.idle();
        await worker.stop();
      }
      await worker.stopped;
    }
  } finally {
    await server?.close();
  }
  if (ctx.json) ctx.line({ type: "stopped" });
  return 0;
}

/** The first signal stops the worker gracefully. A second one ends the process. */
function stopTwice(ctx: Context, worker: ReturnType<Holdfast["work"]>): void {
  ctx.note(
    ctx.paintError("dim", "stopping: running jobs may finish; a second signal ends the process at once"),
  );
  const hurry = (): void => process.exit(1);
  process.once("SIGINT", hurry);
  process.once("SIGTERM", hurry);
  const done = (): void => {
    process.off("SIGINT", hurry);
    process.off("SIGTERM", hurry);
  };
  void worker.stop().finally(done);
}

/** Without a worker, a timer keeps the process alive. */
async function untilSignal(signal: AbortSignal): Promise<void> {
  const timer = setInterval(() => {}, 1 << 30);
  await aborted(signal);
  clearInterval(timer);
}

/** --queues, else the config's, else QUEUES, else the queues that the definitions name. */
function queuesOf(
  ctx: Context,
  config: HoldfastConfig,
  definitions: readonly AnyJob[],
): NonNullable<WorkOptions["queues"]> {
  const given = ctx.list("queues");
  if (given !== undefined) return parseQueues(given);
  if (config.work?.queues !== undefined) return config.work.queues;
  const named = ctx.io.env["QUEUES"];
  if (named !== undefined && named !== "") return parseQueues(named.split(","));
  return [...new Set(definitions.map(({ queue }) => queue ?? "default"))];
}

function parseQueues(
  texts: readonly string[],
): readonly string[] | Record<string, number | { concurrency?: number }> {
  if (texts.every((text) => !text.includes("="))) return texts;
  return Object.fromEntries(
    texts.map((text) => {
      const [name = "", slots] = text.split("=");
      if (slots !== undefined && !/^\d+$/.test(slots))
        throw new UsageError(
          "BAD_OPTION",
          `--queues takes name=number, such as mail=20; got ${JSON.stringify(text)}.`,
        );
      return [name, slots === undefined ? {} : Number(slots)];
    }),
  );
}

function manifestOf(
  target: Target,
  definitions: readonly AnyJob[],
  queues: NonNullable<WorkOptions["queues"]>,
  schedules: readonly unknown[],
): Manifest {
  const entries = Array.isArray(queues)
    ? (queues as readonly string[]).map((name) => [name, null] as const)
    : Object.entries(queues as Record<string, number | { concurrency?: number }>).map(
        ([name, slots]) => [name, typeof slots === "number" ? slots : (slots.concurrency ?? null)] as const,
      );
  return {
    version: VERSION,
    backend: target.url.startsWith("postgres") ? "postgres" : "sqlite",
    place: target.place,
    schema: target.schema,
    jobs: definitions.map(({ name, queue }) => ({ name, queue })),
    queues: Object.fromEntries(entries),
    schedules: schedules.map((schedule) => String((schedule as { name?: unknown }).name ?? "?")),
    pid: process.pid,
    host: hostname(),
  };
}

/** Prints the banner and calls `manifest` without waiting. A sink that fails or hangs does no harm. */
function tell(
  ctx: Context,
  config: HoldfastConfig,
  manifest: Manifest,
  log: Logger,
  address: string | null,
): void {
  if (ctx.json) ctx.line({ type: "started", ...manifest, server: address });
  else ctx.note(banner(ctx, manifest, address));
  const sink = config.manifest;
  if (sink === undefined) return;
  const failed = (error: unknown): void =>
    log.warn({ error: describeFailure(error).message }, "the function `manifest` of the config failed");
  void Promise.resolve()
    .then(() => sink(manifest))
    .catch(failed);
}

function banner(ctx: Context, manifest: Manifest, address: string | null): string {
  const paint = ctx.paintError;
  const line = (name: string, text: string): string => `  ${paint("dim", name.padEnd(10))}${oneLine(text)}`;
  const queues = Object.entries(manifest.queues)
    .map(([name, slots]) => (slots === null ? name : `${name}=${slots}`))
    .join(" ");
  const lines = [
    `${paint("bold", "holdfast")} ${manifest.version}  ${manifest.backend}  pid ${manifest.pid}`,
    line("database", `${manifest.place} (schema ${manifest.schema})`),
    line("queues", manifest.jobs.length === 0 ? "none: jobs are off" : queues),
    line("jobs", manifest.jobs.map(({ name }) => name).join(" ") || "none"),
  ];
  if (manifest.schedules.length > 0) lines.push(line("schedules", manifest.schedules.join(" ")));
  if (address !== null) lines.push(line("server", address));
  return lines.join("\n");
}
