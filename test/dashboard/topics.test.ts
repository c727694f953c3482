// What a live stream tells of each topic: what its route answers to the same person, and to nobody more.
import { describe, expect, test } from "vitest";
import fc from "fast-check";
import { applied, type Delta, deltaOf, type Fields } from "../../src/dashboard/live/delta.ts";
import type { DashboardHandler } from "../../src/dashboard/handler.ts";
import type { ErrorBody, JobDetail } from "../../src/dashboard/api/contract.ts";
import { addressOf, TOPICS, topicsOf } from "../../src/dashboard/live/topics.ts";
import { StoreError } from "../../src/index.ts";
import { connect } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { world } from "./every-route.ts";
import { api, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

interface Told {
  readonly event: string;
  readonly topic: string;
  readonly value?: Fields;
  readonly delta?: Delta;
  readonly status?: number;
}

const base = "http://localhost/api/v1";
const asks = (handler: DashboardHandler, topics: string, who: string): Promise<Response> =>
  handler(new Request(`${base}/stream?topics=${encodeURIComponent(topics)}`, { headers: { "x-who": who } }));

async function* told(response: Response): AsyncGenerator<Told, void> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const block = text.slice(0, end);
      text = text.slice(end + 2);
      const [event, data] = ["event", "data"].map(
        (name) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1],
      );
      if (event !== undefined && data !== undefined)
        yield { event, ...(JSON.parse(data) as Omit<Told, "event">) };
    }
  }
}

/** The first event of each topic, and the stream is left. */
async function firsts(response: Response, n: number): Promise<Map<string, Told>> {
  const first = new Map<string, Told>();
  for await (const one of told(response)) {
    if (!first.has(one.topic)) first.set(one.topic, one);
    if (first.size === n) break;
  }
  return first;
}

/** Everything that is said, without what changes from one look to the next. */
const said = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, (key, part: unknown) => (typeof part === "number" || key === "why" ? 0 : part)),
  );

const reads = ["view", "view:payload", "jobs:search", "audit:view"] as const;
const auth = (request: Request) => {
  const who = request.headers.get("x-who");
  if (who === "all") return { name: "ann", permissions: [...reads] };
  return who === "some" ? { name: "bob", permissions: ["view" as const] } : null;
};

