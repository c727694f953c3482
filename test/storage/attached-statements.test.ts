// A lone enqueue takes its wake-up along in its own statement; one that comes right after it leaves that to a gathered one.
import { open } from "holdfast";
import { expect, test } from "vitest";
import { onPostgres } from "../support/stores.ts";
import { operatorOf } from "../../src/operate/operator.ts";

onPostgres((target) => {
  test("[F8] a lone enqueue is one statement, and others hear of it all the same", async () => {
    const fresh = await target.fresh();
    const [hf, other] = [await open(fresh.url, fresh.options), await open(fresh.url, fresh.options)];
    const { store } = operatorOf(hf);
    await hf.enqueue("any", 0);
    const heard = Promise.withResolvers<void>();
    const stop = operatorOf(other).store.listen((wake) => {
      if (wake.kind === "work" && wake.queue === "default") heard.resolve();
    });
    while (!operatorOf(other).store.listening) await new Promise((resolve) => setTimeout(resolve, 50));
    const before = { all: store.counters.statements, told: store.counters.byName.get("notify") ?? 0 };
    await hf.enqueue("any", 1);
    expect(store.counters.statements - before.all).toBe(1);
    expect(store.counters.byName.get("notify") ?? 0).toBe(before.told);
    await heard.promise;
    stop();
    await hf.close();
    await other.close();
  });
});
