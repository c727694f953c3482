// Jobs by half an id: lists show the last 12 characters, logs the first 8.
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import type { JobMatches } from "../../src/dashboard/api/contract.ts";
import { onEveryStore } from "../support/stores.ts";
import { api } from "./support.ts";

const quick = defineJob({ name: "quick", run: async (_input: { n: number }) => {} });
const idsOf = ({ jobs }: JobMatches): string[] => jobs.map(({ id }) => id);

onEveryStore((target) => {
  describe("jobs by a part of their ids", () => {
    test("[K1] each is found by its end and by its beginning, whatever its state", async () => {
      const { hf, get } = await api(target);
      const jobs = await hf.enqueueMany(Array.from({ length: 30 }, (_, n) => ({ job: quick, input: { n } })));
      const ids = jobs.map(({ id }) => id);
      const [first = "", , , cancelled = ""] = ids;
      await hf.jobs.cancel(cancelled);
      const found = async (part: string) => (await get<JobMatches>(`/jobs/matching?id=${part}`)).body;
      for (const part of [cancelled.slice(-12), cancelled.slice(-17), cancelled.slice(0, -8), cancelled]) {
        expect(await found(part), part).toMatchObject({ more: false, cursor: null });
        expect(idsOf(await found(part.toUpperCase())), part).toEqual([cancelled]);
      }
      expect((await found(cancelled.slice(-12))).jobs).toMatchObject([{ name: "quick", state: "cancelled" }]);
      // Their first 8 are a minute: the newest 20, and that there are more.
      const minute = await found(first.slice(0, 8));
      expect(minute.more).toBe(true);
      expect(idsOf(minute)).toEqual([...ids].sort().reverse().slice(0, 20));
      expect(await found("0123456789ab")).toMatchObject({ jobs: [], more: false, cursor: null });
      // From a cursor it looks at ends of what is older alone.
      const older = (id = "") => found(`${id.slice(-12)}&cursor=${ids[20]}`);
      expect(idsOf(await older(ids[0]))).toEqual([ids[0]]);
      expect(idsOf(await older(ids[29]))).toEqual([]);
    });

    test("[K1] it looks at so many ends at a time, and says how far it came", async () => {
      const { hf, get } = await api(target);
      const first = await hf.enqueue(quick, { n: -1 });
      for (let i = 0; i < 6; i += 1)
        await hf.enqueueMany(Array.from({ length: 1_000 }, (_, n) => ({ job: quick, input: { n } })));
      const path = `/jobs/matching?id=${first.id.slice(-12)}`;
      let answer = (await get<JobMatches>(path)).body;
      expect(answer.since).toBeTypeOf("number");
      // One piece of 5,000 at least; a quick machine looks at all.
      for (; answer.jobs.length === 0;) {
        expect(answer.cursor).not.toBeNull();
        answer = (await get<JobMatches>(`${path}&cursor=${answer.cursor}`)).body;
      }
      expect(idsOf(answer)).toEqual([first.id]);
    });

    test("[K1] what is no part of an id is refused, and a part in a job's place says where to ask", async () => {
      const { hf, get } = await api(target);
      for (const query of [
        "",
        "id=xyz",
        "id=abc",
        "id=%25",
        "id=0123456789ab&cursor=x",
        `id=${"0".repeat(33)}`,
      ])
        expect((await get(`/jobs/matching?${query}`)).status, query).toBe(400);
      const { id } = await hf.enqueue(quick, { n: 1 });
      const missed = await get<{ error: { message: string } }>(`/jobs/${id.slice(-12)}`);
      expect(missed.status).toBe(404);
      expect(JSON.stringify(missed.body)).toContain(`/jobs/matching?id=${id.slice(-12)}`);
    });
  });
});
