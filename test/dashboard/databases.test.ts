// One dashboard over several databases: each below its own address, with its own rights, and nothing of one in another.
import { describe, expect, test } from "vitest";
import { dashboard, type DashboardHandler } from "../../src/dashboard/index.ts";
import type { About, AuditLine, JobList, Me, Operation, Overview } from "../../src/dashboard/api/contract.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import { connect, fresh } from "../support/test-clients.ts";
import { on } from "../cli/support.ts";
import { onEveryStore } from "../support/stores.ts";
import { TOKEN } from "./support.ts";

interface Told {
  readonly status: number;
  readonly body: never;
  readonly headers: Headers;
}

function asking(handler: DashboardHandler, base = "") {
  return async (
    path: string,
    init: { method?: string; body?: unknown; token?: string | null; headers?: Record<string, string> } = {},
  ): Promise<Told> => {
    const token = init.token === undefined ? TOKEN : init.token;
    const response = await handler(
      new Request(`http://localhost${base}${path}`, {
        method: init.method ?? "GET",
        redirect: "manual",
        headers: {
          ...(token === null ? {} : { authorization: `Bearer ${token}` }),
          ...(init.body === undefined ? {} : { "content-type": "application/json" }),
          ...init.headers,
        },
        ...(init.body === undefined ? {} : { body: JSON.stringify(init.body) }),
      }),
    );
    const text = await response.text();
    const body: unknown = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : text;
    return { status: response.status, body: body as never, headers: response.headers };
  };
}