onEveryStore((target) => {
  describe("topics", () => {
    test("[K4] each tells what its route answers to the same person: what is not theirs to see is in neither", async () => {
      const { hf } = await api(target, {}, { jobLog: true });
      const { handler } = over(hf, { auth });
      const { ids, group } = await world(hf);
      const which: Readonly<Record<string, string>> = {
        queue: "bank",
        job: ids["dead"]!,
        run: ids["done"]!,
        log: ids["done"]!,
        error: group,
        schedule: "digest",
      };
      const names = Object.entries(TOPICS).map(([name, kind]) =>
        "names" in kind ? `${name}:${which[name]}` : name,
      );
      const forbidden = ["activity", `log:${ids["done"]}`];
      for (const who of ["all", "some"]) {
        const theirs = who === "all" ? names : names.filter((name) => !forbidden.includes(name));
        const seen = await firsts(await asks(handler, theirs.join(","), who), theirs.length);
        expect([...seen.values()].map(({ event }) => event)).toEqual(theirs.map(() => "snapshot"));
        expect(JSON.stringify([...seen.values()])).not.toContain("hunter2");
        for (const topic of topicsOf(new URLSearchParams({ topics: theirs.join(",") }))) {
          const ask = async () => {
            const one = await firsts(await asks(handler, topic.name, who), 1);
            const answer = await handler(new Request(base + addressOf(topic), { headers: { "x-who": who } }));
            return [said(one.get(topic.name)?.value), said(await answer.json())];
          };
          // Workers go on meanwhile: between two looks something may have happened.
          let [stream, route] = await ask();
          for (let more = 5; more > 0 && JSON.stringify(stream) !== JSON.stringify(route); more -= 1)
            [stream, route] = await ask();
          expect([who, topic.name, stream]).toEqual([who, topic.name, route]);
        }
      }
      for (const topic of forbidden) {
        const refused = await asks(handler, `overview,${topic}`, "some");
        expect([topic, refused.status, ((await refused.json()) as ErrorBody).error.code]).toEqual([
          topic,
          403,
          "FORBIDDEN",
        ]);
      }
      expect((await asks(handler, "overview", "nobody")).status).toBe(401);
    });

    test("[K4] the site's own authorize is asked of each topic as of its route: what it is about, and its address", async () => {
      const { hf } = await api(target);
      await hf.enqueueMany([
        { job: "plain", input: 1, queue: "open" },
        { job: "plain", input: 1, queue: "secret" },
      ]);
      const [, secret] = (await hf.jobs.list()).jobs.toSorted((a, b) => (a.queue < b.queue ? -1 : 1));
      const asked: string[] = [];
      const { handler } = over(hf, {
        auth,
        authorize: (_user, _permission, { queue }, request) => {
          asked.push(`${new URL(request.url).pathname} ${queue}`);
          return queue !== "secret";
        },
      });
      const fine = await firsts(await asks(handler, "queue:open", "all"), 1);
      expect(fine.get("queue:open")?.event).toBe("snapshot");
      for (const topic of ["queue:secret", `job:${secret!.id}`, `run:${secret!.id}`])
        expect([topic, (await asks(handler, `queue:open,${topic}`, "all")).status]).toEqual([topic, 403]);
      expect(asked).toContain("/api/v1/queues/secret secret");
    });

    test("a job's topic tells its changes within a tick and without its input, stays over a blip, and says when it is deleted", async () => {
      const { hf, store, get, handler } = await api(target, { auth });
      const large = "x".repeat(200_000);
      const { id } = await hf.enqueue("plain", { large });
      const other = await connect(store);
      const stream = told(await asks(handler, `job:${id}`, "all"));
      const next = async (): Promise<Told> => (await stream.next()).value as Told;
      const first = await next();
      const who = { "x-who": "all" };
      const whole = (await get<JobDetail>(`/jobs/${id}`, who)).body;
      expect(whole.input).toContain(large);
      expect(first.value).toMatchObject({ state: "ready", input: null, inputTag: whole.inputTag });
      await other.jobs.pause(id);
      let change = await next();
      while (change.delta?.set?.["paused"] !== true) change = await next();
      expect([change.event, JSON.stringify(change).includes("xxx")]).toEqual(["change", false]);

      const { insight } = operatorOf(hf).store;
      const real = insight.inspect.bind(insight);
      insight.inspect = () => Promise.reject(new StoreError("CONNECTION_LOST", "gone"));
      let event = await next();
      while (event.event !== "trouble") event = await next();
      insight.inspect = real;
      while (event.event !== "change") event = await next();
      await other.jobs.delete(id);
      while (event.event !== "refused") event = await next();
      expect(event.status).toBe(404);
      await stream.return();
    });

    test("a job comes without its large parts where these are not asked for; their tags change with them and are not for who may not see them", async () => {
      const { hf, get } = await api(target, { auth });
      const { id } = await hf.enqueue("plain", { n: 1 });
      const as = async (who: string, query = "") =>
        (await get<JobDetail>(`/jobs/${id}${query}`, { "x-who": who })).body;
      const bare = await as("all", "?without=input,output");
      const whole = await as("all");
      expect([bare.input, bare.output, bare.outputTag]).toEqual([null, null, null]);
      expect([whole.input, bare.inputTag]).toEqual(['{\n  "n": 1\n}', whole.inputTag]);
      expect((await as("some")).inputTag).toBeNull();
      const [lease] = await hf.lease({ limit: 1, for: "1m" });
      await lease!.done({ large: true });
      const ended = await as("all", "?without=input,output");
      expect([ended.output, ended.inputTag]).toEqual([null, whole.inputTag]);
      expect(ended.outputTag).toEqual(expect.any(String));
      const output = await as("all", "?without=input");
      expect([output.input, output.output]).toEqual([null, '{\n  "large": true\n}']);
      expect((await get(`/jobs/${id}?without=name`, { "x-who": "all" })).status).toBe(400);
    });

    test("[K4] a list's topic has its filter: it tells of what matches, and a search that is not theirs is refused", async () => {
      const { hf, handler } = await api(target, { auth });
      const made = await hf.enqueueMany(
        ["ann", "bob", "ann"].map((user, n) => ({
          job: "plain",
          input: { user },
          queue: n === 2 ? "b" : "a",
        })),
      );
      const ids = made.map(({ id }) => id);
      const topic = "jobs?queue=a%2Cc&search=ann&limit=100";
      const stream = told(await asks(handler, topic, "all"));
      const first = (await stream.next()).value as Told;
      const listed = (one: Told) =>
        ((one.value?.["jobs"] ?? []) as { id: string }[]).map(({ id }) => ids.indexOf(id));
      expect([first.event, first.topic, listed(first)]).toEqual(["snapshot", topic, [0]]);
      await hf.jobs.cancel(ids[0]!);
      let next = (await stream.next()).value as Told;
      while (next.delta?.lists?.["jobs"] === undefined) next = (await stream.next()).value as Told;
      expect(next.delta.lists["jobs"].items).toMatchObject([{ id: ids[0], state: "cancelled" }]);
      await stream.return();
      const refused = await firsts(await asks(handler, topic, "some"), 1);
      expect(refused.get(topic)).toMatchObject({ event: "refused", status: 403 });
    });

    test("[K1] what is no topic, too many and too long is refused with its field", async () => {
      const { handler } = await api(target, { auth });
      const many = Array.from({ length: 65 }, (_, n) => `queue:q${n}`).join(",");
      for (const topics of [
        "nonsense",
        "constructor",
        "queue",
        "queue:",
        "queue:a b",
        "queue:../me",
        "overview:x",
        "overview?limit=1",
        "jobs?nonsense=1",
        `jobs?search=${"x".repeat(1_001)}`,
        `job:${"0".repeat(200)}`,
        many,
      ]) {
        const answer = await asks(handler, topics, "all");
        const { error } = (await answer.json()) as ErrorBody;
        expect([topics.slice(0, 40), answer.status, error.code, error.field]).toEqual([
          topics.slice(0, 40),
          400,
          "BAD_REQUEST",
          topics.startsWith("jobs?nonsense") ? "nonsense" : "topics",
        ]);
      }
    });
  });
});

test("what has changed, put into what was, is what there is", () => {
  const thing = fc.record({ name: fc.string({ maxLength: 2 }), n: fc.integer({ max: 3, min: 0 }) });
  const value = fc.dictionary(
    fc.constantFrom("a", "b", "c", "__proto__"),
    fc.oneof(
      fc.integer(),
      fc.constant(null),
      fc.array(thing, { maxLength: 5 }),
      fc.array(fc.integer()),
      thing,
    ),
  );
  const plain = (given: object): Fields => JSON.parse(JSON.stringify(given)) as Fields;
  fc.assert(
    fc.property(value, value, (a, b) => {
      const [before, after] = [plain(a), plain(b)];
      const delta = plain(deltaOf(before, after)) as Delta;
      expect(applied(before, delta)).toEqual(after);
      expect(deltaOf(after, after)).toEqual({});
    }),
  );
  const queues = [1, 2, 3].map((n) => ({ name: `q${n}`, ready: n }));
  const moved = [queues[2]!, { name: "q1", ready: 9 }];
  expect(deltaOf({ queues }, { queues: moved })).toEqual({
    lists: { queues: { keys: ["q3", "q1"], items: [{ name: "q1", ready: 9 }] } },
  });
});
