// A user who may see one queue alone: no GET route, and no topic of the stream, tells anything of another queue.
import { describe, expect, onTestFinished, test } from "vitest";
import type { FailureGroups, WorkflowHistory, JobDetail, Load } from "../../src/dashboard/api/contract.ts";
import type { Authorize } from "../../src/dashboard/index.ts";
import { routes } from "../../src/dashboard/routes/table.ts";
import { TOPICS } from "../../src/dashboard/live/topics.ts";
import { Dead, defineJob, type Holdfast } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { addressOf, type Call } from "./every-route.ts";
import { type Api, api, over } from "./support.ts";
import { operatorOf } from "../../src/operate/operator.ts";

/** Everything of the other queue has it in its text. Long, because answers have random letters too: tags of inputs, for example. */
const MARK = "zqxwjv";
const theirs = `theirs-${MARK}`;
const onlyMine: Authorize = (_user, _permission, { type, queue }) => type === "page" || queue === "mine";

interface Site {
  readonly hf: Holdfast;
  readonly eve: Pick<Api, "get" | "send" | "handler">;
  readonly admin: Pick<Api, "get" | "send">;
  /** Jobs of the own queue. */
  readonly own: Readonly<Record<"dead" | "parent" | "after" | "batched" | "workflow" | "ended", string>>;
  /** Those of the other queue, of which not even the id may be told. */
  readonly hidden: readonly string[];
  /** Those of the other queue that a job of the own one called, enqueued or waits for: their ids are its own data. */
  readonly related: readonly string[];
  readonly group: string;
  /** Of bulk actions on the own queue, and on the other one. */
  readonly operations: Readonly<Record<"mine" | "theirs", string>>;
}

