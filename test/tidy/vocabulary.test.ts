// One word for a thing (ARCHITECTURE.md, "Words"): retired words stay out of names, SQL, comments and documents.
import { readdirSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { read } from "../support/repository.ts";

const files = ["src", "ui/src", "docs", "demo", "examples"]
  .flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: "utf8" }).map((name) => `${folder}/${name}`),
  )
  .filter((name) => /\.(ts|tsx|css|md)$/.test(name) && name !== "docs/promises.md")
  .concat("ARCHITECTURE.md", "README.md");

interface Retired {
  readonly pattern: RegExp;
  readonly use: string;
  /** Lines in which the word means something else. */
  readonly unless?: RegExp;
}

const retired: readonly Retired[] = [
  { pattern: /\bbells?\b|[a-z]Bells?\b|\bBells?\b|_bells?\b|\bbell_/, use: "lane wake-up" },
  { pattern: /\bghosts?\b|[a-z]Ghosts?\b/i, use: "uncounted job" },
  // README.md: the payment of an example is refunded.
  { pattern: /refund/i, use: "returned capacity", unless: /charge|paid|payment/ },
  {
    pattern: /\bgate(s|d|_\w+|[A-Z]\w*)?\b|\bGates?\b|[a-z]Gate[sd]?\b/,
    use: "limited queue",
    // The dashboard's own gate checks who a request is from.
    unless: /\bauth|Gate\b|\bgate\.|gate,|class="gate"|share the gate|main\.gate|readonly gate\b/,
  },
  { pattern: /\bdut(y|ies)\b|[a-z]Dut(y|ies)|Dut(y|ies)[A-Z]/i, use: "upkeep task" },
  {
    pattern: /\bbur(y|ied|ies)\b|undertaker|\btidier|[fF]orgetterDeps/i,
    use: "the verb: delete, revert, prune",
  },
  {
    pattern: /overrides?\b/i,
    use: "temporary limit",
    // The verb, and the modifier of a method.
    unless:
      /overrides? (the|it|connect)\b|override async|and override( any|\.)|, override the|count overrides|-color` override/,
  },
  { pattern: /tenancy|Tenancy/, use: "worker session" },
  {
    pattern: /\bwish(es|ed)?\b|[a-z]Wish/i,
    use: "request",
    unless: /than a wish|if one is wished|wished for in the system|own wish|became of a wish|!?wished\b/,
  },
  { pattern: /\bsheaf|sheaves|\briders?\b|[a-z]Rider/i, use: "batch, attached statement" },
  { pattern: /error_?group/i, use: "failure group" },
  { pattern: /triage|\bgrief/i, use: "failure group, decision" },
  { pattern: /\bbarren|isBarren/i, use: "empty" },
  {
    pattern: /lookBack|lookedBack|LOOK_BACK|peekGated|\bpeek(ed)?(At|Ms)?\b/,
    use: "check, rescan",
    unless: /\.peek\(\)/,
  },
  {
    pattern: /\bflows?\b|[a-z]Flows?\b|\bFlow[A-Z]/,
    use: "workflow",
    unless: /overflow|flex-flow|auto-flow|Mails flow|its flows|or the flow,/,
  },
  {
    pattern: /\bt\.(line|kind|turn|slot)\b|\bholdfast_(line|kind|turn|slot)\b/,
    use: "job_type, definition, lane_rotation, occurrence",
  },
  { pattern: /lane, line\b|\(line, rank|line_id\b|r\.line\b|j\.line\b|queue, kind\)/, use: "job type, name" },
  {
    pattern: /\bKind(Info|Store|Cache|List|Detail|Totals)\b|[a-z]Kinds\b(?<!stepKinds)/,
    use: "definition, name",
  },
  { pattern: /\b(planned|newest|plan|add|local|count)Slots\b|SlotReport|FiredSlot/, use: "occurrence" },
  { pattern: /\bstandings\b|[uU]ndoAudit|audit\.undo\b|audit_undoes/, use: "revert, saved values" },
  { pattern: /placeIn\b|\bfromPlace\b|as place\b|\bPlace\b in/, use: "row key" },
  { pattern: /how-manieth|unburnt/i, use: "position, released" },
];

describe("retired words", () => {
  test.each(retired.map((one) => [String(one.pattern), one] as const))("%s", (_pattern, one) => {
    const found = files.flatMap((file) =>
      read(file)
        .split("\n")
        .flatMap((line, i) =>
          one.pattern.test(line) && one.unless?.test(line) !== true
            ? [`${file}:${i + 1}: ${line.trim().slice(0, 120)}`]
            : [],
        ),
    );
    expect(found, `write instead: ${one.use}`).toEqual([]);
  });
});
