// Wake-ups that come one after the other share a statement: the first goes at once, the others together.
import { EventEmitter } from "node:events";
import { expect, onTestFinished, test } from "vitest";
import { Listener, Notifier } from "../../src/storage/postgres/listen.ts";
import type { PgClient } from "../../src/storage/postgres/pg.ts";
import { FakeClock } from "../../src/testing/fake-clock.ts";
import type { Wake } from "../../src/storage/wake.ts";

const work = (queue: string): Wake => ({ kind: "work", queue, priority: 0 });
const queuesOf = (payloads: readonly string[]): unknown[] =>
  payloads.map((payload) => (JSON.parse(payload) as { q: string }).q);

test("[F8] the first wake-up is sent at once, those after it in one statement, each once; closing waits for none", async () => {
  const sent: unknown[][] = [];
  const notifier = new Notifier((payloads) => {
    sent.push(queuesOf(payloads));
    return Promise.resolve();
  }, new FakeClock());
  for (const queue of ["mail", "media", "mail", "media", "billing"]) notifier.push(work(queue));
  expect(sent).toEqual([["mail"]]);
  await notifier.flush();
  expect(sent).toEqual([["mail"], ["media", "mail", "billing"]]);
  expect(notifier.ride(work("mail")), "not while others were sent a moment ago").toBeNull();
});

test("[F8] a wake-up that cannot be sent is left to polling, and the next one is sent", async () => {
  let calls = 0;
  const notifier = new Notifier(() => {
    calls += 1;
    return calls === 1 ? Promise.reject(new Error("gone")) : Promise.resolve();
  });
  notifier.push(work("mail"));
  notifier.push(work("media"));
  await notifier.flush();
  expect(calls).toBe(2);
});

test("[F8] a wake-up rides along where it was quiet for 20 ms; busier than that, it is gathered", async () => {
  const clock = new FakeClock();
  const notifier = new Notifier(() => Promise.resolve(), clock);
  const rode: boolean[] = [];
  for (const afterMs of [0, 0, 19, 20, 19, 21]) {
    await clock.advance(afterMs);
    rode.push(notifier.ride(work("mail")) !== null);
  }
  expect(rode).toEqual([true, false, false, true, false, true]);
});

/** A server behind a pooler that lends one of its connections for each transaction: a client hears only what it sends itself. */
function listenerBehind(pooler: boolean): Listener {
  const client = new EventEmitter();
  const hear = (payload: string | undefined): void => void client.emit("notification", { payload });
  const query = (_: string, [, payloads]: [string, string[]?] = [""]): Promise<unknown> => {
    hear(payloads?.[0]);
    return Promise.resolve({ rows: [{}] });
  };
  Object.assign(client, { query, end: () => Promise.resolve() });
  const listener = new Listener({
    channel: "holdfast",
    connect: () => Promise.resolve(client as unknown as PgClient),
    send: (message) => {
      if (!pooler) hear(message);
      return Promise.resolve([{}]);
    },
    onWake: () => {},
    onWarning: () => {},
  });
  onTestFinished(() => listener.stop());
  return listener;
}

test.each([true, false])(
  "[F8] what a listener sends itself proves nothing, since it may come back through a pooler (%s)",
  async (pooler) => {
    const listener = listenerBehind(pooler);
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(listener.proven).toBe(!pooler);
  },
);