async function site(hf: Holdfast): Promise<Site> {
  const admin = over(hf, { auth: () => ({ name: "ann" }) });
  const eve = over(hf, { auth: () => ({ name: "eve" }), authorize: onlyMine });
  const { store } = operatorOf(hf);
  const secret = { password: MARK, note: MARK };

  // One kind in both queues, which fails with one fingerprint, newest in the other.
  const die = async (queue: string, reason: string): Promise<string> => {
    const { id } = await hf.enqueue("shared", queue === "mine" ? 1 : secret, { queue });
    const [lease] = await hf.lease({ queues: [queue], names: ["shared"], limit: 1, for: "1m" });
    await lease!.dead(reason);
    return id;
  };
  const dead = await die("mine", 'the bank declined "ann"');
  const deadThere = await die(theirs, `the bank declined "${MARK}"`);
  const { group } = (await hf.errors.list())[0]!;
  const now = await store.now();
  const minute = now - (now % 60_000);
  const failed = (queue: string, version: number, at: number) => ({
    group,
    at,
    queue,
    version,
    worker: `w-${MARK}`,
    n: 1,
  });
  await store.failures.put(
    [
      {
        group,
        name: "shared",
        firstAt: minute - 7_200_000,
        lastAt: minute + 1,
        sample: deadThere,
        message: JSON.stringify(`the bank declined "${MARK}"`),
      },
    ],
    [failed("mine", 1, minute - 60_000), failed(theirs, 7, minute - 7_200_000), failed(theirs, 7, minute)],
  );
  await hf.errors.set(group, { note: `seen by ${MARK}`, link: `https://example.org/${MARK}` });

  // A workflow that ended in the other queue only, and one that waits here; a parent here with children there.
  const workflow = defineJob({
    name: "workflow",
    run: async (step: string, ctx) => {
      await ctx.step(step, async () => 1);
      if (step === "own") await ctx.waitFor("go", { key: "workflow" });
    },
  });
  const child = defineJob({
    name: "child",
    queue: theirs,
    run: async (_input: unknown) => {
      throw new Dead(`the child failed: ${MARK}`);
    },
  });
  const left = defineJob({ name: `left-${MARK}`, queue: theirs, run: async (_input: unknown) => {} });
  const parent = defineJob({
    name: "parent",
    queue: "mine",
    run: async (_input: unknown, ctx) => {
      await ctx.call(child, secret).catch(() => {});
      await ctx.step("tell", () => ctx.enqueue(left, secret));
      await ctx.waitFor("go", { key: "parent" });
    },
  });
  const worker = hf.work([workflow, child, parent], { queues: { mine: 3, [theirs]: 3 }, name: "w" });
  onTestFinished(() => worker.stop());
  const { id: ended } = await hf.enqueue(workflow, `step-${MARK}`, { queue: theirs });
  const { id: waits } = await hf.enqueue(workflow, "own", { queue: "mine" });
  const { id: parentId } = await hf.enqueue(parent, 1);
  const until = async (is: () => Promise<boolean>): Promise<void> => {
    while (!(await is())) await new Promise((resolve) => setTimeout(resolve, 5));
  };
  await until(async () => (await hf.jobs.get(ended))?.state === "done");
  for (const id of [waits, parentId]) await until(async () => (await hf.jobs.get(id))?.waitsFor === "signal");

  // A job here waits for one there that is dead; a batch here is followed by a job there.
  const { id: after } = await hf.enqueue("plain", 1, { queue: "mine", after: [deadThere], onDead: "wait" });
  const { jobs: batch, then } = await hf.batch([{ job: "plain", input: 1, queue: "mine", delay: "1h" }], {
    then: { job: `then-${MARK}`, input: secret, queue: theirs },
  });

  // A schedule that made jobs there before it was moved here.
  const nightly = { name: "nightly", every: "1h", input: 1 } as const;
  await hf.schedules.put({ ...nightly, job: "plain", queue: theirs });
  const { id: firedThere } = await hf.schedules.trigger("nightly");
  await hf.schedules.put({ ...nightly, job: "plain", queue: "mine" });
  await hf.schedules.trigger("nightly");
  await hf.schedules.put({
    name: `sweep-${MARK}`,
    every: "1h",
    job: `plain-${MARK}`,
    input: secret,
    queue: theirs,
  });

  // Limits, holds and what was done to the other queue.
  await hf.lanes.set(theirs, `lane-${MARK}`, { concurrency: 1 });
  await hf.enqueueMany(
    [1, 2].map(() => ({ job: `plain-${MARK}`, input: secret, queue: theirs, lane: `lane-${MARK}` })),
  );
  await hf.budgets.set(`budget-${MARK}`, { limit: 1, per: "1m" });
  await hf.holds.set(`hold-${MARK}`, { queues: [theirs], reason: MARK });
  await hf.queues.set(theirs, { concurrency: 3 }, { for: "1h" });
  await admin.send("POST", `/queues/${theirs}/pause`, undefined, { "x-holdfast": "1" });
  const operate = async (queue: string): Promise<string> => {
    const task = { action: "run-now", filter: { queue: [queue] }, rate: { limit: 1, per: "1h" } };
    return (await admin.send<{ id: string }>("POST", "/jobs/bulk", task, { "x-holdfast": "1" })).body.id;
  };
  await store.series.putGauges([
    { minute, source: "queues", name: "ready", value: 77 },
    { minute, source: "queue:mine", name: "ready", value: 3 },
    { minute, source: `queue:${theirs}`, name: "ready", value: 74 },
  ]);
  const elsewhere = (await hf.jobs.list({ queue: theirs, limit: 100 })).jobs;
  const related = elsewhere.filter(({ name }) => name === "child" || name === left.name).map(({ id }) => id);
  return {
    hf,
    eve,
    admin,
    group,
    own: { dead, parent: parentId, after, batched: batch[0].id, workflow: waits, ended },
    related: [...related, deadThere],
    hidden: [...new Set([...elsewhere.map(({ id }) => id), then!.id, firedThere])].filter(
      (id) => ![...related, deadThere].includes(id),
    ),
    operations: { mine: await operate("mine"), theirs: await operate(theirs) },
  };
}

