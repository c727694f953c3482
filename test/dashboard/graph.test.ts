// A workflow's graph, as it is put together: what came after what, fan-outs, runs inside of runs.
import { describe, expect, test } from "vitest";
import type { WorkflowHistory, WorkflowNode } from "../../src/dashboard/api/contract.ts";
import { stepsBefore, type OrderedStep } from "../../src/dashboard/api/step-order.ts";
import { stemOf } from "../../src/workflows/alike-steps.ts";
import { countsOf, fansOf } from "../../ui/src/workflows/graph-fan-outs.ts";
import { type Box, type Opened, type Picture, pictureOf } from "../../ui/src/workflows/graph-picture.ts";
import { layout } from "../../ui/src/workflows/graph-layout.ts";

type Graph = WorkflowHistory["graph"];

const node = (label: string, given: Partial<WorkflowNode> = {}): WorkflowNode => ({
  id: label,
  label,
  kind: "step",
  state: "done",
  jobId: null,
  seq: null,
  ...given,
});
const root = node("run", { kind: "job" });
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/** run → list → part-0 … part-n → join */
function fan(count: number, edited: (part: WorkflowNode, n: number) => WorkflowNode = (part) => part): Graph {
  const parts = numbers(count).map((n) => edited(node(`part-${n}`), n));
  return {
    nodes: [root, node("list"), ...parts, node("join")],
    edges: [
      { from: "run", to: "list" },
      ...parts.flatMap(({ id }) => [
        { from: "list", to: id },
        { from: id, to: "join" },
      ]),
    ],
    cut: false,
  };
}

function chain(names: readonly string[]): Graph {
  const nodes = [root, ...names.map((name) => node(name))];
  return { nodes, edges: nodes.slice(1).map(({ id }, i) => ({ from: nodes[i]!.id, to: id })), cut: false };
}

const closed: Opened = { fans: new Set(), runs: new Map() };
const labels = ({ nodes }: Picture): string[] => nodes.map(({ node: { label } }) => label);
const fansIn = (graph: Graph): string[] =>
  fansOf(graph.nodes, graph.edges).map(({ label, members }) => `${label} × ${members.length}`);

test("names that differ in a number, or behind a colon, are alike", () => {
  for (const name of ["resize", "resize-3", "resize:cat.jpg", "resize#2", "resize-3f9a", "resize/12"])
    expect(stemOf(name, "step"), name).toBe("resize");
  expect(stemOf("s12", "step")).toBe(stemOf("s3", "step"));
  expect(stemOf("call:mail#3", "call")).toBe("call:mail");
  expect(stemOf("call:mail", "call")).not.toBe(stemOf("call:print", "call"));
  expect(stemOf("pack", "step")).not.toBe(stemOf("pick", "step"));
});

