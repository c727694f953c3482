// Half an id on the command line: the one job that has it, or a choice, or what is said of an unknown one.
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { meant } from "../../src/cli/jobs/job-id.ts";
import { idPart } from "../../src/values/id-part.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const later = defineJob({ name: "later", run: async (_input: { n: number }) => {} });
const at = (n: number): string => `0199c1d8-7c0${n}-7000-8000-00000000abc${n}`;

test("[K4] what changes a job is not done by a part that an older job may have too; 12 digits of an end, or 8 of a beginning, are enough", () => {
  const since = new Date(0);
  const of = (text: string, use: "look" | "act", looked: Date | null = since): string => {
    const part = idPart(text);
    return part === null ? "no part" : meant(part, { ids: [at(1)], more: false, since: looked }, use);
  };
  expect([of("abc1", "act"), of("abc1", "look"), of("abc1", "act", null)]).toEqual(["perhaps", "one", "one"]);
  expect([of("0000000abc1", "act"), of("00000000abc1", "act")]).toEqual(["perhaps", "one"]);
  expect([of("0199c1d", "act"), of("0199c1d8", "act")]).toEqual(["perhaps", "one"]);
  expect(meant(idPart("abc1")!, { ids: [], more: false, since }, "act")).toBe("none");
  expect(meant(idPart("abc1")!, { ids: [at(1)], more: true, since: null }, "look")).toBe("several");
});

onEveryStore((target) => {
  describe("half an id", () => {
    test("[K4] every command that takes a job takes the end or the beginning of its id, and says whose it was", async () => {
      const { hf, store } = await fresh(target);
      for (const n of [1, 2, 3]) await hf.enqueue(later, { n }, { id: at(n), delay: "1h" });
      const holdfast = on(store);
      for (const part of ["00000000abc1", "0199c1d8-7c01", "0199c1d87c01", "ABC1", "…abc1"]) {
        const shown = await holdfast(["jobs", "show", part, "--json"]);
        expect([part, shown.code, shown.json()["id"]]).toEqual([part, 0, at(1)]);
      }
      const why = await holdfast(["why", "abc2"]);
      expect([why.code, why.err]).toEqual([0, `abc2 is ${at(2)}\n`]);
      expect((await holdfast(["jobs", "logs", "abc2"])).code).toBe(0);
      expect((await holdfast(["jobs", "history", "abc2", "--json"])).json()).toMatchObject({
        run: { id: at(2) },
      });
      expect((await holdfast(["jobs", "list", "--where", "id:abc2", "--json"])).json()).toMatchObject({
        jobs: [{ id: at(2) }],
      });
      expect((await holdfast(["jobs", "pause", "abc3", "--json"])).json()).toEqual({
        matched: 1,
        paused: 1,
        ids: [at(3)],
      });
      const cancelled = await holdfast(["jobs", "cancel", "abc3", at(1), "7c01", "--force"]);
      expect([cancelled.code, cancelled.out.trim()]).toEqual([1, "2 cancelled, 1 not found"]);
      expect(cancelled.err).toContain(at(3));
      expect((await hf.jobs.get(at(2)))?.state).toBe("scheduled");
      const trail = await operatorOf(hf).store.insight.audit({ limit: 10, before: null });
      expect(trail.map(({ target }) => target)).toContain(at(3));
    });

    test("[K4] a part that several have is not chosen among: exit 2, the candidates, and nothing is done", async () => {
      const { hf, store } = await fresh(target);
      for (const n of [1, 2, 3]) await hf.enqueue(later, { n }, { id: at(n), delay: "1h" });
      const holdfast = on(store);
      for (const argv of [
        ["jobs", "show", "0199c1d8"],
        ["why", "0199c1d8"],
        ["jobs", "cancel", "0199c1d8", "--force"],
        ["jobs", "delete", at(1), "0199c1d8", "--force"],
        ["jobs", "fork", "0199c1d8", "--from", "a"],
        ["jobs", "retry", "--workflow", "0199c1d8", "--force"],
      ]) {
        const ran = await holdfast(argv);
        expect([argv, ran.code, ran.out]).toEqual([argv, 2, ""]);
        for (const n of [1, 2, 3]) expect(ran.err).toContain(`${at(n)}  scheduled  later`);
      }
      expect(await hf.jobs.count({ state: "scheduled" })).toBe(3);
    });

    test("[K4] what no id has is an unknown id, as before", async () => {
      const { store } = await fresh(target);
      const holdfast = on(store);
      for (const part of ["deadbeef", "nope", "12"]) {
        const shown = await holdfast(["jobs", "show", part]);
        expect([part, shown.code]).toEqual([part, 1]);
        expect(shown.err).toContain(`There is no job ${part}`);
        expect((await holdfast(["jobs", "cancel", part, "--force"])).code).toBe(1);
      }
    });
  });
});
