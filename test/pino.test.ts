// "pino fits as it is", against the shape that pino documents: pino itself is no dependency of ours, so that this is a promise
// about types and calls, and not a run of the library.
import { expect, test } from "vitest";
import { defineJob, immediately, type Logger } from "../src/index.ts";
import { safely } from "../src/logger.ts";
import { fresh } from "./support/test-clients.ts";
import { onEveryStore } from "./support/stores.ts";

/** As pino declares a level: an object with what belongs to the line, the message, and values for its placeholders; or without the object. */
interface PinoLogFn {
  (obj: object, msg?: string, ...args: unknown[]): void;
  (obj: unknown, msg?: string, ...args: unknown[]): void;
  (msg: string, ...args: unknown[]): void;
}

/** As far as somebody could stumble over it: methods of levels, and what a logger has besides. */
interface PinoLike {
  fatal: PinoLogFn;
  error: PinoLogFn;
  warn: PinoLogFn;
  info: PinoLogFn;
  debug: PinoLogFn;
  trace: PinoLogFn;
  silent: PinoLogFn;
  level: string;
  child(bindings: Record<string, unknown>): PinoLike;
}

/** A logger of that shape that, like pino, needs `this` and writes one line of JSON. */
class Lines implements PinoLike {
  readonly written: { level: string; msg: string; [key: string]: unknown }[] = [];
  level = "trace";
  fatal = this.#at("fatal");
  error = this.#at("error");
  warn = this.#at("warn");
  info = this.#at("info");
  debug = this.#at("debug");
  trace = this.#at("trace");
  silent = (): void => {};
  child(): PinoLike {
    return this;
  }
  #at(level: string): PinoLogFn {
    const written = this.written;
    return function (this: unknown, first: unknown, msg?: unknown) {
      if (!(this instanceof Lines)) throw new TypeError("called without its logger");
      const [details, message] = typeof first === "string" ? [{}, first] : [first as object, msg];
      written.push({ ...details, level, msg: String(message) });
    };
  }
}

test("[J1] a pino logger is a Logger without a cast", () => {
  const pino: PinoLike = new Lines();
  const logger: Logger = pino; // does not compile where it does not fit
  safely(logger).warn({ id: 1 }, "said");
  expect((pino as Lines).written).toEqual([{ id: 1, level: "warn", msg: "said" }]);
});

onEveryStore((target) => {
  test("a failed attempt and a dead job are logged with the stack", async () => {
    const said: [string, unknown][] = [];
    const say = (details: Record<string, unknown>, message: string): void =>
      void said.push([message, details["stack"]]);
    const logger: Logger = { debug: () => {}, info: () => {}, warn: say, error: say };
    const { hf } = await fresh(target, { logger });
    const boom = defineJob({
      name: "boom",
      retry: { attempts: 2, backoff: immediately() },
      run: function explodes() {
        throw new Error("boom");
      },
    });
    await hf.enqueue(boom, null);
    const worker = hf.work([boom], { queues: ["default"] });
    await worker.idle();
    await worker.stop();
    expect(said).toEqual([
      ["attempt failed; retry 1 of 1", expect.stringMatching(/Error: boom\n +at .*explodes/)],
      ["job is dead", expect.stringMatching(/Error: boom\n +at .*explodes/)],
    ]);
  });

  test("[J1] as the client's logger it gets the job's fields as fields, and the message as the message", async () => {
    const pino = new Lines();
    const { hf } = await fresh(target, { logger: pino });
    const fails = defineJob({
      name: "fails",
      retry: { attempts: 1 },
      run: async (_input: unknown, ctx) => {
        ctx.log.info({ step: 7 }, "begun");
        throw new Error("no");
      },
    });
    const { id } = await hf.enqueue(fails, null);
    const worker = hf.work([fails], { queues: ["default"] });
    await worker.ready;
    await worker.idle();
    expect(pino.written).toContainEqual(
      expect.objectContaining({ level: "info", msg: "begun", step: 7, job: id }),
    );
    expect(pino.written).toContainEqual(
      expect.objectContaining({ level: "error", msg: "job is dead", id, name: "fails", attempt: 1 }),
    );
    expect(pino.written.some(({ level }) => level === "trace")).toBe(true);
  });
});
