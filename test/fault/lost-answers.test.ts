// Answers of a real Postgres are lost while it goes on: what it committed is found out, and nothing stays running that nobody runs.
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { startPostgres } from "../support/postgres.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { Cluster } from "./cluster.ts";

test("[O1] postgres 18: answers that are lost again and again strand no job, also where a lane has two places", async () => {
  await using server = await startPostgres(18);
  await using proxy = await TcpProxy.to(server.url());
  const cluster = await Cluster.on({ url: server.url() });
  await cluster.hf.lanes.set("default", "narrow", { concurrency: 2 });
  const ids = await cluster.naps(1_500, 5);
  const laned = Array.from({ length: 300 }, () => ({ job: "nap", input: { ms: 5 }, lane: "narrow" }));
  ids.push(...(await cluster.hf.enqueueMany(laned)).map(({ id }) => id));
  const worker = await cluster.worker(
    { queues: { default: 20 }, lease: "15s", heartbeat: "3s" },
    { url: proxy.url(server.url()) },
  );
  for (let round = 0; round < 4; round++) {
    await sleep(300);
    proxy.loseAnswers();
    await sleep(2_000);
  }
  await cluster.allDone(ids.length, 60_000);
  expect(await cluster.faults(ids)).toEqual([]);
  expect((await cluster.hf.stats()).totals).toMatchObject({ ready: 0, running: 0, dead: 0 });
  worker.kill("SIGTERM");
  expect(await worker.exited, worker.output).toEqual({ code: 0, signal: null });
});

test("[O1] postgres 18: a synchronous standby that is away for 8 s strands no job", async () => {
  await using server = await startPostgres(18);
  await using standby = await server.standby();
  const cluster = await Cluster.on({ url: server.url() });
  const ids = await cluster.naps(1_500, 5);
  const worker = await cluster.worker({ queues: { default: 20 }, lease: "20s", heartbeat: "3s" });
  await server.run("alter system set synchronous_standby_names = '*'");
  await server.run("select pg_reload_conf()");
  await sleep(300);
  await standby.stop("fast");
  await sleep(8_000);
  await standby.start();
  await cluster.allDone(ids.length, 60_000);
  expect(await cluster.faults(ids)).toEqual([]);
  expect((await cluster.hf.stats()).totals).toMatchObject({ ready: 0, running: 0, dead: 0 });
  worker.kill("SIGTERM");
  expect(await worker.exited, worker.output).toEqual({ code: 0, signal: null });
});