describe("what came after what", () => {
  const step = (name: string, given: number, givenOrder: number | null): OrderedStep => ({
    name,
    kind: "step",
    given,
    givenOrder,
  });

  test("steps that are asked for together are side by side, whichever is over first, and what is asked for then comes after all", () => {
    const parts = [step("p-0", 1, 3), step("p-1", 1, 1), step("p-2", 1, 2), step("p-3", 1, null)];
    expect(stepsBefore([step("list", 0, 0), ...parts])).toEqual([[], [0], [0], [0], [0]]);
    expect(stepsBefore([step("list", 0, 0), ...parts, step("join", 5, 4)]).at(-1)).toEqual([1, 2, 3, 4]);
  });

  test("two fan-outs of steps that are alike are two: one that was asked for when the first was over is no part of it", () => {
    const parts = [step("p0", 0, 0), step("p1", 0, 1), step("p2", 2, 2), step("p3", 2, 3)];
    expect(stepsBefore(parts)).toEqual([[], [], [0, 1], [0, 1]]);
  });

  test("of a few at a time, each asked for when one is over, all are one fan-out", () => {
    const pool = [step("p0", 0, 0), step("p1", 0, 1), step("p2", 1, 2), step("p3", 2, 3)];
    expect(stepsBefore([...pool, step("join", 4, 4)])).toEqual([[], [], [], [], [0, 1, 2, 3]]);
  });

  test("steps that are alike and one after another are a chain, also those that waited alone", () => {
    expect(stepsBefore([step("p0", 0, 0), step("p1", 1, null), step("p2", 2, 1)])).toEqual([[], [0], [1]]);
  });

  test("what is not over comes before nothing", () => {
    const steps = [step("wait", 0, null), step("a", 0, 0), step("b", 1, 1)];
    expect(stepsBefore(steps)).toEqual([[], [], [1]]);
  });

  test("of a history that is cut, what is not there is passed over", () => {
    const steps = [step("p7", 7, 7), step("p8", 8, 8), step("late", 30, 30)];
    expect(stepsBefore(steps)).toEqual([[], [0], [1]]);
  });

  test("of a pipeline the second fan-out comes after the first", () => {
    const steps = [step("get-0", 0, 0), step("get-1", 0, 1), step("put-0", 1, 2), step("put-1", 2, 3)];
    expect(stepsBefore([...steps, step("join", 4, 4)])).toEqual([[], [], [0, 1], [0, 1], [2, 3]]);
    // put-0 was over before put-1 was asked for: two of their kind, but not side by side.
    const slow = [step("get-0", 0, 0), step("get-1", 0, 2), step("put-0", 1, 1), step("put-1", 3, 3)];
    expect(stepsBefore(slow)).toEqual([[], [], [], [2, 0, 1]]);
  });

  test("two large fan-outs are not joined all to all, and each step to some", () => {
    const steps = [
      ...numbers(500).map((n) => step(`a-${n}`, 0, n)),
      ...numbers(400).map((n) => step(`b-${n}`, 500, 500 + n)),
    ];
    const before = stepsBefore(steps);
    expect(before.flat().length).toBe(500);
    expect(new Set(before.flat()).size).toBe(500);
    for (const those of before.slice(500)) expect(those.length).toBeGreaterThan(0);
  });
});

describe("fan-outs", () => {
  test("from five on, alike and side by side", () => {
    expect(fansIn(fan(4))).toEqual([]);
    expect(fansIn(fan(5))).toEqual(["part × 5"]);
    expect(fansIn(chain(numbers(9).map((n) => `part-${n}`)))).toEqual([]);
    expect(fansIn(fan(9, (part, n) => (n % 2 === 0 ? { ...part, kind: "sleep" } : part)))).toEqual([
      "part × 5",
    ]);
  });

  test("what leads to something else is not alike", () => {
    const graph = fan(10);
    const other = { ...graph, nodes: [...graph.nodes, node("undo")] };
    const leading = numbers(4).map((n) => ({ from: `part-${n}`, to: "undo" }));
    expect(fansIn({ ...other, edges: [...graph.edges, ...leading] })).toEqual(["part × 6"]);
  });

  test("calls and the jobs that they called are two, one behind the other", () => {
    const graph = fan(6, (_, n) => node(n === 0 ? "call:mail" : `call:mail#${n + 1}`, { kind: "call" }));
    const calls = graph.nodes.filter(({ kind }) => kind === "call");
    const jobs = calls.map(({ id }) => node("mail", { id: `job of ${id}`, kind: "job" }));
    const edges = calls.map(({ id }) => ({ from: id, to: `job of ${id}` }));
    const whole = { ...graph, nodes: [...graph.nodes, ...jobs], edges: [...graph.edges, ...edges] };
    expect(fansIn(whole)).toEqual(["call:mail × 6", "mail × 6"]);
    const { edges: drawn, fans } = pictureOf(whole, closed, "right");
    expect(fans.length).toBe(2);
    // run → list → calls → join, and the jobs behind the calls.
    expect(drawn.length).toBe(4);
  });

  test("its states are counted, what wants attention first", () => {
    const states = ["done", "failed", "running", "done", "done"] as const;
    const { nodes } = fan(5, (part, n) => ({ ...part, state: states[n]! }));
    expect(countsOf(nodes.slice(2, 7))).toEqual([
      { state: "failed", count: 1 },
      { state: "running", count: 1 },
      { state: "done", count: 3 },
    ]);
  });
});

