// What Holdfast logs never has a payload in it: at no level, on no path, whatever goes wrong.
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import {
  Dead,
  defineJob,
  fixed,
  type Logger,
  type OpenOptions,
  Release,
  RetryAfter,
} from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { waitFor } from "../support/wait.ts";
import { over } from "../dashboard/support.ts";
import { connect, fresh } from "../support/test-clients.ts";
import { operatorOf } from "../../src/operate/operator.ts";

/** In every payload, and nowhere else. */
const marker = "hunter2-4111111111111111";
const secret = { note: marker, deep: [{ [marker]: marker }] };

/** Everything that was logged, as deep as it goes. */
function recorder(): { logger: Logger; lines: string[]; levels: Set<string> } {
  const lines: string[] = [];
  const levels = new Set<string>();
  const at =
    (level: string) =>
    (...args: unknown[]): void => {
      levels.add(level);
      lines.push(`${level} ${inspect(args, { depth: 20, showHidden: true, maxStringLength: null })}`);
    };
  const logger = {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    trace: at("trace"),
  } as Logger;
  return { logger, lines, levels };
}

const schema = {
  "~standard": {
    version: 1,
    vendor: "test",
    validate: (value: unknown) =>
      (value as { ok?: boolean }).ok === true
        ? { value }
        : { issues: [{ message: "must be ok", path: ["note"] }] },
  },
} as const;

onEveryStore((target) => {
  describe("logs", () => {
    test("[J1] have no payload in them, however jobs end and whatever the database does", async () => {
      const { logger, lines, levels } = recorder();
      const options: OpenOptions = { logger, jobLog: false };
      const { hf, store } = await fresh(target, options);
      const { get, send } = over(hf);
      let tries = 0;
      const once = { retry: { attempts: 2, backoff: fixed(1) } };
      const jobs = [
        defineJob({ name: "done", run: async () => secret }),
        defineJob({ name: "throws", ...once, run: () => Promise.reject(new Error("no")) }),
        defineJob({ name: "dead", run: () => Promise.reject(new Dead("no use")) }),
        defineJob({
          name: "later",
          ...once,
          run: async () => {
            if ((tries += 1) === 1) throw new RetryAfter(1);
          },
        }),
        defineJob({
          name: "released",
          run: async () => {
            if ((tries += 1) < 4) throw new Release();
          },
        }),
        defineJob({
          name: "slow",
          timeout: 20,
          retry: { attempts: 1 },
          run: (_input, { signal }) =>
            new Promise((_resolve, reject) =>
              signal.addEventListener("abort", () => reject(signal.reason as Error)),
            ),
        }),
        defineJob({
          name: "no-json",
          retry: { attempts: 1 },
          run: async () => ({ note: marker, n: 1n }) as never,
        }),
        defineJob({ name: "too-large", retry: { attempts: 1 }, run: async () => marker.repeat(200_000) }),
        defineJob({
          name: "circular",
          retry: { attempts: 1 },
          run: async () => {
            const round: Record<string, unknown> = { note: marker };
            round["self"] = round;
            return round as never;
          },
        }),
        defineJob({ name: "checked", input: schema as never, retry: { attempts: 1 }, run: async () => {} }),
        defineJob({
          name: "workflow",
          run: async (_input: unknown, ctx) => {
            await ctx.progress(secret);
            await ctx.step("one", async () => secret);
            await ctx.waitFor("go", { key: "k", timeout: "1m" });
          },
        }),
        defineJob({ name: "refused", retry: { attempts: 1 }, run: async () => ({ refuse: marker }) }),
      ] as const;
      // The database refuses a row, and says which: Postgres tells the whole of it.
      if (target.dialect === "postgres")
        await store.query(
          `alter table ${store.table("history")} add constraint refuse check (output is null or output not like '%refuse%')`,
        );
      const ids: string[] = [];
      for (const { name } of jobs) ids.push((await hf.enqueue(name, secret)).id);
      await hf.signal("go", { key: "k", data: secret });
      const worker = hf.work(jobs, { queues: ["default"] });
      await worker.ready;
      const ended = async (): Promise<number> => hf.jobs.count({ state: ["done", "dead", "cancelled"] });
      await waitFor(async () => (await ended()) >= jobs.length - 1, {
        what: "the jobs to end",
        deadlineMs: 30_000,
      });
      // By hand, with what is refused too.
      await send("POST", "/jobs", { name: "done", input: secret, delay: "1h" });
      await send("POST", "/jobs", { name: "done", input: secret, nonsense: 1 });
      await send("POST", "/jobs/bulk", { action: "retry", filter: { state: ["dead"], search: marker } });
      await get(`/jobs/${ids[0]}`);
      const { insight } = operatorOf(hf).store;
      insight.inspect = () => Promise.reject(new Error("a fault"));
      await get(`/jobs/${ids[0]}`);
      await hf.enqueue("done", { ...secret, n: 1n } as never).catch(() => {});
      await worker.stop();
      await hf.close();
      const other = await connect(store, options);
      await other.enqueue("done", secret);
      await other.close();
      expect(lines.length).toBeGreaterThan(5);
      expect([...levels].sort()).toEqual(["debug", "error", "info", "trace", "warn"]);
      expect(lines.filter((line) => line.includes(marker)).map((line) => line.slice(0, 2_000))).toEqual([]);
    }, 60_000);
  });
});
