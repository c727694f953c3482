// A run that has ended and is retried: it continues from its recorded steps, or goes on undoing them.
import { expect, test } from "vitest";
import { Dead, defineJob, defineMachine, finish, type JobContext, next } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { type Client, jobOf, newWorld, type World } from "../support/world.ts";

const lease = { lease: "20d", heartbeat: "9d" } as const;
const queues = { default: 5 } as const;

type Body = (input: null, ctx: JobContext) => Promise<unknown>;
const workflow = (run: Body, name = "workflow") => defineJob({ name, retry: { attempts: 1 }, run });

/** Runs the code on a worker of its own until the job is in this state. */
async function runUntil(world: World, one: Client, run: Body, id: string, state: string): Promise<void> {
  const worker = await one.work([workflow(run)], { queues, ...lease });
  await world.until(state, async () => (await jobOf(one, id)).state === state, "60m", "5s");
  await world.finish(worker.stop());
}

const messages = async (one: Client, id: string): Promise<string[]> =>
  (await jobOf(one, id)).errors.map(({ message }) => message);

const shownSteps = async (one: Client, id: string): Promise<string[]> =>
  ((await one.hf.jobs.history(id))?.steps ?? []).map(({ name, state }) => `${name} ${state}`);

onEveryStore((target) => {
  for (const undoable of [true, false]) {
    const how = undoable ? "with undo" : "without undo";
    /** Three steps and a wait; `changed` is the code of a bad deploy. */
    const trip = (ran: string[], changed: "no" | "renamed" | "shorter"): Body => {
      return async (_input, ctx) => {
        const step = (name: string) =>
          ctx.step(
            name,
            () => (ran.push(name), name),
            undoable ? { undo: (output) => void ran.push(`undo ${output}`) } : {},
          );
        await step("flight");
        if (changed === "shorter") return "short";
        await ctx.all([step(changed === "renamed" ? "motel" : "hotel"), step("car")]);
        await ctx.waitFor("go");
        await step("mail");
        return "whole";
      };
    };

    for (const changed of ["renamed", "shorter"] as const)
      test(`[O10] divergence ${how} (${changed}) undoes nothing, dies once, and a retry with matching code continues the run`, async () => {
        const world = await newWorld(target);
        const one = await world.client();
        const ran: string[] = [];
        const { id } = await one.hf.enqueue(workflow(trip(ran, "no")), null);
        await runUntil(world, one, trip(ran, "no"), id, "waiting");
        const before = await shownSteps(one, id);
        const deaths = one.told("job.dead");
        await one.hf.signal("go");
        await runUntil(world, one, trip(ran, changed), id, "dead");
        expect((await jobOf(one, id)).error).toMatch(/^DIVERGED/);
        expect(deaths).toHaveLength(1);
        expect(await shownSteps(one, id)).toEqual(before);
        // The same wrong code again: the history stays as it is.
        await one.hf.jobs.retry(id);
        await runUntil(world, one, trip(ran, changed), id, "dead");
        expect(await shownSteps(one, id)).toEqual(before);
        expect(ran).toEqual(["flight", "hotel", "car"]);
        await one.hf.jobs.retry(id);
        await runUntil(world, one, trip(ran, "no"), id, "done");
        expect(ran).toEqual(["flight", "hotel", "car", "mail"]);
        expect((await jobOf(one, id)).output).toBe("whole");
      });
  }

  /** Dies after its steps; undoing "hotel" fails as long as `stuck` says so. */
  const saga =
    (
      ran: string[],
      stuck: () => boolean,
      end: Body = async () => Promise.reject(new Dead("refused")),
    ): Body =>
    async (input, ctx) => {
      const step = (name: string) =>
        ctx.step(name, () => (ran.push(name), name), {
          undo: (output) => {
            if (output === "hotel" && stuck()) throw new Error("no luck");
            ran.push(`undo ${output}`);
          },
        });
      await step("flight");
      await step("hotel");
      await step("car");
      return end(input, ctx);
    };

  test("[O10] a retry after a failed undo goes on undoing, and the job ends dead with its original error", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let failures = 7;
    const body = saga(ran, () => failures-- > 0);
    const { id } = await one.hf.enqueue(workflow(body), null);
    await runUntil(world, one, body, id, "dead");
    const first = ["flight", "hotel", "car", "undo car"];
    expect(ran).toEqual(first);
    expect((await messages(one, id)).at(-1)).toMatch(/^UNDO_FAILED: step "hotel"/);
    // Two callers at once: one of them retries it. The failed undo gets five tries again.
    const answers = await Promise.all([one.hf.jobs.retry(id), one.hf.jobs.retry(id)]);
    expect(answers.sort()).toEqual(["not_ended", "retried"]);
    await runUntil(world, one, body, id, "dead");
    expect(ran).toEqual([...first, "undo hotel", "undo flight"]);
    expect(await messages(one, id)).toEqual(["refused"]);
    // Everything is undone: the next retry starts from the beginning.
    await one.hf.jobs.retry(id);
    await runUntil(
      world,
      one,
      saga(
        ran,
        () => false,
        async () => "whole",
      ),
      id,
      "done",
    );
    expect(ran.slice(6)).toEqual(["flight", "hotel", "car"]);
  });

  test("[O10] a cancelled run whose undo failed ends cancelled with its own reason after a retry", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let stuck = true;
    const body = saga(
      ran,
      () => stuck,
      async (_input, ctx) => ctx.waitFor("go"),
    );
    const { id } = await one.hf.enqueue(workflow(body), null);
    await runUntil(world, one, body, id, "waiting");
    expect(await one.hf.jobs.cancel(id)).toBe("cancel_requested");
    // A signal that arrives meanwhile is not taken by a run that only undoes.
    await one.hf.signal("go");
    await runUntil(world, one, body, id, "dead");
    stuck = false;
    await one.hf.jobs.retry(id);
    await runUntil(world, one, body, id, "cancelled");
    expect(ran.slice(3)).toEqual(["undo car", "undo hotel", "undo flight"]);
    expect(await messages(one, id)).toEqual(["cancelled by user"]);
    expect(await world.rows("signal")).toHaveLength(1);
  });

  test("[O10] code that diverges or lost an undo while steps are undone undoes nothing twice: a retry with matching code goes on", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let stuck = true;
    const body = saga(ran, () => stuck);
    const { id } = await one.hf.enqueue(workflow(body), null);
    await runUntil(world, one, body, id, "dead");
    expect(ran.splice(0)).toEqual(["flight", "hotel", "car", "undo car"]);
    stuck = false;
    const done = one.told("job.done");
    for (const wrong of ["renamed", "lost undo", "no steps"] as const) {
      await one.hf.jobs.retry(id);
      const other: Body = async (_input, ctx) => {
        if (wrong === "no steps") return;
        const undo = () => void ran.push("wrong");
        await ctx.step("flight", () => 1, { undo });
        await ctx.step(wrong === "renamed" ? "motel" : "hotel", () => 1, {});
        await ctx.step("car", () => 1, { undo });
      };
      await runUntil(world, one, other, id, "dead");
      expect([wrong, ran, (await messages(one, id)).at(-1)]).toEqual([
        wrong,
        [],
        expect.stringMatching(wrong === "renamed" ? /^DIVERGED/ : /^UNDO_FAILED/),
      ]);
    }
    expect(done).toEqual([]);
    await one.hf.jobs.retry(id);
    await runUntil(world, one, body, id, "dead");
    expect(ran).toEqual(["undo hotel", "undo flight"]);
    expect(await messages(one, id)).toEqual(["refused"]);
  });

  test("[O10] a run that was terminated, or whose workers died, while its steps were undone goes on undoing at a retry", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let stuck = true;
    const body: Body = saga(ran, () => {
      if (!stuck) return false;
      throw new Error("not yet");
    });
    const { id } = await one.hf.enqueue(workflow(body), null);
    const worker = await one.work([workflow(body)], { queues, ...lease });
    await world.until("undoing", async () => ran.includes("undo car"));
    await world.until("between two tries", async () => (await jobOf(one, id)).state !== "running");
    expect(await one.hf.jobs.terminate(id)).toBe("terminated");
    await world.finish(worker.stop());
    stuck = false;
    await one.hf.jobs.retry(id);
    await runUntil(world, one, body, id, "dead");
    expect(ran).toEqual(["flight", "hotel", "car", "undo car", "undo hotel", "undo flight"]);
    expect(await messages(one, id)).toEqual(["refused"]);

    const [two, three] = [await world.client(), await world.client()];
    const poison = (stuckInUndo: boolean) =>
      defineJob({
        name: "poison",
        maxCrashes: 1,
        run: async (_: null, ctx) => {
          await ctx.step("a", () => void ran.push("a"), { undo: () => void ran.push("undo a") });
          await ctx.step("b", () => void ran.push("b"), {
            undo: () => (stuckInUndo ? (ran.push("stuck"), new Promise(() => {})) : void ran.push("undo b")),
          });
          throw new Dead("refused");
        },
      });
    ran.length = 0;
    const second = await two.hf.enqueue(poison(true), null);
    await two.work([poison(true)], { queues });
    await world.until("stuck", () => ran.includes("stuck"));
    two.tap.kill();
    await three.work([poison(false)], { queues });
    await world.until("dead", async () => (await jobOf(three, second.id)).state === "dead", "5m");
    expect((await messages(three, second.id)).at(-1)).toMatch(/^UNDO_FAILED: its workers died/);
    await three.hf.jobs.retry(second.id);
    await world.until("undone", () => ran.includes("undo a"), "5m");
    await world.until("dead", async () => (await jobOf(three, second.id)).state === "dead", "5m");
    expect(ran).toEqual(["a", "b", "stuck", "undo b", "undo a"]);
    expect(await messages(three, second.id)).toEqual(["refused"]);
  });

  test("[O10] a retry keeps a failure that the handler answered, and tries the step again that failed the run", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let broken = true;
    const body: Body = async (_input, ctx) => {
      const plan = await ctx
        .step("a", () => {
          ran.push("a");
          throw new Error("sold out");
        })
        .catch(() => "other");
      await ctx.step("b", () => void ran.push("b"));
      await ctx.step("c", () => {
        ran.push("c");
        if (broken) throw new Error("down");
      });
      return plan;
    };
    const { id } = await one.hf.enqueue(workflow(body), null);
    await runUntil(world, one, body, id, "dead");
    broken = false;
    await one.hf.jobs.retry(id);
    await runUntil(world, one, body, id, "done");
    expect(ran).toEqual(["a", "b", "c", "c"]);
    expect((await jobOf(one, id)).output).toBe("other");
  });

  test("[O10] a job that becomes a machine, and a machine that becomes a job, is stopped as diverged and continues with its own code", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    const job = defineJob({
      name: "workflow",
      retry: { attempts: 1 },
      run: async (_: null, ctx) => {
        await ctx.step("a", () => void ran.push("a"), { undo: () => void ran.push("undo a") });
        await ctx.sleep("nap", "1m");
        return ran.push("b");
      },
    });
    const machine = defineMachine({
      name: "workflow",
      start: "one",
      steps: {
        one: { run: (_: null) => (ran.push("one"), next("two", null, { delay: "1m" })) },
        two: { run: (_: null) => (ran.push("two"), finish(null)) },
      },
    });
    for (const [mine, other, expected] of [
      [job, machine, ["a", "b"]],
      [machine, job, ["one", "two"]],
    ] as const) {
      ran.length = 0;
      const { id } = await one.hf.enqueue(mine, null);
      const state = async () => (await jobOf(one, id)).state;
      const first = await one.work([mine], { queues, ...lease });
      await world.until("asleep", async () => (await state()) === "scheduled");
      await world.finish(first.stop());
      const second = await one.work([other], { queues, ...lease });
      await world.until("dead", async () => (await state()) === "dead", "5m", "5s");
      await world.finish(second.stop());
      expect((await jobOf(one, id)).error).toMatch(/^DIVERGED/);
      await one.hf.jobs.retry(id);
      const third = await one.work([mine], { queues, ...lease });
      await world.until("done", async () => (await state()) === "done", "5m", "5s");
      await world.finish(third.stop());
      expect(ran).toEqual(expected);
    }
  });

  test("[O10] runNow continues an undo, and tries a step again, that waits for its backoff", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let stuck = true;
    const scheduled = async (id: string): Promise<boolean> => (await jobOf(one, id)).state === "scheduled";
    const body = saga(ran, () => stuck);
    const { id } = await one.hf.enqueue(workflow(body), null);
    await one.work([workflow(body)], { queues, ...lease });
    await world.until("undo waits", async () => ran.includes("undo car") && (await scheduled(id)));
    stuck = false;
    expect(await one.hf.jobs.runNow(id)).toBe("due");
    // Less than the shortest backoff.
    await world.until("undone", async () => (await jobOf(one, id)).state === "dead", "20s");
    expect(ran).toEqual(["flight", "hotel", "car", "undo car", "undo hotel", "undo flight"]);

    stuck = true;
    const tries: Body = (_input, ctx) =>
      ctx.step("a", () => (stuck ? Promise.reject(new Error("down")) : "up"), { retry: { attempts: 2 } });
    await one.work([workflow(tries, "tries")], { queues, ...lease });
    const second = await one.hf.enqueue(workflow(tries, "tries"), null);
    await world.until("step waits", () => scheduled(second.id));
    stuck = false;
    expect(await one.hf.jobs.runNow(second.id)).toBe("due");
    await world.until("done", async () => (await jobOf(one, second.id)).state === "done", "20s");
  });

  test("[O10] a retry by raw SQL goes on undoing, too", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    const ran: string[] = [];
    let stuck = true;
    const body = saga(ran, () => stuck);
    const { id } = await one.hf.enqueue(workflow(body), null);
    await runUntil(world, one, body, id, "dead");
    stuck = false;
    const retry = world.fresh.table("retry");
    await world.fresh.query(`insert into ${retry} (id) values (?)`, [id]);
    // It is due by the database's clock, which is ahead of the world's.
    await world.fresh.query(`update ${world.fresh.table("ready")} set run_at = 0`);
    await runUntil(world, one, body, id, "dead");
    expect(ran).toEqual(["flight", "hotel", "car", "undo car", "undo hotel", "undo flight"]);
    expect(await messages(one, id)).toEqual(["refused"]);
  });

  test("[O10] a step whose name is that of an undo is refused: its row would stand for the undo", async () => {
    const world = await newWorld(target);
    const one = await world.client();
    let code = "";
    const body: Body = async (_input, ctx) => {
      await ctx.step("undo:flight", () => 1).catch((error: { code: string }) => (code = error.code));
    };
    const { id } = await one.hf.enqueue(workflow(body), null);
    await runUntil(world, one, body, id, "done");
    expect(code).toBe("BAD_NAME");
  });
});