describe("the picture", () => {
  const apart = (boxes: readonly Box[]): void => {
    for (const [i, a] of boxes.entries())
      for (const b of boxes.slice(i + 1)) {
        const beside = a.x + a.width <= b.x || b.x + b.width <= a.x;
        expect(beside || a.y + a.height <= b.y || b.y + b.height <= a.y, `${a.id} and ${b.id}`).toBe(true);
      }
  };
  const within = (inner: Box, outer: Box): boolean =>
    inner.x >= outer.x &&
    inner.y >= outer.y &&
    inner.x + inner.width <= outer.x + outer.width &&
    inner.y + inner.height <= outer.y + outer.height;

  test.each(["right", "down"] as const)("a fan-out is closed until it is opened, to the %s", (direction) => {
    const graph = fan(40);
    const shut = pictureOf(graph, closed, direction);
    expect(labels(shut)).toEqual(["run", "list", "join"]);
    expect(shut.leaves.map(({ node: { label } }) => label)).toEqual(graph.nodes.map(({ label }) => label));
    const { id } = shut.fans[0]!;
    const open = pictureOf(graph, { ...closed, fans: new Set([id]) }, direction);
    expect(open.nodes.length).toBe(43);
    apart(open.nodes);
    const [frame] = open.fans;
    for (const drawn of open.nodes)
      expect(within(drawn, frame!), drawn.id).toBe(drawn.node.label.startsWith("part"));
    expect(open.leaves.find(({ node: { label } }) => label === "part-7")?.fans).toEqual([id]);
    for (const box of [...open.nodes, frame!])
      expect(within(box, { id: "", x: 0, y: 0, width: open.width, height: open.height })).toBe(true);
  });

  test("a run that was called is drawn around its node, and one inside of that", () => {
    const job = (id: string): WorkflowNode => node(id, { kind: "job", jobId: id });
    const outer = chain(["a", "b"]);
    const calling = (graph: Graph, from: string, id: string): Graph => ({
      ...graph,
      nodes: [...graph.nodes, job(id)],
      edges: [...graph.edges, { from, to: id }],
    });
    const own = (id: string): Graph => {
      const graph = chain(["a"]);
      return {
        ...graph,
        nodes: [node(id, { kind: "job" }), ...graph.nodes.slice(1)],
        edges: [{ from: id, to: "a" }],
      };
    };
    const runs = new Map([
      ["child", calling(own("child"), "a", "grandchild")],
      ["child/grandchild", own("grandchild")],
    ]);
    const drawn = pictureOf(calling(outer, "a", "child"), { ...closed, runs }, "right");
    expect(drawn.nodes.map(({ id }) => id)).toEqual([
      "run",
      "a",
      "b",
      "child",
      "child/a",
      "child/grandchild",
      "child/grandchild/a",
    ]);
    expect(drawn.frames.map(({ id }) => id)).toEqual(["child", "child/grandchild"]);
    const [frame, inner] = drawn.frames as [Box, Box];
    expect(within(inner, frame)).toBe(true);
    for (const box of drawn.nodes) expect(within(box, frame), box.id).toBe(box.id.startsWith("child"));
    apart(drawn.nodes);
    expect(drawn.edges.map(({ from, to }) => `${from} ${to}`)).toContain("child child/a");
  });

  test.each(["right", "down"] as const)("a long chain goes on in a next line, to the %s", (direction) => {
    const right = direction === "right";
    const room = 1_000;
    for (const steps of [6, 10, 60, 300]) {
      const graph = chain(numbers(steps).map((n) => `of its own ${"abcdefghij"[n % 10]} ${n}`));
      const one = pictureOf(graph, closed, direction);
      const drawn = pictureOf(graph, closed, direction, room);
      apart(drawn.nodes);
      expect(labels(drawn)).toEqual(labels(one));
      expect(drawn.leaves).toEqual(one.leaves);
      if (steps === 6) {
        // What is short stays in one line.
        expect(drawn).toEqual(one);
        continue;
      }
      const frame = { id: "", x: 0, y: 0, width: drawn.width, height: drawn.height };
      for (const box of drawn.nodes) expect(within(box, frame), box.id).toBe(true);
      // They are read like text: along a line, and then along the next.
      const [along, across] = right ? (["x", "y"] as const) : (["y", "x"] as const);
      const read = [...drawn.nodes].sort((a, b) => a[across] - b[across] || a[along] - b[along]);
      expect(read.map(({ node: { label } }) => label)).toEqual(labels(one));
      const lines = new Set(drawn.nodes.map((box) => box[across])).size;
      expect(lines).toBeGreaterThan(1);
      expect(lines).toBeLessThanOrEqual(26);
      if (steps === 60) expect(right ? drawn.width : drawn.height).toBeLessThanOrEqual(room + 48);
      // Every edge stays in the picture, also those that lead to the next line.
      for (const { d } of drawn.edges) {
        const places = [...d.matchAll(/(-?[\d.]+) (-?[\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]);
        for (const [x, y] of places) {
          expect(x).toBeGreaterThanOrEqual(0);
          expect(x).toBeLessThanOrEqual(drawn.width);
          expect(y).toBeGreaterThanOrEqual(0);
          expect(y).toBeLessThanOrEqual(drawn.height);
        }
      }
      expect(drawn.edges.map(({ from, to }) => [from, to])).toEqual(
        one.edges.map(({ from, to }) => [from, to]),
      );
      expect(drawn.edges.filter(({ d }) => d.includes("Q")).length).toBe(lines - 1);
    }
  });

  test("lines are as high as the highest in them: a fan-out that is open, a run that is drawn inside", () => {
    const before = chain(numbers(20).map((n) => `before ${"abcdefghijklmnopqrst"[n]}`));
    const parts = numbers(30).map((n) => node(`part-${n}`));
    const last = before.nodes.at(-1)!.id;
    const graph: Graph = {
      nodes: [...before.nodes, ...parts, node("join")],
      edges: [
        ...before.edges,
        ...parts.flatMap(({ id }) => [
          { from: last, to: id },
          { from: id, to: "join" },
        ]),
      ],
      cut: false,
    };
    const { id } = pictureOf(graph, closed, "right", 900).fans[0]!;
    const open = pictureOf(graph, { ...closed, fans: new Set([id]) }, "right", 900);
    apart([...open.nodes.filter(({ node: { label } }) => !label.startsWith("part")), ...open.fans]);
    apart(open.nodes);
  });

  test("nodes of different sizes do not overlap", () => {
    const nodes = numbers(60).map((n) => ({
      id: String(n),
      width: 100 + ((n * 37) % 90),
      height: 20 + ((n * 53) % 300),
    }));
    const edges = nodes.flatMap((_, n) => (n % 7 === 0 ? [] : [{ from: String(n - 1), to: String(n) }]));
    for (const direction of ["right", "down"] as const) {
      const { at } = layout(nodes, edges, direction);
      apart(nodes.map((box) => ({ ...box, ...at.get(box.id)! })));
    }
  });

  const steps = (size: number): string[] => numbers(size).map((n) => `step ${n} of it`);
  const kinds: { kind: string; of: (size: number) => Graph }[] = [
    { kind: "fanned out", of: (size) => fan(size) },
    { kind: "chained", of: (size) => chain(steps(size)) },
    {
      kind: "tangled",
      of: (size) => ({
        nodes: [root, ...steps(size).map((label) => node(label))],
        edges: numbers(size).flatMap((n) =>
          [1, 7, 31].map((by) => ({ from: `step ${n} of it`, to: `step ${n + by} of it` })),
        ),
        cut: false,
      }),
    },
  ];
  test.each(kinds)("a thousand nodes that are $kind are drawn, each in a place of its own", ({ of }) => {
    const { nodes, leaves } = pictureOf(of(1_000), closed, "right", 1_000);
    expect(leaves.length).toBeGreaterThanOrEqual(1_000);
    expect(new Set(nodes.map(({ x, y }) => `${x} ${y}`)).size).toBe(nodes.length);
  });
});