onEveryStore((target) => {
  const two = async (): Promise<{ main: Holdfast; eu: Holdfast }> => {
    const { hf } = await fresh(target);
    const eu = await connect(await target.fresh());
    return { main: hf, eu };
  };

  describe("several databases", () => {
    test("[K1] each is below its own name, and lists those that one may see", async () => {
      const { main, eu } = await two();
      await main.enqueue("mail", { where: "main" });
      await eu.enqueue("mail", { where: "eu" });
      const handler = dashboard(
        { main, eu: { hf: eu, label: "Frankfurt", readOnly: true } },
        { auth: { token: TOKEN }, basePath: "/admin" },
      );
      const ask = asking(handler, "/admin");
      for (const name of ["main", "eu"]) {
        const { body } = (await ask(`/db/${name}/api/v1/jobs`)) as { body: JobList };
        expect(body.jobs.map(({ preview }) => preview)).toEqual([JSON.stringify({ where: name })]);
        const about = (await ask(`/db/${name}/api/v1/about`)).body as About;
        expect(about.database).toBe(name);
        expect(about.databases).toEqual([
          { name: "main", label: null, path: "/admin/db/main" },
          { name: "eu", label: "Frankfurt", path: "/admin/db/eu" },
        ]);
      }
      expect(((await ask("/db/main/api/v1/me")).body as Me).readOnly).toBe(false);
      expect(((await ask("/db/eu/api/v1/me")).body as Me).readOnly).toBe(true);
      for (const path of ["", "/"]) {
        const away = await ask(path, { token: null });
        expect([away.status, away.headers.get("location")]).toEqual([302, "/admin/db/main/"]);
        expect(away.headers.get("content-security-policy")).not.toBeNull();
      }
      handler.close();
    });

    test("[K1] nothing of one database is known to another: jobs, operations, audit lines, streams", async () => {
      const { main, eu } = await two();
      const { id } = await main.enqueue("mail", {});
      const handler = dashboard({ main, eu }, { auth: { token: TOKEN } });
      const ask = asking(handler);
      expect((await ask(`/db/eu/api/v1/jobs/${id}`)).status).toBe(404);
      expect((await ask(`/db/eu/api/v1/jobs/${id}`, { method: "DELETE" })).status).toBe(404);
      expect((await ask(`/db/eu/api/v1/jobs/${id}/cancel`, { method: "POST" })).status).toBe(404);
      const bulk = (await ask("/db/main/api/v1/jobs/bulk", {
        method: "POST",
        body: { action: "cancel", filter: { name: ["mail"] } },
      })) as { body: Operation; status: number };
      expect(bulk.status).toBeLessThan(300);
      expect((await ask(`/db/main/api/v1/operations/${bulk.body.id}`)).status).toBe(200);
      expect((await ask(`/db/eu/api/v1/operations/${bulk.body.id}`)).status).toBe(404);
      expect(((await ask("/db/eu/api/v1/operations")).body as { operations: object[] }).operations).toEqual(
        [],
      );
      const trail = async (name: string): Promise<AuditLine[]> =>
        ((await ask(`/db/${name}/api/v1/audit`)).body as { entries: AuditLine[] }).entries;
      expect((await trail("main")).length).toBeGreaterThan(0);
      expect(await trail("eu")).toEqual([]);
      await eu.enqueue("other", {});
      expect(((await ask("/db/eu/api/v1/overview")).body as Overview).queues[0]?.ready.count).toBe(1);
      expect(
        ((await ask("/db/main/api/v1/overview")).body as Overview).queues.map(({ name }) => name),
      ).toEqual(["default"]);
      expect(((await ask("/db/main/api/v1/overview")).body as Overview).totals.ready.count).toBe(0);
      handler.close();
    });

    test("[K1] an unknown name is 404, and who is not signed in does not even learn that", async () => {
      const { main, eu } = await two();
      const handler = dashboard({ main, eu }, { auth: { token: TOKEN } });
      const ask = asking(handler);
      for (const path of [
        "/db/nowhere/api/v1/jobs",
        "/db//api/v1/jobs",
        "/db/MAIN/api/v1/jobs",
        "/db/__proto__/api/v1/jobs",
        "/db/constructor/api/v1/jobs",
        "/db/ma%69n/api/v1/jobs",
        "/api/v1/jobs",
        "/db",
        "/dbmain/api/v1/jobs",
      ]) {
        expect([path, (await ask(path)).status]).toEqual([path, 404]);
        const unknown = await ask(path, { token: null });
        expect([path, unknown.status]).toEqual([path, 401]);
        expect(JSON.stringify(unknown.body)).not.toContain("eu");
      }
      // Out of one database into the other, by the path.
      expect((await ask("/db/eu/../main/api/v1/about")).body as About).toMatchObject({ database: "main" });
      expect((await ask("/db/eu/%2e%2e/main/api/v1/about")).status).toBeGreaterThanOrEqual(200);
      expect((await ask("/db/eu/..%2fmain/api/v1/jobs")).status).toBe(404);
      handler.close();
    });

    test("[K1] what one may do is asked of each database; in one that is only to be looked at nothing changes", async () => {
      const { main, eu } = await two();
      const calls: string[] = [];
      const handler = dashboard(
        {
          main,
          eu: { hf: eu, authorize: (_user, permission) => permission === "view" },
          dark: {
            hf: eu,
            authorize: (user, permission) => {
              calls.push(permission);
              return user.name !== "ann";
            },
          },
        },
        { auth: () => ({ name: "ann", role: "admin" }) },
      );
      const ask = asking(handler);
      expect(((await ask("/db/eu/api/v1/me")).body as Me).permissions).toEqual(["view"]);
      const about = (await ask("/db/main/api/v1/about")).body as About;
      expect(about.databases.map(({ name }) => name)).toEqual(["main", "eu"]);
      expect(calls).toEqual(["view"]);
      expect((await ask("/db/dark/api/v1/jobs")).status).toBe(403);
      // That of a bulk action follows its body.
      const retry = { action: "retry", filter: { state: ["dead"] } };
      expect((await ask("/db/eu/api/v1/jobs/bulk", { method: "POST", body: retry })).status).toBe(403);
      for (const route of routes.filter(({ write, permission }) => write === true && permission !== "view")) {
        const path = route.path.replaceAll(/:\w+/g, "x");
        const init = { method: route.method, headers: { "x-holdfast": "1" } };
        expect([path, (await ask(`/db/eu/api/v1${path}`, init)).status]).toEqual([path, 403]);
      }
      handler.close();
      const looking = dashboard(
        { main, eu: { hf: eu, readOnly: true } },
        { auth: () => ({ name: "ann", role: "admin" }) },
      );
      for (const route of routes.filter(({ write }) => write === true)) {
        const path = route.path.replaceAll(/:\w+/g, "x");
        const answer = await asking(looking)(`/db/eu/api/v1${path}`, {
          method: route.method,
          headers: { "x-holdfast": "1" },
        });
        expect([path, answer.status, (answer.body as { error: { code: string } }).error.code]).toEqual([
          path,
          403,
          "READ_ONLY",
        ]);
      }
      looking.close();
    });

    test("[K1] wrong tokens count together: several databases are not several guesses", async () => {
      const { main, eu } = await two();
      const handler = dashboard({ main, eu }, { auth: { token: TOKEN } });
      const guess = async (name: string): Promise<number> =>
        (
          await handler(
            new Request(`http://localhost/db/${name}/api/v1/about`, {
              headers: { authorization: "Bearer wrong-wrong-wrong-wrong" },
            }),
            { address: "10.0.0.9" },
          )
        ).status;
      const answers: number[] = [];
      for (let n = 0; n < 12; n += 1)
        answers.push(await guess(n % 3 === 0 ? "main" : n % 3 === 1 ? "eu" : "no"));
      expect(answers.slice(0, 9).every((status) => status === 401)).toBe(true);
      expect(answers.at(-1)).toBe(429);
      handler.close();
    });

    test("[K1] the command line serves several, by name, one of them to be looked at only", async () => {
      const first = await target.fresh();
      const second = await target.fresh();
      await (await connect(first)).enqueue("mail", { where: "first" });
      await connect(second);
      const stop = new AbortController();
      const told = Promise.withResolvers<{ url: string; address: string; databases: string[] }>();
      const schema = first.options.schema === undefined ? [] : ["--schema", first.options.schema];
      // On Postgres each fresh store is a schema of its own: one schema, twice under different names, is enough.
      const other = first.options.schema === undefined ? second.url : first.url;
      const { cli } = await import("../cli/support.ts");
      const running = cli(
        [
          "dashboard",
          "--port",
          "0",
          "--json",
          "--url",
          `a=${first.url}`,
          "--url",
          `b=${other}`,
          "--read-only-of",
          "b",
          ...schema,
        ],
        {
          signal: stop.signal,
          onOut: (out) => void (out.includes("\n") && told.resolve(JSON.parse(out) as never)),
        },
      );
      const failed = running.then((ran) => Promise.reject(new Error(ran.err)));
      const { url, address, databases } = await Promise.race([told.promise, failed]);
      expect(databases).toEqual(["a", "b"]);
      const token = /#token=(.+)$/.exec(address)?.[1] ?? "";
      const me = async (name: string): Promise<Me> =>
        (await (
          await fetch(`${url}db/${name}/api/v1/me`, { headers: { authorization: `Bearer ${token}` } })
        ).json()) as Me;
      expect([(await me("a")).readOnly, (await me("b")).readOnly]).toEqual([false, true]);
      const page = await fetch(url, { redirect: "manual" });
      expect(page.headers.get("location")).toBe("/db/a/");
      failed.catch(() => {});
      stop.abort();
      expect((await running).code).toBe(0);
      for (const wrong of [
        ["--url", "x=sqlite:a.db", "--url", "sqlite:b.db"],
        ["--url", `a=${first.url}`, "--url", `a=${first.url}`],
        ["--url", `a=${first.url}`, "--read-only-of", "b"],
      ])
        expect((await cli(["dashboard", "--port", "0", ...wrong, ...schema])).code).not.toBe(0);
      expect((await on(first)(["dashboard", "--port", "0", "--read-only-of", "x"])).code).toBe(2);
    });
  });
});

test("names and clients that cannot be are refused at once", async () => {
  const hf = await open("sqlite::memory:", { logger: silentLogger });
  const auth = { token: TOKEN };
  for (const wrong of [
    {},
    null,
    "sqlite:a.db",
    { "": hf },
    { "a/b": hf },
    { "..": hf },
    { "a b": hf },
    { [`a${"x".repeat(64)}`]: hf },
    { a: null },
    { a: {} },
    { a: { hf: {} } },
    { a: { hf, other: 1 } },
    Object.fromEntries(Array.from({ length: 101 }, (_, n) => [`d${n}`, hf])),
  ])
    expect(() => dashboard(wrong as never, { auth })).toThrow(
      expect.objectContaining({ name: "UsageError" }) as Error,
    );
  expect(() => dashboard({ a: hf }, {} as never)).toThrow(/auth/);
  expect(() => dashboard({ a: hf }, { auth, other: 1 } as never)).toThrow(/other/);
  await hf.close();
});
