// The page's pure parts: the search that people type, the layout of a workflow's graph, numbers as they are read.
import { expect, test } from "vitest";
import { layout, NODE } from "../../ui/src/graph.ts";

test("a graph goes from left to right, no two nodes on one place", () => {
  const nodes = ["a", "b", "c", "d", "alone"].map((id) => ({ id }));
  const edges = [
    { from: "a", to: "b" },
    { from: "a", to: "c" },
    { from: "b", to: "d" },
    { from: "c", to: "d" },
    { from: "ghost", to: "d" },
  ];
  const { at, width, height } = layout(nodes, edges);
  for (const { from, to } of edges.slice(0, 4)) expect(at.get(from)!.x).toBeLessThan(at.get(to)!.x);
  const places = [...at.values()].map(({ x, y }) => `${x} ${y}`);
  expect(new Set(places).size).toBe(nodes.length);
  for (const { x, y } of at.values()) {
    expect(x + NODE.width).toBeLessThanOrEqual(width);
    expect(y + NODE.height).toBeLessThanOrEqual(height);
  }
});

test("crossing edges are untangled", () => {
  const nodes = ["a1", "a2", "b1", "b2"].map((id) => ({ id }));
  const { at } = layout(nodes, [
    { from: "a1", to: "b2" },
    { from: "a2", to: "b1" },
  ]);
  expect(Math.sign(at.get("a1")!.y - at.get("a2")!.y)).toBe(Math.sign(at.get("b2")!.y - at.get("b1")!.y));
});

test("a cycle and an edge to oneself harm nothing", () => {
  const { at } = layout(
    [{ id: "a" }, { id: "b" }],
    [
      { from: "a", to: "b" },
      { from: "b", to: "a" },
      { from: "a", to: "a" },
    ],
  );
  expect(at.size).toBe(2);
});

test("a thousand nodes, chained, fanned out or tangled, are placed in linear time", () => {
  const nodes = Array.from({ length: 1_000 }, (_, i) => ({ id: String(i) }));
  const chain = nodes.slice(1).map((_, i) => ({ from: String(i), to: String(i + 1) }));
  const fan = nodes.slice(1).map(({ id }) => ({ from: "0", to: id }));
  const tangle = nodes.flatMap((_, i) =>
    [1, 7, 31].filter((by) => i + by < 1_000).map((by) => ({ from: String(i), to: String(i + by) })),
  );
  const started = performance.now();
  for (const edges of [chain, fan, tangle]) expect(layout(nodes, edges).at.size).toBe(1_000);
  // A few milliseconds each; dagre takes seven seconds for one of them.
  expect(performance.now() - started).toBeLessThan(3_000);
});
