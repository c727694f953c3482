// Who may do what, on every route of the table: read-only, a permission for each action, a line on the audit trail for each
// change, and no change by reading.
import { describe, expect, test } from "vitest";
import {
  type AuditLine,
  type BulkVerb,
  type Operation,
  type Permission,
  PERMISSIONS,
} from "../../src/dashboard/api/contract.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { ROLES } from "../../src/dashboard/access/security.ts";
import { defineJob } from "../../src/index.ts";
import { STATES_OF } from "../../src/operate/operations.ts";
import { connect } from "../support/test-clients.ts";
import { type FreshStore, onEveryStore } from "../support/stores.ts";
import { addressOf, changes, reads, routeOf, world } from "./every-route.ts";
import { api, code, over, TOKEN } from "./support.ts";

const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });
const header = { "x-holdfast": "1" };

/** Every route that changes something, with its path filled in. */
const writes = routes
  .filter(({ write }) => write === true)
  .map((route) => ({
    ...route,
    address: route.path.replaceAll(/:(\w+)/g, (_whole, name: string) =>
      name === "id" ? "0199c1d8-7c00-7000-8000-000000000000" : "x",
    ),
  }));

/** What each bulk action needs, written down once more: the table of the code is not asked. */
const bulkNeeds: Readonly<Record<BulkVerb, Permission>> = {
  retry: "jobs:retry",
  "run-now": "jobs:run",
  pause: "jobs:pause",
  resume: "jobs:pause",
  cancel: "jobs:cancel",
  terminate: "jobs:terminate",
  delete: "jobs:delete",
  purge: "jobs:delete",
  edit: "jobs:edit",
};

/** Everything that is in the tables, by table. */
async function rowsOf(store: FreshStore): Promise<Readonly<Record<string, readonly string[]>>> {
  const names =
    store.dialect === "sqlite"
      ? await store.query(
          `select substr(name, 10) as name from sqlite_master where type = 'table' and name like 'holdfast\\_%' escape '\\'`,
        )
      : await store.query(
          `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = ? and c.relkind in ('r', 'p') and not c.relispartition`,
          [store.options.schema],
        );
  const all: Record<string, string[]> = {};
  for (const { name } of names) {
    const rows = await store.query(`select * from ${store.table(String(name))}`);
    all[String(name)] = rows.map((row) => JSON.stringify(row)).sort();
  }
  return all;
}

