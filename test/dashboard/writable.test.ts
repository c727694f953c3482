// A database that takes no writes makes the dashboard read-only by itself.
import { expect, test } from "vitest";
import { Writable } from "../../src/dashboard/live/writable.ts";
import type { JobList, Me } from "../../src/dashboard/api/contract.ts";
import { open, silentLogger } from "../../src/index.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore, onPostgres } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

onPostgres((target) => {
  test("[K5] a role that may only read sees everything, and is offered nothing", async () => {
    const { hf: owner, store } = await api(target);
    await owner.enqueue("plain", 1);
    const schema = store.options.schema ?? "holdfast";
    const role = `reader_${schema}`;
    await store.query(`create role "${role}" login password 'secret'`);
    await store.query(`grant usage on schema "${schema}" to "${role}"`);
    await store.query(`grant select on all tables in schema "${schema}" to "${role}"`);
    const url = new URL(store.url);
    url.username = role;
    url.password = "secret";
    const hf = await open(url.href, { ...store.options, migrate: false, logger: silentLogger });
    const { get, send } = over(hf);
    expect((await get<Me>("/me")).body.readOnly).toBe(true);
    expect((await get<JobList>("/jobs")).body.jobs).toHaveLength(1);
    const refused = await send("POST", "/jobs", { name: "plain", input: 2 }, { "x-holdfast": "1" });
    expect([refused.status, code(refused)]).toEqual([403, "READ_ONLY"]);
    expect(JSON.stringify(refused.body)).toContain("the role may not write");
    expect((await over(owner).get<Me>("/me")).body.readOnly).toBe(false);
    await hf.close();
  });
});

onEveryStore((target) => {
  test("[K5] a database that takes writes does not make it read-only", async () => {
    const { get } = await api(target);
    expect((await get<Me>("/me")).body.readOnly).toBe(false);
  });
});

test("[K5] what was answered is asked anew after half a minute, and a database that is away decides nothing", async () => {
  const clock = new FakeClock();
  const answers: (boolean | Error)[] = [false, true, new Error("away"), false];
  let asked = 0;
  const writable = new Writable(
    {
      writable: async () => {
        const answer = answers[asked++];
        if (answer instanceof Error) throw answer;
        return answer ?? true;
      },
    },
    clock,
  );
  expect([await writable.now(), await writable.now(), asked]).toEqual([false, false, 1]);
  await clock.advance("31s");
  expect([await writable.now(), asked]).toEqual([true, 2]);
  await clock.advance("31s");
  expect([await writable.now(), await writable.now(), asked]).toEqual([true, false, 4]);
});
