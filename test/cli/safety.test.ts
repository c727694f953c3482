// Output that cannot harm a terminal (each command: every-command.test.ts), and secrets that do not leave.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { harmless, json, oneLine } from "../../src/cli/text.ts";
import { secretsOf } from "../../src/cli/target.ts";
import { onEveryStore } from "../support/stores.ts";
import { fresh } from "../support/test-clients.ts";
import { cli, folder, on } from "./support.ts";
import { dangerous, evil } from "./tour.ts";

test("no text with control characters reaches the terminal", () => {
  expect(harmless(evil)).not.toMatch(dangerous);
  expect(oneLine(`${evil}\n\tx`)).not.toMatch(/[\n\t]/);
  expect(json({ evil })).not.toMatch(dangerous);
  expect(JSON.parse(json({ evil }))).toEqual({ evil });
});

onEveryStore((target) => {
  test("colours come on a terminal alone, and not with NO_COLOR", async () => {
    const { hf, store } = await fresh(target);
    await hf.enqueue("hello", null);
    const holdfast = on(store);
    expect((await holdfast(["jobs"])).out).not.toContain("\u001b[");
    expect((await holdfast(["jobs"], { tty: true })).out).toContain("\u001b[");
    expect((await holdfast(["jobs"], { tty: true, env: { NO_COLOR: "1" } })).out).not.toContain("\u001b[");
    expect((await holdfast(["jobs", "--no-color"], { tty: true })).out).not.toContain("\u001b[");
    expect((await holdfast(["jobs", "--color"])).out).toContain("\u001b[");
  });

  test("[K5] the file is found up to four folders up, the flag and HOLDFAST_URL win over it, and its path is relative to it", async () => {
    const root = folder("config");
    const store = await target.fresh();
    const { mkdirSync } = await import("node:fs");
    const deep = join(root, "a", "b", "c", "d");
    mkdirSync(join(deep, "e"), { recursive: true });
    const schema = store.options.schema ?? "holdfast";
    writeFileSync(
      join(root, "holdfast.config.ts"),
      `const url: string = ${JSON.stringify(store.url)};\nexport default { url, open: { schema: ${JSON.stringify(schema)} } };\n`,
    );
    expect((await cli(["create"], { cwd: deep })).code).toBe(0);
    expect((await cli(["status", "--json"], { cwd: deep })).json()).toMatchObject({
      from: "the config file",
      schema,
      config: join(root, "holdfast.config.ts"),
    });
    expect((await cli(["status", "--json"], { cwd: join(deep, "e") })).code).toBe(1); // five up: not found
    const other = `sqlite:${join(root, "other.db")}`;
    expect(
      (await cli(["migrate", "--json"], { cwd: root, env: { HOLDFAST_URL: other } })).json(),
    ).toMatchObject({ place: other });
    expect(
      (
        await cli(["migrate", "--json", "--url", `sqlite:${join(root, "flag.db")}`], {
          cwd: root,
          env: { HOLDFAST_URL: other },
        })
      ).json(),
    ).toMatchObject({ place: `sqlite:${join(root, "flag.db")}` });
  });
});

test("[K5] a config folder is looked into, a file in the config is beside it, and without one DATABASE_URL and then ./holdfast.db stand", async () => {
  const root = folder("config-folder");
  const { mkdirSync, existsSync } = await import("node:fs");
  mkdirSync(join(root, "config"));
  writeFileSync(join(root, "config", "holdfast.config.mjs"), `export default { url: "sqlite:jobs.db" };`);
  expect((await cli(["migrate"], { cwd: root })).code).toBe(0);
  expect(existsSync(join(root, "config", "jobs.db"))).toBe(true);
  const bare = folder("bare");
  expect(
    (
      await cli(["migrate", "--json"], { cwd: bare, env: { DATABASE_URL: `sqlite:${join(bare, "env.db")}` } })
    ).json(),
  ).toMatchObject({ place: `sqlite:${join(bare, "env.db")}` });
});

test.each(["--url=", "--url= "])(
  "[K5] an empty address is refused, and no other database taken: %j",
  async (flag) => {
    const cwd = folder("empty-url");
    const env = { HOLDFAST_URL: `sqlite:${join(cwd, "other.db")}` };
    expect((await cli(["migrate"], { cwd, env })).code).toBe(0);
    const { code, err } = await cli(["queues", "pause", "mail", flag], { cwd, env });
    expect([code, err]).toEqual([2, expect.stringContaining("BAD_URL")]);
  },
);

test("[O18] with --url no config file of a folder above is run", async () => {
  const root = folder("config-above");
  const { existsSync, mkdirSync } = await import("node:fs");
  const below = join(root, "below");
  mkdirSync(below);
  const mark = join(root, "was-run");
  writeFileSync(
    join(root, "holdfast.config.mjs"),
    `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark)}, "");\nexport default {};\n`,
  );
  const url = `sqlite:${join(below, "jobs.db")}`;
  expect((await cli(["migrate", "--url", url], { cwd: below })).code).toBe(0);
  expect(existsSync(mark)).toBe(false);
  expect(
    (await cli(["migrate", "--url", url, "--config", "../holdfast.config.mjs"], { cwd: below })).code,
  ).toBe(0);
  expect(existsSync(mark)).toBe(true);
});

test.each([
  ["export default 7;", /must export a config/],
  ["export default { jbos: [] };", /Did you mean "jobs"/],
  ["export default { jobs: 7 };", /jobs must be an array/],
  ["throw new Error('boom');", /cannot be loaded: boom/],
  ["export default {", /cannot be loaded/],
])("[K5] a bad config is refused with 2: %s", async (text, message) => {
  const root = folder("bad-config");
  writeFileSync(join(root, "holdfast.config.mjs"), text);
  const { code, err } = await cli(["status"], { cwd: root });
  expect(code).toBe(2);
  expect(err).toMatch(message);
  expect((await cli(["status", "--config", "nowhere.ts"], { cwd: root })).code).toBe(2);
});

test("[K5] a password never shows: not in errors, not in JSON, not in the banner", async () => {
  const root = folder("secret");
  const secret = "s3cr3t-p%40ss";
  writeFileSync(
    join(root, "holdfast.config.mjs"),
    `export default { url: "postgres://app@127.0.0.1:1/db", passwordEnv: "PGPASS" };`,
  );
  const env = { PGPASS: "s3cr3t-p@ss" };
  const lines = [
    ["status"],
    ["status", "--json"],
    ["migrate"],
    ["doctor", "--json"],
    ["move", `postgres://app:${secret}@127.0.0.1:1/other`, "--force"],
    ["jobs", "list", "--url", `postgres://app:${secret}@127.0.0.1:1/db?password=${secret}`],
  ];
  for (const argv of lines) {
    const { code, out, err } = await cli(argv, { cwd: root, env });
    expect(code, argv.join(" ")).toBe(1);
    expect(out + err).not.toMatch(/s3cr3t/);
    expect(err).not.toBe("");
  }
  expect(await cli(["status"], { cwd: root })).toMatchObject({
    code: 2,
    err: expect.stringContaining("PGPASS") as string,
  });
  expect(secretsOf(`postgres://a:${secret}@h/d`)).toEqual([secret, "s3cr3t-p@ss"]);
  expect(secretsOf(`postgres://a:${secret}@h:1,i:2/d`)).toEqual([secret, "s3cr3t-p@ss"]);
});
