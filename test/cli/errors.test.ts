// `holdfast errors`, on every store.
import { expect, test } from "vitest";
import type { FailureGroup } from "../../src/index.ts";
import { fresh } from "../support/test-clients.ts";
import { onEveryStore } from "../support/stores.ts";
import { on } from "./support.ts";

onEveryStore((target) => {
  test("[K4] errors are listed, shown, resolved, ignored, reopened and noted", async () => {
    const { hf, store } = await fresh(target);
    const holdfast = on(store);
    expect((await holdfast(["errors"])).out).toContain("There are no open failure groups");
    await hf.enqueue("charge", null, { queue: "billing" });
    const [lease] = await hf.lease({ limit: 1, for: "10m" });
    await lease!.dead("the bank \u001b[31msaid no");
    const [found] = (await holdfast(["errors", "list", "--json"])).json<FailureGroup[]>();
    expect(found).toMatchObject({ name: "charge", queues: ["billing"], dead: 1, state: "open" });
    const { group } = found!;
    const listed = await holdfast(["errors"]);
    expect(listed.out).toContain(group);
    expect(listed.out).not.toContain("\u001b[31m");

    const states = async (...more: string[]) =>
      (await holdfast(["errors", "list", "--json", ...more]))
        .json<FailureGroup[]>()
        .map(({ state }) => state);
    const link = "https://example.org/7";
    const resolved = await holdfast([
      "errors",
      "resolve",
      group,
      "--note",
      "fixed",
      "--link",
      link,
      "--json",
    ]);
    expect(resolved.json()).toEqual({ group, state: "resolved" });
    expect(await states()).toEqual([]);
    expect(await states("--all")).toEqual(["resolved"]);
    const shown = await holdfast(["errors", "show", group]);
    expect(shown.out).toMatch(
      /state +resolved[\s\S]*billing[\s\S]*note +fixed\nlink +https:\/\/example.org\/7/,
    );
    await holdfast(["errors", "ignore", group, "--for", "7d", "--count", "100"]);
    expect((await holdfast(["errors", "show", group])).out).toMatch(
      /ignored, until .* until 100 more \(0 so far\)/,
    );
    expect(await states("--state", "ignored")).toEqual(["ignored"]);
    await holdfast(["errors", "reopen", group]);
    await holdfast(["errors", "note", group, "--note", ""]);
    const [open] = (await holdfast(["errors", "--json"])).json<FailureGroup[]>();
    expect(open).toMatchObject({ state: "open", note: null, link });

    for (const wrong of [
      ["errors", "resolve"],
      ["errors", "resolve", "nonsense"],
      ["errors", "ignore", group, "--for", "soon"],
      ["errors", "ignore", group, "--for", "1h", "--until", "2027-01-01"],
      ["errors", "note", group, "--link", "javascript:alert(1)"],
      ["errors", "list", "--state", "shut"],
    ])
      expect((await holdfast(wrong)).code, wrong.join(" ")).toBe(2);
    expect((await holdfast(["errors", "show", "0123456789abcdef"])).code).toBe(1);
    expect((await holdfast(["errors", "resolve", "0123456789abcdef"])).code).toBe(1);
  });
});
