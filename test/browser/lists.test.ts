// A list made one's own, in a real browser: saved views, chosen columns, files, and the same in a terminal.
import { readFile } from "node:fs/promises";
import type { Page } from "playwright-core";
import { beforeAll, expect, test } from "vitest";
import { cli } from "../cli/support.ts";
import { type Filled, fill } from "./data.ts";
import { accessible, choose, closeSites, fits, type Site, site, useBrowser } from "./support.ts";

useBrowser();
closeSites();

let home: Site;
let filled: Filled;
beforeAll(async () => {
  home = await site();
  filled = await fill(home.hf);
}, 60_000);

async function copied(page: Page): Promise<string> {
  await page.getByText("Copied").first().waitFor();
  return page.evaluate("navigator.clipboard.readText()");
}

test("[K2] a view is saved by a name, outlives a reload, is found by the palette, and is forgotten", async () => {
  const page = await home.open("/jobs?state=dead&queue=billing");
  await page.getByRole("button", { name: "Save view" }).click();
  await page.getByLabel("Name").fill("Unpaid <b>bills</b>");
  await accessible(page);
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByRole("link", { name: "Unpaid <b>bills</b>" }).waitFor();
  expect(await page.getByRole("button", { name: "Save view" }).count()).toBe(0);
  await page.goto(`${home.url}/jobs`);
  await page.getByRole("link", { name: "Unpaid <b>bills</b>" }).click();
  await page.getByRole("button", { name: "Remove the filter queue" }).waitFor();
  expect(new URL(page.url()).search).toBe("?state=dead&queue=billing");
  await page.goto(`${home.url}/workers`);
  await page.keyboard.press("Control+k");
  await page.getByRole("combobox").and(page.locator(":focus")).waitFor();
  await page.keyboard.type("unpaid");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Remove the filter queue" }).waitFor();
  await accessible(page);
  await page.getByRole("button", { name: "Delete the view Unpaid <b>bills</b>" }).click();
  await page.reload();
  await page.getByRole("button", { name: "Save view" }).waitFor();
  expect(await page.getByRole("link", { name: /Unpaid/ }).count()).toBe(0);
});

test("[K2] what another page put into the browser's storage is no way out of the dashboard", async () => {
  const page = await home.open("/jobs");
  await page.evaluate(
    `localStorage.setItem("holdfast.views ", JSON.stringify([{ name: "out", to: "//evil.example" }, { name: "js", to: "javascript:alert(1)" }, 7, null]));
     localStorage.setItem("holdfast.columns ", '["nonsense", {"a": 1}, "__proto__"]')`,
  );
  await page.reload();
  await page.getByRole("columnheader", { name: "Queue" }).waitFor();
  expect(await page.getByRole("link", { name: /^(out|js)$/ }).count()).toBe(0);
});

test("[K2] columns are chosen, kept, and put back", async () => {
  const page = await home.open("/jobs?state=dead");
  // Without the last, which has what can be done with a row.
  const heads = async () => (await page.getByRole("columnheader").allInnerTexts()).slice(0, -1);
  await page.getByRole("columnheader", { name: "Created" }).waitFor();
  expect((await heads()).slice(1)).toEqual(["Job", "State", "Queue", "Attempts", "Took", "Created"]);
  await page.getByRole("button", { name: "Columns" }).click();
  await accessible(page);
  await page.getByLabel("Lane").check();
  await page.getByLabel("Context").check();
  await page.getByLabel("Created").uncheck();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("cell", { name: "checkout" }).first().waitFor();
  expect((await heads()).slice(1)).toEqual(["Job", "State", "Queue", "Lane", "Context", "Attempts", "Took"]);
  await page.reload();
  await page.getByRole("columnheader", { name: "Lane" }).waitFor();
  await page.setViewportSize({ width: 390, height: 800 });
  await fits(page);
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("button", { name: "As usual" }).click();
  await page.getByRole("button", { name: "Done" }).click();
  await page.getByRole("columnheader", { name: "Created" }).waitFor();
});

test("[K2] the filtered list is exported as NDJSON and CSV, redacted", async () => {
  const page = await home.open("/jobs?state=dead&queue=billing&search=bob");
  for (const format of ["ndjson", "csv"]) {
    await page.getByRole("button", { name: "Export", exact: true }).click();
    await page.getByText("dead jobs in queue billing that contain “bob”").waitFor();
    await page.getByLabel("Format").selectOption(format);
    await accessible(page);
    const download = page.waitForEvent("download");
    await page.getByRole("dialog").getByRole("button", { name: "Export" }).click();
    const file = await download;
    expect(file.suggestedFilename()).toMatch(new RegExp(`^jobs-[\\d-]+\\.${format}$`));
    const text = await readFile(await file.path(), "utf8");
    const lines = text.trim().split("\n");
    const expected = await home.hf.jobs.count({ state: "dead", queue: "billing", search: "bob" });
    expect(lines).toHaveLength(expected + (format === "csv" ? 1 : 0));
    expect(text).toContain("bob");
    expect(text).not.toContain("tok_secret");
  }
  const viewer = await site({ auth: () => ({ name: "vera", role: "viewer" }) });
  const seen = await viewer.open("/jobs");
  await seen.getByRole("button", { name: "Columns" }).waitFor();
  expect(await seen.getByRole("button", { name: "Export" }).count()).toBe(0);
});

test("[K2] a list, an action and a job are copied as commands, which mean the same", async () => {
  const page = await home.open("/jobs?state=dead&queue=billing&search=it's%20%24HOME");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy as command" }).click();
  expect(await copied(page)).toBe(
    String.raw`holdfast jobs list --state dead --queue billing --search 'it'\''s $HOME'`,
  );
  await page.goto(`${home.url}/errors`);
  await choose(page.getByRole("row", { name: /declined/ }), /^Actions for/, "Retry all");
  await page.getByRole("dialog").getByText("For example").waitFor();
  await page.getByRole("dialog").getByRole("button", { name: "Copy as command" }).click();
  const command = await copied(page);
  expect(command).toMatch(
    /^holdfast jobs retry --state dead --queue billing --name charge-card --error [0-9a-f]{16}$/,
  );
  const [, ...words] = command.split(" ");
  // The command line understands it; this database is in the server's memory, so that is as far as it goes.
  expect((await cli([...words, "--help"])).code).toBe(0);
  await page.goto(`${home.url}/jobs/${filled.ids.done}`);
  await page.getByRole("button", { name: "Copy as…" }).click();
  await page.getByRole("menuitem", { name: "Command to see it" }).click();
  expect(await copied(page)).toBe(`holdfast jobs show ${filled.ids.done}`);
  await page.goto(`${home.url}/retries?queue=mail`);
  await page.getByRole("button", { name: "Copy as command" }).click();
  expect(await copied(page)).toBe("holdfast jobs list --queue mail --retrying");
});
