// The page's pure parts: the search that people type, the layout of a workflow's graph, numbers as they are read.
import { expect, test } from "vitest";
import { layout, NODE } from "../../ui/src/workflows/graph-layout.ts";
import { measuredOver } from "../../ui/src/charts/axis-scale.ts";

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

test("[K2] a chart of load ends with the newest minute that is measured, and a longer silence stays a gap", () => {
  const of = (values: readonly (number | null)[], over = values.length): number =>
    measuredOver([values, values], over);
  expect(of([1, 2, 3])).toBe(3);
  expect(of([1, 2, null])).toBe(2);
  expect(of([1, null, null])).toBe(1);
  expect(of([1, 2, null, null, null])).toBe(5);
  expect(of([null, null])).toBe(2);
  expect(of([])).toBe(0);
  expect(of([1, 2, null], 2)).toBe(2);
  expect(
    measuredOver(
      [
        [1, null],
        [1, 0],
      ],
      2,
    ),
  ).toBe(2);
});
