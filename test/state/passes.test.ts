// Passes: recurring work that knows whether the one before it ended clean.
import { expect, test } from "vitest";
import type { Pass } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { lost, newWorld } from "../support/world.ts";

onEveryStore((target) => {
  test("[H4] the flag is false while a pass runs and true after a clean end", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const flags: boolean[] = [];
    const flag = async (): Promise<boolean> => (await hf.state.passes())[0]?.clean ?? false;
    const seen: boolean[] = [];
    for (let i = 0; i < 2; i++) {
      const value = await hf.state.pass("crawl", async (pass) => {
        seen.push(pass.recovery);
        flags.push(await flag());
        return pass.run;
      });
      flags.push(await flag());
      expect(value).toBe(i + 1);
    }
    expect(flags).toEqual([false, true, false, true]);
    expect(seen, "the first sweeps everything").toEqual([true, false]);
    expect(await hf.state.passes()).toMatchObject([
      { name: "crawl", clean: true, running: false, runs: 2, reason: null },
    ]);
  });

  test("[H4] after an error or a limit the next pass recovers, and the one after a clean end does not", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const recovers = (name: string): Promise<boolean> => hf.state.pass(name, (pass) => pass.recovery);
    await expect(hf.state.pass("a", () => Promise.reject(new Error("no disk")))).rejects.toThrow("no disk");
    expect(await hf.state.passes()).toMatchObject([{ clean: false, reason: "no disk", running: false }]);
    expect(await recovers("a")).toBe(true);
    expect(await recovers("a")).toBe(false);
    const value = await hf.state.pass("b", (pass) => {
      pass.limit("1,000 pages");
      return "done for today";
    });
    expect(value).toBe("done for today");
    expect((await hf.state.passes())[1]).toMatchObject({
      name: "b",
      clean: false,
      reason: "limit: 1,000 pages",
    });
    expect(await recovers("b")).toBe(true);
    expect(await recovers("b")).toBe(false);
  });

  test("[O15] a pass is clean if it returned, reached no limit and its signal has not fired", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    const fired = AbortSignal.abort(new Error("the worker stops"));
    const quiet = new AbortController().signal;
    const table = [
      { returns: true, limit: false, signal: undefined, clean: true },
      { returns: true, limit: false, signal: quiet, clean: true },
      { returns: true, limit: false, signal: fired, clean: false, reason: "stopped: the worker stops" },
      { returns: true, limit: true, signal: quiet, clean: false, reason: "limit: enough" },
      { returns: true, limit: true, signal: fired, clean: false, reason: "limit: enough" },
      { returns: false, limit: false, signal: quiet, clean: false, reason: "broken" },
      { returns: false, limit: false, signal: fired, clean: false, reason: "broken" },
    ];
    for (const [i, { returns, limit, signal, clean, reason = null }] of table.entries()) {
      const name = `p${i}`;
      const work = (pass: Pass): boolean => {
        expect(pass.signal.aborted).toBe(signal?.aborted ?? false);
        if (limit) pass.limit("enough");
        if (!returns) throw new Error("broken");
        return pass.recovery;
      };
      const first = hf.state.pass(name, work, { signal });
      if (returns) expect(await first, "the first of a name recovers").toBe(true);
      else await expect(first).rejects.toThrow("broken");
      const state = (await hf.state.passes()).find((one) => one.name === name);
      expect(state, name).toMatchObject({ clean, reason });
      expect(await hf.state.pass(name, (pass) => pass.recovery), name).toBe(!clean);
    }
    const cut = new AbortController();
    await hf.state.pass("during", () => cut.abort(new Error("now")), { signal: cut.signal });
    expect(await hf.state.pass("during", (pass) => pass.recovery)).toBe(true);
    await expect(
      hf.state.pass("bad", () => 1, { signal: "stop" as unknown as AbortSignal }),
    ).rejects.toMatchObject({ code: "BAD_OPTION" });
    expect((await hf.state.passes()).some(({ name }) => name === "bad")).toBe(false);
  });

  test("[H3] so many failures in a row give the pass up, also when its function goes on", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    let tried = 0;
    const failing = hf.state.pass("p", async (pass) => {
      for (;;) await pass.try(() => Promise.reject(new Error(`no ${++tried}`)));
    });
    await expect(failing).rejects.toMatchObject({ code: "PASS_ABORTED", details: { failures: 10 } });
    expect(tried).toBe(10);
    expect((await hf.state.passes())[0]).toMatchObject({ clean: false });
    // One success in between, and it counts anew.
    const fine = await hf.state.pass("p", async (pass) => {
      for (let i = 1; i <= 40; i++)
        await pass.try(() => (i % 10 === 0 ? i : Promise.reject(new Error("no"))));
      return pass.recovery;
    });
    expect(fine).toBe(true);
    let signal: AbortSignal | undefined;
    const stubborn = hf.state.pass(
      "q",
      (pass) => {
        signal = pass.signal;
        for (let i = 0; i < 3; i++) {
          try {
            pass.failed(new Error("no"));
          } catch {
            // goes on all the same
          }
        }
        pass.ok();
        return "fine, I think";
      },
      { breaker: 3 },
    );
    await expect(stubborn).rejects.toMatchObject({ code: "PASS_ABORTED" });
    expect(signal?.aborted).toBe(true);
    expect(await hf.state.pass("q", (pass) => pass.recovery)).toBe(true);
  });

  test("[H4] one pass of a name at a time; when its process dies, the next takes over and recovers", async () => {
    const world = await newWorld(target);
    const first = await world.client();
    const second = await world.client();
    let release = (): void => {};
    const running = first.hf.state.pass("p", () => new Promise<void>((resolve) => (release = resolve)));
    await world.quiet();
    await expect(second.hf.state.pass("p", () => 1)).rejects.toMatchObject({ code: "PASS_RUNNING" });
    await world.advance("5m", "5s"); // it is renewed for as long as it lives
    await expect(second.hf.state.pass("p", () => 1)).rejects.toMatchObject({ code: "PASS_RUNNING" });
    release();
    await running;
    expect(await second.hf.state.pass("p", (pass) => pass.recovery)).toBe(false);

    void first.hf.state.pass("p", () => new Promise(() => {})).catch(() => {});
    await world.quiet();
    first.tap.kill();
    await world.advance("29s", "5s");
    await expect(second.hf.state.pass("p", () => 1)).rejects.toMatchObject({ code: "PASS_RUNNING" });
    await world.advance("2s");
    expect(await second.hf.state.pass("p", (pass) => pass.recovery)).toBe(true);
  });

  test("[H4] a pass that was taken over is told, and cannot set the flag", async () => {
    const world = await newWorld(target);
    const stalled = await world.client();
    const other = await world.client();
    let pass: Pass | undefined;
    let release = (): void => {};
    const zombie = stalled.hf.state.pass("p", (given) => {
      pass = given;
      return new Promise<void>((resolve) => (release = resolve));
    });
    zombie.catch(() => {});
    await world.quiet();
    stalled.tap.around = (verb, call) => (verb === "passes.renew" ? lost() : call());
    await world.advance("25s", "1s");
    expect(pass?.signal.aborted).toBe(true); // before another can begin
    await world.advance("10s", "1s");
    stalled.tap.around = null;
    let end = (): void => {};
    const next = other.hf.state.pass(
      "p",
      (given) => new Promise<boolean>((resolve) => (end = () => resolve(given.recovery))),
    );
    await world.quiet();
    release();
    await expect(zombie).rejects.toMatchObject({ code: "PASS_LOST" });
    expect((await other.hf.state.passes())[0]).toMatchObject({ clean: false, running: true });
    end();
    expect(await next).toBe(true);
    expect((await other.hf.state.passes())[0]).toMatchObject({ clean: true, running: false });
  });

  test("[H4] whatever is wrong is refused before anything is written", async () => {
    const world = await newWorld(target);
    const { hf } = await world.client();
    for (const [code, args] of [
      ["BAD_NAME", ["a b", () => 1]],
      ["BAD_OPTION", ["p", 5]],
      ["BAD_OPTION", ["p", () => 1, { breaker: 0 }]],
      ["BAD_OPTION", ["p", () => 1, { breaker: 1.5 }]],
      ["BAD_DURATION", ["p", () => 1, { lease: 10 }]],
      ["UNKNOWN_OPTION", ["p", () => 1, { braker: 1 }]],
    ] as const)
      await expect(hf.state.pass(...(args as unknown as [string, () => number]))).rejects.toMatchObject({
        code,
      });
    expect(await hf.state.passes()).toEqual([]);
  });

  test("[O2] lost answers change nothing about a pass: it is no recovery after a clean one, and it ends clean", async () => {
    const world = await newWorld(target);
    const client = await world.client();
    const { hf, tap } = client;
    await hf.state.pass("crawl", () => {});
    let left = 0;
    tap.around = async (verb, call) => {
      const answer = await call();
      return ["passes.begin", "passes.end"].includes(verb) && left-- > 0 ? lost() : answer;
    };
    left = 2;
    const run = hf.state.pass("crawl", (pass) => {
      left = 2;
      return [pass.recovery, pass.run];
    });
    expect(await world.finish(run)).toEqual([false, 2]);
    expect(await hf.state.passes()).toMatchObject([{ clean: true, running: false, runs: 2, reason: null }]);
  });
});
