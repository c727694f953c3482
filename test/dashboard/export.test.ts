// Exports: every job that matches, page by page, redacted, for those who may, and safe to open in a spreadsheet.
import { describe, expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { quoted } from "../../src/dashboard/routes/export.ts";
import { FakeClock } from "../../src/testing/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, type Api, over, TOKEN } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

const mail = defineJob({ name: "mail", queue: "mail", run: async (_input: unknown) => {} });
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

function ask({ handler }: Pick<Api, "handler">, query: string): Promise<Response> {
  const url = `http://localhost/api/v1/jobs/export?${query}`;
  return handler(new Request(url, { headers: { authorization: `Bearer ${TOKEN}` } }));
}

const byHeader = (request: Request): { name: string } => ({ name: request.headers.get("x-user") ?? "" });

function askAs(handler: Api["handler"], user: string, method = "GET"): Promise<Response> {
  return handler(new Request("http://localhost/api/v1/jobs/export", { method, headers: { "x-user": user } }));
}

async function lines(from: Pick<Api, "handler">, query: string): Promise<Record<string, unknown>[]> {
  const text = await (await ask(from, query)).text();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

onEveryStore((target) => {
  describe("an export", () => {
    test("[K2] has every job that matches once, newest first, over many pages, and nothing that came later", async () => {
      const { hf, handler } = await api(target);
      const ids = (
        await hf.enqueueMany(
          Array.from({ length: 1_230 }, (_, n) => ({ job: n < 1_200 ? mail : plain, input: { n } })),
        )
      ).map(({ id }) => id);
      const response = await ask({ handler }, "queue=mail");
      expect(response.headers.get("content-type")).toContain("application/x-ndjson");
      expect(response.headers.get("content-disposition")).toBe('attachment; filename="jobs.ndjson"');
      const reader = (response.body as ReadableStream<Uint8Array>).getReader();
      let text = new TextDecoder().decode((await reader.read()).value);
      expect(text.split("\n").length).toBeLessThan(600);
      await hf.enqueue(mail, "later");
      for (let read = await reader.read(); !read.done; read = await reader.read())
        text += new TextDecoder().decode(read.value);
      const found = text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as { id: string; input: { n: number } });
      expect(found.map(({ id }) => id)).toEqual(ids.slice(0, 1_200).reverse());
      expect(found[0]?.input).toEqual({ n: 1_199 });
      expect(await lines({ handler }, "state=dead")).toEqual([]);
    });

    test("[K2] has large inputs whole, though a list leaves them out, and in pieces", async () => {
      const { hf, handler } = await api(target);
      const large = "x".repeat(200_000);
      await hf.enqueueMany(Array.from({ length: 8 }, (_, n) => ({ job: plain, input: { n, large } })));
      const response = await ask({ handler }, "");
      let longest = 0;
      let text = "";
      for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
        longest = Math.max(longest, chunk.byteLength);
        text += new TextDecoder().decode(chunk);
      }
      expect(longest).toBeLessThan(600_000);
      const found = text.trim().split("\n");
      expect(found).toHaveLength(8);
      expect(JSON.parse(found[7]!)).toMatchObject({ input: { n: 0, large } });
      expect(Object.keys(JSON.parse(found[0]!) as object)).not.toContain("errors");
    });

    test("[K2] as CSV it has a head, instants as dates, and cells that no spreadsheet runs", async () => {
      const { hf, handler } = await api(target);
      await hf.enqueue(plain, '=HYPERLINK("http://evil.example","x")', {
        lane: "+1",
        context: '@SUM(A1), "x"\nb',
      });
      await hf.enqueue(plain, { a: 1 }, { lane: "-2+3", context: "plain" });
      const response = await ask({ handler }, "format=csv");
      expect(response.headers.get("content-type")).toContain("text/csv");
      const text = await response.text();
      expect(text.split("\r\n")[0]).toBe(
        "id,name,queue,state,priority,attempt,maxAttempts,lane,key,context,createdAt,runAt,startedAt,endedAt,error,failureGroup,inputBytes,input",
      );
      expect(text).toContain(`,"'@SUM(A1), ""x""\nb",`);
      expect(text).toContain(`,"'+1",`);
      expect(text).toContain(`,"""=HYPERLINK(`);
      expect(text).toContain(`,"'-2+3",`);
      expect(text).toContain('"{""a"":1}"');
      expect(text).toMatch(/,\d{4}-\d\d-\d\dT[\d:.]+Z,/);
      expect(text).not.toMatch(/,"?[=+@-]/);
    });

    test("[K2] shows no secret, and no payload to whoever may not see any", async () => {
      const { hf, handler } = await api(target);
      await hf.enqueue(plain, { user: "ann", password: "hunter2", n: 12 }, { context: "token=hunter2" });
      const [lease] = await hf.lease({ limit: 1, for: "1m" });
      await lease!.dead("no user ann@example.org, password=hunter2");
      for (const format of ["ndjson", "csv"]) {
        const text = await (await ask({ handler }, `format=${format}`)).text();
        expect(text).not.toContain("hunter2");
        expect(text).toContain("[redacted]");
        expect(text).toContain("ann");
        const auth = () => ({ name: "eve", permissions: ["view", "jobs:export"] as const });
        const blind = await (await ask(over(hf, { auth }), `format=${format}`)).text();
        expect(blind).not.toMatch(/ann|hunter2/);
        expect(blind).toContain("plain");
        expect((await ask(over(hf, { auth }), `format=${format}&search=ann`)).status).toBe(403);
        expect((await ask(over(hf, { auth: () => ({ name: "eve", role: "viewer" }) }), "")).status).toBe(403);
      }
      expect((await ask(over(hf, { readOnly: true }), "")).status).toBe(200);
    });

    test("bad parameters are refused before anything is sent", async () => {
      const { handler } = await api(target);
      expect((await ask({ handler }, "format=xlsx")).status).toBe(400);
      expect((await ask({ handler }, "limit=5")).status).toBe(400);
    });

    test("[O18] two for each user, four in all; a reader that leaves gives its place back", async () => {
      const { hf, handler } = await api(target, { auth: byHeader });
      await hf.enqueueMany(Array.from({ length: 1_600 }, (_, n) => ({ job: plain, input: n })));
      const readers = [await askAs(handler, "ann"), await askAs(handler, "ann")];
      expect((await askAs(handler, "ann")).status).toBe(429);
      readers.push(await askAs(handler, "ben"), await askAs(handler, "ben"));
      expect((await askAs(handler, "cleo")).status).toBe(429);
      await readers[0]!.body?.cancel();
      expect((await (await askAs(handler, "cleo")).text()).trim().split("\n")).toHaveLength(1_600);
      for (const reader of readers.slice(1)) await reader.text();
      for (let n = 0; n < 5; n += 1) expect((await askAs(handler, "ann", "HEAD")).status).toBe(200);
      expect((await askAs(handler, "ann")).status).toBe(200);
    });

    test("[O18] an export that nobody reads for 30 s ends and gives its place back", async () => {
      const clock = new FakeClock();
      const { hf, handler } = await api(target, { auth: byHeader }, { clock });
      await hf.enqueueMany(Array.from({ length: 1_600 }, (_, n) => ({ job: plain, input: n })));
      const stalled = [await askAs(handler, "ann"), await askAs(handler, "ann")];
      expect((await askAs(handler, "ann")).status).toBe(429);
      await clock.advance(30_000);
      for (const reader of stalled) await expect(reader.text()).rejects.toThrow("30 seconds");
      expect((await askAs(handler, "ann")).status).toBe(200);
    });

    test("a database that goes away breaks the answer off: half a file is never a whole one", async () => {
      const { hf, handler } = await api(target);
      await hf.enqueueMany(Array.from({ length: 1_600 }, (_, n) => ({ job: plain, input: n })));
      const { insight } = operatorOf(hf).store;
      const real = insight.browse.bind(insight);
      let pages = 0;
      insight.browse = (...args) => {
        pages += 1;
        return pages > 1 ? Promise.reject(new Error("gone")) : real(...args);
      };
      const response = await ask({ handler }, "");
      await expect(response.text()).rejects.toThrow();
      insight.browse = () => Promise.reject(new Error("gone"));
      expect((await ask({ handler }, "")).status).toBe(500);
      insight.browse = real;
      for (let n = 0; n < 5; n += 1)
        expect((await (await ask({ handler }, "")).text()).length).toBeGreaterThan(0);
    });
  });
});

test("cells: what begins a formula is held by an apostrophe, the rest stays as it is", () => {
  for (const text of ["=1+1", "+1", "-1", "@a", "\t=1", "\r=1", " =1", "＝1"])
    expect(quoted(text), JSON.stringify(text)).toBe(`"'${text}"`);
  expect(quoted("mail")).toBe("mail");
  expect(quoted('a,"b"')).toBe('"a,""b"""');
  expect(quoted("a\nb")).toBe('"a\nb"');
  expect(quoted("a=b")).toBe("a=b");
});
