// `holdfast events`: the log for people, and following it.
import { expect, test } from "vitest";
import { FakeClock } from "../../src/testing/index.ts";
import { connect } from "../support/test-clients.ts";
import { waitFor } from "../support/process.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "./support.ts";

onEveryStore((target) => {
  test("[J2] --follow shows a line that happened before those already shown, and arrives after them", async () => {
    const store = await target.fresh();
    // Clocks that stand still: lines are written when the test says so.
    const now = Date.now();
    const early = await connect(store, { eventLog: true, clock: new FakeClock(now - 5_000) });
    const late = await connect(store, { eventLog: true, clock: new FakeClock(now) });
    await early.enqueue("there-before", null);
    await early.eventLog.flush();
    const end = new AbortController();
    let out = "";
    const onOut = (text: string): void => void (out = text);
    const following = on(store)(["events", "--follow", "--json"], { signal: end.signal, onOut });
    await waitFor(() => out.includes("there-before"), { what: "what is there at the start" });
    await early.enqueue("first", null); // in the buffer of its process
    await late.enqueue("second", null);
    await late.eventLog.flush();
    await waitFor(() => out.includes("second"), { what: "the line of the faster process" });
    expect(out).not.toContain("first");
    await early.eventLog.flush();
    await waitFor(() => out.includes("first"), { what: "the line of the slower process" });
    // More than a page at a time.
    for (let i = 0; i < 1_200; i += 1) void late.enqueue(`many-${i}`, null);
    await late.enqueue("last", null);
    await late.eventLog.flush();
    await waitFor(() => out.includes("last"), { what: "all of a long batch" });
    end.abort();
    const ran = await following;
    expect(ran.code).toBe(0);
    const names = ran.lines<{ name: string }>().map(({ name }) => name);
    expect(names.slice(0, 3)).toEqual(["there-before", "second", "first"]);
    expect(new Set(names).size).toBe(names.length);
    expect(names).toHaveLength(3 + 1_200 + 1);
  });
});