/** Requests to every GET route: those that are about the own queue, and those that are about more. */
function requests({ own, group, operations, hidden, related }: Site): readonly Call[] {
  const range = `from=${Date.now() - 3_600_000}&to=${Date.now() + 60_000}`;
  const filters = [
    "queue=mine",
    "queue=mine&name=shared",
    `queue=${theirs}`,
    `queue=mine&queue=${theirs}`,
    "",
  ];
  const filtered = (id: string, more = ""): Call[] =>
    [...filters, "queue=&queue=mine", "queue="].map((query) => ({ id, query: `${query}${more}` }));
  const jobs = [...Object.values(own), hidden[0]!, related[0]!];
  const ofJob = ["getJob", "jobHistory", "runFile", "jobLog", "checkInput"];
  return [
    ...routes.filter(({ method, path }) => method === "GET" && !path.includes(":")).map(({ id }) => ({ id })),
    ...["listJobs", "countJobs", "jobFacets", "listRuns", "exportJobs", "failureGroups", "latency"].flatMap(
      (id) => filtered(id),
    ),
    ...["series", "load"].flatMap((id) => filtered(id, `&${range}`)),
    ...filtered("listLanes"),
    ...["listJobs", "countJobs", "jobFacets", "exportJobs"].flatMap((id) => [
      { id, query: `queue=mine&workflow=${own.parent}` },
      { id, query: `workflow=${own.parent}` },
      { id, query: `queue=mine&search=${MARK}` },
      { id, query: `queue=mine&failureGroup=${group}` },
      { id, query: `ids=${own.dead}` },
      { id, query: `ids=${own.dead},${hidden[0]}` },
    ]),
    { id: "jobsMatching", query: `id=${hidden[0]!.slice(-12)}` },
    ...jobs.flatMap((job) => ofJob.map((id) => ({ id, path: { id: job } }))),
    ...["mine", theirs].map((name) => ({ id: "getQueue", path: { name } })),
    ...["shared", "plain", "workflow", `left-${MARK}`].map((name) => ({
      id: "getDefinition",
      path: { name },
    })),
    ...["failureGroup"].map((id) => ({ id, path: { group } })),
    ...[operations.mine, operations.theirs].map((id) => ({ id: "getOperation", path: { id } })),
    ...["previewSchedule", "scheduleHistory"].flatMap((id) =>
      ["nightly", `sweep-${MARK}`].map((name) => ({ id, path: { name } })),
    ),
  ];
}

/** Markers of the other queue in a text; refusals quote nothing. */
function leaksIn(text: string, { hidden }: Site): string[] {
  return [MARK, ...hidden].filter((mark) => text.includes(mark));
}

async function snapshots(handler: Api["handler"], topic: string): Promise<string> {
  const address = `http://localhost/api/v1/stream?topics=${encodeURIComponent(topic)}`;
  const response = await handler(new Request(address));
  if (response.status !== 200) return `refused ${response.status}`;
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    if (/^event: .*\n(?:.*\n)*?\n/m.test(text)) break;
  }
  return text;
}

