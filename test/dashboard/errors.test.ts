// Failures by cause over the API: lists, decisions, permissions, the trail, redaction.
import { describe, expect, test } from "vitest";
import type { Holdfast } from "../../src/index.ts";
import type { AuditLine, FailureGroupDetail, FailureGroups } from "../../src/dashboard/api/contract.ts";
import { schemas } from "../../src/dashboard/api/openapi.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

async function die(hf: Holdfast, name: string, reason: string): Promise<void> {
  await hf.enqueue(name, { secret: "s3cret" }, { queue: `${name}-queue` });
  const [lease] = await hf.lease({ limit: 1, for: "10m" });
  await lease!.dead(reason);
}

onEveryStore((target) => {
  describe("errors", () => {
    test("[K1] resolve, ignore, reopen and note: each is done, listed, and on the trail under who did it", async () => {
      const { hf } = await api(target);
      const { get, send } = over(hf, { auth: () => ({ name: "ann", role: "admin" }) });
      const header = { "x-holdfast": "1" };
      await die(hf, "a", "disk full");
      await die(hf, "b", "no route");
      const list = async (query = "") =>
        (await get<FailureGroups>(`/errors${query}`)).body.groups.map(
          ({ name, state }) => `${name} ${state}`,
        );
      const [a, b] = (await get<FailureGroups>("/errors")).body.groups.toSorted((x, y) =>
        x.name < y.name ? -1 : 1,
      );
      const post = (path: string, body?: object) => send("POST", `/errors/${path}`, body, header);
      expect(
        (await post(`${a!.group}/resolve`, { note: "fixed", link: "https://example.org/7" })).status,
      ).toBe(200);
      expect((await post(`${b!.group}/ignore`, { for: "2d", count: 100 })).status).toBe(200);
      expect((await list()).sort()).toEqual(["a resolved", "b ignored"]);
      expect(await list("?state=open,regressed")).toEqual([]);
      expect(await list("?state=resolved")).toEqual(["a resolved"]);
      expect(await list("?queue=b-queue")).toEqual(["b ignored"]);
      const one = (await get<FailureGroupDetail>(`/errors/${a!.group}`)).body;
      expect(one).toMatchObject({
        state: "resolved",
        note: "fixed",
        link: "https://example.org/7",
        decidedBy: "ann",
        queues: ["a-queue"],
        dead: 1,
        lastDay: 1,
        message: "disk full",
      });
      expect(Object.keys(one).sort()).toEqual(Object.keys(schemas["FailureGroupDetail"]!.properties!).sort());
      expect(one.week).toHaveLength(168);
      expect((await get<FailureGroupDetail>(`/errors/${b!.group}`)).body).toMatchObject({
        state: "ignored",
        untilCount: 100,
        since: 0,
      });
      await send("PATCH", `/errors/${a!.group}`, { note: null }, header);
      await post(`${a!.group}/reopen`);
      expect((await get<FailureGroupDetail>(`/errors/${a!.group}`)).body).toMatchObject({
        state: "open",
        note: null,
      });
      const { entries } = (await get<{ entries: AuditLine[] }>("/audit")).body;
      expect(entries.map(({ actor, action, target: on, outcome }) => [actor, action, on, outcome])).toEqual([
        ["ann", "errors.reopen", a!.group, "opened"],
        ["ann", "errors.note", a!.group, "noted"],
        ["ann", "errors.ignore", b!.group, "ignored"],
        ["ann", "errors.resolve", a!.group, "resolved"],
      ]);
      expect(JSON.parse(entries[2]!.details!)).toMatchObject({ for: "2d", count: 100 });
    });

    test("[K1] what makes no sense is 400, what is not there 404, and nothing is written", async () => {
      const { hf, get, send, store } = await api(target);
      await die(hf, "a", "disk full");
      const { group } = (await get<FailureGroups>("/errors")).body.groups[0]!;
      for (const [method, path, body] of [
        ["POST", `${group}/ignore`, { for: "soon" }],
        ["POST", `${group}/ignore`, { for: "1h", until: 1 }],
        ["POST", `${group}/ignore`, { until: "tomorrow" }],
        ["POST", `${group}/ignore`, { count: -1 }],
        ["POST", `${group}/ignore`, { count: "many" }],
        ["POST", `${group}/resolve`, { link: "javascript:alert(1)" }],
        ["POST", `${group}/resolve`, { note: 7 }],
        ["POST", `${group}/resolve`, { note: "x".repeat(5_000) }],
        ["POST", `${group}/resolve`, { for: "1h" }],
        ["PATCH", group, { note: "a\0b" }],
        ["PATCH", group, { state: "resolved" }],
      ] as const)
        expect((await send(method, `/errors/${path}`, body)).status, JSON.stringify([path, body])).toBe(400);
      expect((await get("/errors?state=shut")).status).toBe(400);
      for (const nobody of ["0123456789abcdef", "nonsense", "%27%20or%201=1"]) {
        expect((await get(`/errors/${nobody}`)).status).toBe(404);
        for (const verb of ["resolve", "ignore", "reopen"])
          expect((await send("POST", `/errors/${nobody}/${verb}`)).status).toBe(404);
        expect((await send("PATCH", `/errors/${nobody}`, { note: "x" })).status).toBe(404);
      }
      expect(await store.query(`select count(*) as n from ${store.table("failure_group")}`)).toEqual([
        { n: 0 },
      ]);
      expect((await get<{ entries: AuditLine[] }>("/audit")).body.entries).toEqual([]);
    });

    test("[K1] a viewer sees and decides nothing; who may not see payloads sees no messages; redaction holds", async () => {
      const { hf } = await api(target);
      await die(hf, "a", "login failed: password=hunter2");
      const header = { "x-holdfast": "1" };
      const viewer = over(hf, { auth: () => ({ name: "eve", role: "viewer" }) });
      const seen = await viewer.get<FailureGroups>("/errors");
      const { group, message } = seen.body.groups[0]!;
      expect(message).toContain("login failed");
      expect(JSON.stringify([seen.body, (await viewer.get(`/errors/${group}`)).body])).not.toContain(
        "hunter2",
      );
      for (const verb of ["resolve", "ignore", "reopen"]) {
        const answer = await viewer.send("POST", `/errors/${group}/${verb}`, undefined, header);
        expect([answer.status, code(answer)]).toEqual([403, "FORBIDDEN"]);
      }
      expect((await viewer.send("PATCH", `/errors/${group}`, { note: "x" }, header)).status).toBe(403);
      const blind = over(hf, { auth: () => ({ name: "eve", permissions: ["view"] }) });
      expect((await blind.get<FailureGroups>("/errors")).body.groups[0]!.message).toBeNull();
      expect((await blind.get<FailureGroupDetail>(`/errors/${group}`)).body.message).toBeNull();
      const readOnly = over(hf, { readOnly: true });
      expect(code(await readOnly.send("POST", `/errors/${group}/resolve`, {}))).toBe("READ_ONLY");
      expect((await hf.errors.get(group))?.state).toBe("open");
      const operator = over(hf, { auth: () => ({ name: "bob", role: "operator" }) });
      expect((await operator.send("POST", `/errors/${group}/resolve`, undefined, header)).status).toBe(200);
    });
  });
});
