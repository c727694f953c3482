// Real processes that are stopped, blocked, told to end, or die at a named point.
import { expect, test } from "vitest";
import { spawnNode, waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import type { MortalSpec } from "./children/mortal.ts";
import { Cluster } from "./cluster.ts";

onEveryStore((target) => {
  test("[lab-K2] a worker that is stopped past its lease and wakes changes nothing, and learns that it lost it", async () => {
    const fresh = await target.fresh();
    const cluster = await Cluster.on(fresh);
    const work = { queues: { default: 1 }, lease: "2s", heartbeat: "500ms" } as const;
    const zombie = await cluster.worker(work);
    const { id } = await cluster.hf.enqueue("nap", { ms: 4_000 });
    await waitFor(() => cluster.starts(id).length === 1, { what: "it to start" });
    zombie.kill("SIGSTOP");
    const heir = await cluster.worker(work);
    await waitFor(() => cluster.starts(id).length === 2, {
      what: "the other to take it over",
      deadlineMs: 20_000,
    });
    const row = async () =>
      (
        await fresh.query(
          `select * from ${fresh.table("ready")} where ${fresh.jobKey} = ${fresh.jobKeyOf("?")}`,
          [id],
        )
      )[0];
    const before = await row();
    zombie.kill("SIGCONT");
    await zombie.message("lost", { deadlineMs: 20_000 });
    const after = await row();
    if (after !== undefined) expect(after).toEqual(before);
    await cluster.allDone(1, 20_000);
    const [first, second] = cluster.starts(id);
    expect(second!.token).toBeGreaterThan(first!.token);
    expect(await cluster.hf.jobs.get(id)).toMatchObject({ output: second!.token, attempt: 1, crashes: 1 });

    // Woken up, it works on under a new session.
    heir.kill("SIGTERM");
    expect(await heir.exited).toEqual({ code: 0, signal: null });
    const next = await cluster.hf.enqueue("nap", { ms: 1 });
    await waitFor(() => cluster.starts(next.id)[0]?.pid === zombie.pid, { what: "it to work on" });
  });

  test("[N7][lab-K3] a handler that blocks the event loop for several leases keeps its job and runs once", async () => {
    const cluster = await Cluster.on(await target.fresh());
    // Three leases and more. Of 1 s each, they were lost on a machine with ten times as much to do as it has cores.
    const work = { queues: { default: 1 }, lease: "3s", heartbeat: "750ms" } as const;
    await Promise.all([cluster.worker(work), cluster.worker(work)]);
    const { id } = await cluster.hf.enqueue("block", { ms: 10_000 });
    await cluster.allDone(1, 60_000);
    expect(cluster.starts(id)).toHaveLength(1);
    expect(await cluster.hf.jobs.get(id)).toMatchObject({ attempt: 1, crashes: 0 });
  });

  test("[N7][lab-K3] a handler in an endless loop loses its lease after the watchdog's limit", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const work = { queues: { default: 1 }, lease: "1s", heartbeat: "250ms", maxBlock: "1s" } as const;
    await Promise.all([cluster.worker(work), cluster.worker(work)]);
    const { id } = await cluster.hf.enqueue("block", { ms: 600_000 });
    await waitFor(() => cluster.starts(id).length === 2, {
      what: "the other to take it over",
      deadlineMs: 30_000,
    });
    const [first, second] = cluster.starts(id);
    expect(second!.pid).not.toBe(first!.pid);
    expect(cluster.notes().filter(({ event }) => event === "end")).toEqual([]);
  });

  test("[F10][lab-K6] after SIGTERM a short job finishes, a long one goes back unburnt and restarts elsewhere; exit code 0", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const leaving = await cluster.worker({ queues: { default: 2 }, shutdown: "1500ms" });
    const short = await cluster.hf.enqueue("nap", { ms: 500 });
    const long = await cluster.hf.enqueue("nap", { ms: 10_000 });
    await waitFor(() => cluster.notes().length === 2, { what: "both to start" });
    await cluster.worker({ queues: { default: 2 } });
    leaving.kill("SIGTERM");
    expect(await leaving.exited).toEqual({ code: 0, signal: null });
    expect(await cluster.hf.jobs.get(short.id)).toMatchObject({ state: "done", attempt: 1 });
    await waitFor(() => cluster.starts(long.id).length === 2, { what: "the long one to start elsewhere" });
    expect(cluster.starts(short.id)).toHaveLength(1);
    expect(cluster.starts(long.id).map(({ attempt }) => attempt)).toEqual([1, 1]);
    expect(await cluster.hf.jobs.get(long.id)).toMatchObject({
      state: "running",
      attempt: 1,
      crashes: 0,
      errors: [],
    });
  });

  test("[F10] after SIGTERM the process ends with 0 although a handler ignores its signal, and its job is given back", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const child = await cluster.worker({ queues: { default: 1 }, shutdown: "200ms" });
    const { id } = await cluster.hf.enqueue("deaf", { ms: 600_000 });
    await waitFor(() => cluster.starts(id).length === 1, { what: "it to start" });
    child.kill("SIGTERM");
    await child.message("stopped");
    expect(await child.exited).toEqual({ code: 0, signal: null });
    expect(await cluster.hf.jobs.get(id)).toMatchObject({ state: "ready", attempt: 0, crashes: 0 });
  });

  test("[F11] a worker that is stopped from afar ends its process with 0 after its current job", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const child = await cluster.worker({ queues: { default: 1 }, name: "far" });
    const { id } = await cluster.hf.enqueue("nap", { ms: 300 });
    await waitFor(() => cluster.starts(id).length === 1, { what: "it to start" });
    expect(await cluster.hf.workers.stop("far")).toBe(1);
    await child.message("stopped");
    expect(await cluster.hf.jobs.get(id)).toMatchObject({ state: "done" });
    expect(await cluster.hf.workers.drained()).toBe(true);
    expect(await child.exited).toEqual({ code: 0, signal: null });
  });

  test("[F12][F14] a worker that can never go on ends its process with 1 and names the cause", async () => {
    const fresh = await target.fresh();
    const cluster = await Cluster.on(fresh);
    const child = await cluster.worker({ queues: { default: 1 }, poll: "200ms" });
    await fresh.query(`drop table ${fresh.table("ready")}`);
    const error = await child.message("error", { deadlineMs: 20_000 });
    // Whichever loop meets the missing table first.
    expect(error["during"]).toMatch(/^(claiming|renewing the lease|settling|reading the queues' settings)$/);
    expect(await child.exited).toEqual({ code: 1, signal: null });
    expect(child.output).not.toMatch(/unhandled/i);
  });

  test("two workers of the same name both work, and nobody takes the one for the other", async () => {
    const cluster = await Cluster.on(await target.fresh());
    const work = { queues: { default: 2 }, name: "twin" } as const;
    const twins = await Promise.all([cluster.worker(work), cluster.worker(work)]);
    const listed = await cluster.hf.workers.list();
    expect(listed.map(({ name }) => name)).toEqual(["twin", "twin"]);
    expect(new Set(listed.map(({ id }) => id)).size).toBe(2);
    const ids = await cluster.naps(80, 50);
    await cluster.allDone(80, 30_000);
    expect(new Set(cluster.notes().map(({ pid }) => pid))).toEqual(new Set(twins.map(({ pid }) => pid)));
    expect(cluster.notes().filter(({ event }) => event === "start")).toHaveLength(80);
    expect(await cluster.faults(ids)).toEqual([]);
  });

  test("[lab-B1] a dozen first boots at once on an empty database all start, and make one schema", async () => {
    const fresh = await target.fresh();
    const spec = JSON.stringify({ url: fresh.url, options: fresh.options });
    const boots = Array.from({ length: 12 }, () => spawnNode("test/fault/children/boot.ts", [spec]));
    const exits = await Promise.all(boots.map((boot) => boot.exited));
    expect(
      exits.map(({ code }) => code),
      boots.map(({ output }) => output).join(""),
    ).toEqual(Array(12).fill(0));
    expect(await fresh.query(`select version from ${fresh.table("migration")}`)).toEqual([{ version: 1 }]);
    expect(
      await fresh.query(`select count(*) as n from ${fresh.table("meta")} where key = 'instance'`),
    ).toEqual([{ n: 1 }]);
    expect(await fresh.query(`select count(*) as n from ${fresh.table("ready")}`)).toEqual([{ n: 12 }]);
  });

  test("[M1] SIGKILL at each await of claim, run and settle loses no job and leaves none stuck", async () => {
    const place = await target.fresh();
    const cluster = await Cluster.on(place);
    const points = [
      ...(["sessions.open", "claims.claim", "settles.settle", "sessions.close"] as const).flatMap((verb) =>
        (["before", "during", "after"] as const).map((when) => ({ verb, when })),
      ),
      { verb: "run" as const, when: "during" as const },
    ];
    const enqueued: { id: string; queue: string }[] = [];
    for (const [n] of points.entries()) {
      const items = [1, 2, 3].map(() => ({ job: "nap", input: { ms: 1 }, queue: `q${n}` }));
      for (const { id } of await cluster.hf.enqueueMany(items)) enqueued.push({ id, queue: `q${n}` });
    }
    for (let from = 0; from < points.length; from += 4) {
      const deaths = points.slice(from, from + 4).map(({ verb, when }, n) => {
        const spec: MortalSpec = {
          url: place.url,
          options: place.options,
          queue: `q${from + n}`,
          verb,
          when,
        };
        return spawnNode("test/fault/children/mortal.ts", [JSON.stringify(spec)]);
      });
      const exits = await Promise.all(deaths.map(({ exited }) => exited));
      expect(
        exits.map(({ signal }) => signal),
        deaths.map(({ output }) => output).join(""),
      ).toEqual(deaths.map(() => "SIGKILL"));
    }
    await cluster.worker({ queues: Object.fromEntries(points.map((_, n) => [`q${n}`, 3])) });
    await cluster.allDone(enqueued.length, 30_000);
    expect((await cluster.hf.stats()).totals).toMatchObject({ ready: 0, running: 0, scheduled: 0, dead: 0 });
    for (const { id } of enqueued)
      expect(await cluster.hf.jobs.get(id)).toMatchObject({ state: "done", attempt: 1 });
  });
});