onEveryStore((target) => {
  describe("a user who may see one queue alone", () => {
    test("[O18] no GET route and no topic tells this user anything of another queue", async () => {
      const there = await site((await api(target, {}, { jobLog: true })).hf);
      const { eve, admin } = there;
      const found: unknown[] = [];
      const allowed = new Set<string>();
      const seen = new Set<string>();
      for (const call of requests(there)) {
        // The stream is read below.
        seen.add(call.id);
        if (call.id === "stream") continue;
        const address = addressOf(call);
        const response = await eve.handler(new Request(`http://localhost/api/v1${address}`));
        const text = await response.text();
        if (response.status < 300) allowed.add(call.id);
        else if (!text.includes('"error"')) found.push([address, response.status]);
        // A refusal may repeat what was asked for, and no more.
        const leaks = response.status < 300 ? leaksIn(text, there) : [];
        if (leaks.length > 0) found.push([address, leaks, text.slice(0, 2_000)]);
      }
      expect(found).toEqual([]);
      expect([...seen].sort()).toEqual(
        routes
          .filter(({ method }) => method === "GET")
          .map(({ id }) => id)
          .sort(),
      );
      // These tell of the own queue; else the rule would be kept by telling nothing.
      for (const id of [
        "getJob",
        "jobHistory",
        "failureGroups",
        "load",
        "series",
        "scheduleHistory",
        "getQueue",
      ])
        expect([...allowed], id).toContain(id);

      const topics = Object.entries(TOPICS).flatMap(([word, kind]) => {
        const named: Readonly<Record<string, readonly string[]>> = {
          id: Object.values(there.own),
          group: [there.group],
          name: word === "schedule" ? ["nightly"] : ["mine", theirs],
        };
        if ("names" in kind) return named[kind.names]!.map((which) => `${word}:${which}`);
        return word === "jobs" ? ["jobs", "jobs?queue=mine", `jobs?queue=${theirs}`] : [word];
      });
      const told = await Promise.all(
        topics.map(async (topic) => [topic, await snapshots(eve.handler, topic)]),
      );
      expect(told.filter(([topic, text]) => leaksIn(text!.replaceAll(topic!, ""), there).length > 0)).toEqual(
        [],
      );
      expect(told.filter(([, text]) => text!.includes("event: snapshot")).length).toBeGreaterThan(10);
      // Who may see all of it sees the marks: the rule is not kept by an empty site.
      for (const path of [
        `/jobs/${there.own.parent}/history`,
        "/errors?queue=mine",
        "/schedules/nightly/runs",
      ])
        expect((await admin.get(path)).status, path).toBe(200);
      expect(JSON.stringify((await admin.get(`/jobs/${there.own.parent}/history`)).body)).toContain(MARK);
    }, 60_000);

    test("[O18] failures of one's own queue come without the message, sample, queues and times of the others", async () => {
      const { eve, admin, own } = await site((await api(target)).hf);
      const [group] = (await eve.get<FailureGroups>("/errors?queue=mine&name=shared")).body.groups;
      expect(group).toMatchObject({
        queue: "mine",
        queues: ["mine"],
        versions: [1],
        dead: 1,
        sample: own.dead,
        message: 'the bank declined "ann"',
        note: null,
        link: null,
      });
      const [all] = (await admin.get<FailureGroups>("/errors?queue=mine&name=shared")).body.groups;
      expect(all!.queues).toEqual(expect.arrayContaining(["mine", theirs]));
      expect(all!.note).toContain(MARK);
      expect(group!.firstAt!).toBeGreaterThan(all!.firstAt!);
    });

    test("[O18] why a job waits for one of another queue is told without the state of that one", async () => {
      const { eve, admin, own } = await site((await api(target)).hf);
      const why = async (of: Pick<Api, "get">) =>
        (await of.get<JobDetail>(`/jobs/${own.after}`)).body.why.text;
      expect(await why(admin)).toContain("(dead: ");
      expect(await why(eve)).toBe("The job waits for 1 job.");
    });

    test("[O18] the ready jobs of all other queues are counted for who may see these alone", async () => {
      const { eve, admin } = await site((await api(target)).hf);
      const range = `from=${Date.now() - 600_000}&to=${Date.now() + 60_000}`;
      const load = async (of: Pick<Api, "get">) =>
        (await of.get<Load>(`/series/load?queue=mine&${range}`)).body;
      expect((await load(admin)).other).toContain(74);
      const seen = await load(eve);
      expect(seen.other.every((value) => value === null)).toBe(true);
      expect(seen.queues[0]!.ready).toContain(3);
    });

    test("[O18] a child's name, state and error text are not visible across queues, nor what its call came to", async () => {
      const { hf, eve, admin, own } = await site((await api(target)).hf);
      const history = async (of: Pick<Api, "get">) =>
        (await of.get<WorkflowHistory>(`/jobs/${own.parent}/history`)).body;
      const all = await history(admin);
      expect(all.children.map(({ error }) => error).join()).toContain(MARK);
      expect(all.children.every(({ hidden }) => !hidden)).toBe(true);
      const seen = await history(eve);
      expect(seen.children.map(({ id }) => id).sort()).toEqual(all.children.map(({ id }) => id).sort());
      for (const child of seen.children)
        expect(child).toMatchObject({ name: null, state: null, error: null, hidden: true });
      expect(seen.steps.find(({ kind }) => kind === "call")!.error ?? "").not.toContain(MARK);
      // With the queue of the child in view, but not its payloads, its name is told and its error is not.
      const half = over(hf, {
        auth: () => ({ name: "bob" }),
        authorize: (_user, permission, { queue }) => permission === "view" || queue === "mine",
      });
      const seenHalf = await history(half);
      expect(seenHalf.children.map(({ name }) => name)).toContain("child");
      expect(JSON.stringify(seenHalf.children.map(({ error }) => error))).not.toContain(MARK);
    });
  });
});