onEveryStore((target) => {
  describe("what one may do", () => {
    test("read-only is decided on the server: every change is 403, for an admin too", async () => {
      const { hf, send, get } = await api(target, { readOnly: true });
      const { id } = await hf.enqueue(plain, 1);
      for (const { method, address } of writes) {
        const answer = await send(method, address, {});
        expect([answer.status, address]).toEqual([403, address]);
        expect(code(answer)).toBe("READ_ONLY");
      }
      expect((await send("DELETE", `/jobs/${id}`)).status).toBe(403);
      expect(await hf.jobs.get(id)).not.toBeNull();
      expect((await get<{ readOnly: boolean }>("/me")).body.readOnly).toBe(true);
      expect((await get<{ entries: unknown[] }>("/audit")).body.entries).toEqual([]);
    });

    test("a viewer can change nothing, and each action needs its own permission", async () => {
      const { hf } = await api(target);
      await hf.enqueue(plain, 1);
      const viewer = over(hf, { auth: () => ({ name: "eve", role: "viewer" }) });
      for (const { method, address } of writes) {
        const body = address.endsWith("/bulk")
          ? { action: "delete", filter: { state: ["ready"] } }
          : undefined;
        const answer = await viewer.send(method, address, body, header);
        expect([403, 404], address).toContain(answer.status);
        if (answer.status === 404) expect(address).toContain("/operations/");
        else expect(code(answer), address).toBe("FORBIDDEN");
      }
      expect((await viewer.get("/audit")).status).toBe(403);
      for (const filter of ["search=x", "error=x", "payload=a:1"])
        expect((await viewer.get(`/jobs?${filter}`)).status, filter).toBe(403);
      expect(await hf.jobs.count()).toBe(1);

      const without = (permission: Permission) =>
        over(hf, {
          auth: () => ({ name: "eve", permissions: PERMISSIONS.filter((one) => one !== permission) }),
        });
      for (const { method, address, permission } of writes) {
        if (permission === null || permission === "view") continue;
        const answer = await without(permission).send(method, address, undefined, header);
        expect([answer.status, address]).toEqual([403, address]);
      }
      for (const { path, permission, method } of routes) {
        if (permission === null || method !== "GET" || path.includes(":")) continue;
        expect((await without(permission).get(path)).status, path).toBe(403);
      }
      const unknown = over(hf, { auth: () => ({ name: "eve", role: "root" as never }) });
      expect((await unknown.get("/jobs")).status).toBe(403);
    });

    test("every bulk action needs its own permission, to try as well, and nothing is done without", async () => {
      const { hf } = await api(target);
      await hf.enqueue(plain, 1);
      expect(Object.keys(bulkNeeds).sort()).toEqual(Object.keys(STATES_OF).sort());
      for (const [action, permission] of Object.entries(bulkNeeds)) {
        const body = {
          action,
          filter: { name: ["plain"] },
          ...(action === "edit" ? { change: { priority: 1 } } : {}),
        };
        const others = ROLES.admin.filter((one) => one !== permission);
        const { send } = over(hf, { auth: () => ({ name: "eve", permissions: others }) });
        const only = over(hf, { auth: () => ({ name: "ann", permissions: ["view", permission] }) });
        for (const dryRun of [true, false]) {
          const refused = await send("POST", "/jobs/bulk", { ...body, dryRun }, header);
          expect([refused.status, code(refused)], action).toEqual([403, "FORBIDDEN"]);
        }
        expect(
          (await only.send("POST", "/jobs/bulk", { ...body, dryRun: true }, header)).status,
          action,
        ).toBe(200);
      }
      expect(await hf.jobs.count({ state: "ready" })).toBe(1);
      expect((await over(hf).get<{ entries: unknown[] }>("/audit")).body.entries).toEqual([]);
    });

    test("who may not do what a bulk action does may not steer it either", async () => {
      const { hf } = await api(target);
      await hf.enqueueMany([1, 2, 3].map((input) => ({ job: plain, input })));
      const task = { action: "cancel", filter: { name: ["plain"] }, rate: { limit: 1, per: "1h" } };
      const ann = over(hf, { auth: () => ({ name: "ann" }) });
      const { id } = (await ann.send<Operation>("POST", "/jobs/bulk", task, header)).body;
      const eve = over(hf, {
        auth: () => ({ name: "eve", permissions: PERMISSIONS.filter((one) => one !== "jobs:cancel") }),
      });
      for (const verb of ["pause", "resume", "stop"])
        expect((await eve.send("POST", `/operations/${id}/${verb}`, undefined, header)).status, verb).toBe(
          403,
        );
      expect((await ann.get<Operation>(`/operations/${id}`)).body.state).toBe("running");
      expect((await ann.send("POST", `/operations/${id}/stop`, undefined, header)).status).toBe(200);
    });

    test("authorize has the last word, for each action", async () => {
      const { hf } = await api(target);
      const { id } = await hf.enqueue(plain, 1);
      const { send, get } = over(hf, {
        authorize: (user, permission) => user.name === "token" && permission !== "jobs:delete",
      });
      expect((await get(`/jobs/${id}`)).status).toBe(200);
      expect((await send("DELETE", `/jobs/${id}`)).status).toBe(403);
      expect((await send("POST", `/jobs/${id}/cancel`)).status).toBe(200);
    });
  });

  describe("the audit trail", () => {
    test("has a line for every change of every route: who, what, on what", async () => {
      const { hf } = await api(target, {}, { jobLog: true });
      const there = await world(hf);
      const { get, send } = over(hf, { auth: () => ({ name: "ann\u0000<b>" }) });
      const newest = async (): Promise<number> =>
        (await get<{ entries: AuditLine[] }>("/audit?limit=1")).body.entries[0]?.id ?? 0;
      const seen = new Set<string>();
      let last = await newest();
      await changes(there, { get, send }, async ({ id, audited }, { body }) => {
        if ((body as { dryRun?: boolean }).dryRun === true) return;
        const { entries } = (await get<{ entries: AuditLine[] }>("/audit?limit=20")).body;
        const fresh = entries.filter((entry) => entry.id > last);
        last = entries[0]?.id ?? last;
        seen.add(id);
        const [action, target] = audited ?? ["jobs.enqueue", (body as { id: string }).id];
        expect(fresh.length, id).toBeGreaterThan(0);
        for (const line of fresh) {
          expect([line.actor, line.action], id).toEqual(["ann\uFFFD<b>", action]);
          expect(line.target, id).toContain(target);
          expect(line.outcome, id).not.toBe("");
        }
      });
      expect([...seen].sort()).toEqual(writes.map(({ id }) => id).sort());
    }, 60_000);

    test("says what came of it, of bulk actions at start and end, and what was refused", async () => {
      const { hf } = await api(target);
      const { id } = await hf.enqueue(plain, 1);
      const { send, get } = over(hf, { auth: () => ({ name: "ann" }) });
      await send("POST", `/jobs/${id}/cancel`, undefined, header);
      await send("POST", `/jobs/${id}/cancel`, undefined, header);
      await send("POST", "/jobs/bulk", { action: "retry", filter: { state: ["cancelled"] } }, header);
      const { entries } = (await get<{ entries: AuditLine[] }>("/audit")).body;
      expect(entries.map(({ action, outcome }) => `${action} ${outcome}`)).toEqual([
        "jobs.retry done",
        "jobs.retry started",
        "jobs.cancel ended",
        "jobs.cancel cancelled",
      ]);
      expect(JSON.parse(entries[0]!.details!)).toMatchObject({ matched: 1, retried: 1 });
    });
  });

  describe("reading", () => {
    test("GET and HEAD change nothing, on any route: all tables are as they were", async () => {
      const { hf, store, send } = await api(target, {}, { jobLog: true });
      const there = await world(hf);
      const task = { action: "cancel", filter: { queue: ["slow"] }, rate: { limit: 1, per: "1h" } };
      const { id: operation } = (await send<Operation>("POST", "/jobs/bulk", task)).body;
      await send("POST", `/operations/${operation}/stop`);
      // Nothing goes on by itself: what a worker has yet to write is written when its client is closed.
      await hf.close();
      const { handler } = over(await connect(store));
      const ask = async (method: string, path: string): Promise<Response> =>
        handler(
          new Request(`http://localhost/api/v1${path}`, {
            method,
            headers: { authorization: `Bearer ${TOKEN}` },
          }),
        );
      const before = await rowsOf(store);
      const read = reads(there, operation);
      expect(new Set(read.map(({ id }) => id)).size).toBe(routes.length - writes.length);
      for (const call of read)
        for (const method of ["GET", "HEAD"]) {
          // Who took a run's history away is written down.
          if (call.id === "runFile") continue;
          const response = await ask(method, addressOf(call));
          expect(response.status, `${method} ${call.id}`).toBe(200);
          if (method === "HEAD") expect(response.body, call.id).toBeNull();
          if (call.id === "stream") await response.body?.cancel();
          else await response.text();
        }
      // Nor does the address of a change, asked for so.
      for (const { address, path } of writes)
        for (const method of ["GET", "HEAD"]) {
          const { status } = await ask(method, address);
          const readable = routes.some((route) => route.method === "GET" && route.path === path);
          const aside = routes.some((route) => route.method === "GET" && fits(route.path, address));
          expect(readable || aside ? [200, 404] : [405], `${method} ${address}`).toContain(status);
        }
      expect(await rowsOf(store)).toEqual(before);

      await ask("GET", addressOf(read.find(({ id }) => id === "runFile")!));
      const { audit, ...rest } = await rowsOf(store);
      const { audit: was, ...others } = before;
      expect([audit!.length - was!.length, rest]).toEqual([1, others]);
      expect(routeOf("runFile").permission).toBe("jobs:export");
    }, 60_000);
  });
});

/** Whether a route's path takes the address. */
function fits(path: string, address: string): boolean {
  const [parts, segments] = [path.split("/"), address.split("/")];
  return (
    parts.length === segments.length && parts.every((part, i) => part.startsWith(":") || part === segments[i])
  );
}
