// Ways around redaction and permissions that were open once.
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkOwner } from "../../src/cli/config-file.ts";
import { secretsOf } from "../../src/cli/target.ts";
import { Redactor } from "../../src/dashboard/access/redact.ts";
import { checkPatch } from "../../src/values/json-patch.ts";
import { withoutSecrets } from "../../src/storage/open.ts";
import { defineJob } from "../../src/index.ts";
import { onEveryStore } from "../support/stores.ts";
import { api, code, over } from "./support.ts";

const header = { "x-holdfast": "1" };
const plain = defineJob({ name: "plain", run: async (_input: unknown) => {} });

test("[O18] a pointer of slashes and a tilde is refused at once, however long", () => {
  for (const path of [`${"/".repeat(40)}~`, `${"/".repeat(50_000)}~`])
    expect(() => checkPatch([{ op: "remove", path }])).toThrow("JSON pointer");
});

test("[O18] texts are shown without second cookies, any Authorization, JSON within JSON, and short names of secrets", () => {
  const redactor = new Redactor(undefined);
  for (const text of [
    "Cookie: a=1; sid=hush",
    "Authorization: Token hush",
    'Authorization: Digest username="ann", response="hush"',
    "Authorization: ApiKey hush",
    "pwd=hush",
    "pass: hush",
    "auth=hush",
    "jwt=hush",
  ])
    expect(redactor.text(text), text).not.toContain("hush");
  const inner = JSON.stringify({ body: JSON.stringify({ user: "ann", nested: { pwd: "hush" } }) });
  expect(redactor.json(inner, { name: "", queue: "" })).not.toContain("hush");
});

test("[O18] a malformed URL is shown without its password", () => {
  for (const url of ["postgress://ann:hu/sh@host/db", "mysql://ann:hush@ho st/db", "postgres:ann:hush@host"])
    expect(withoutSecrets(url), url).not.toMatch(/hu\/?sh/);
  expect(secretsOf("postgres://ann:hush@ho st:x/db")).toEqual(["hush"]);
});

test("[O18] a config file of another user is not run", () => {
  const folder = mkdtempSync(join(tmpdir(), "holdfast-owner-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "holdfast.config.mjs");
  writeFileSync(file, "export default {}");
  const me = process.getuid?.() ?? 0;
  expect(() => checkOwner(file, me)).not.toThrow();
  // Root makes it another's; anybody else looks at it as another.
  if (me === 0) chownSync(file, 12_345, 12_345);
  expect(() => checkOwner(file, me === 0 ? 0 : me + 1)).toThrow("another user");
});

onEveryStore((target) => {
  test("[O18] a patch cannot read what is redacted, and its own secrets are not shown", async () => {
    const { hf, send } = await api(target);
    const { id } = await hf.enqueue(plain, { password: "hush" });
    await hf.jobs.cancel(id);
    const ask = (patch: unknown, dryRun = true) =>
      send("POST", "/jobs/bulk", { action: "retry", filter: { ids: [id] }, patch, dryRun }, header);
    for (const patch of [
      [{ op: "copy", from: "/password", path: "/shown" }],
      [{ op: "move", from: "/password", path: "/shown" }],
      [{ op: "test", path: "/password", value: "hush" }],
      [{ op: "test", path: "", value: { password: "hush" } }],
    ])
      for (const dryRun of [true, false]) {
        const answer = await ask(patch, dryRun);
        expect([patch, answer.status, code(answer)]).toEqual([patch, 400, "BAD_REQUEST"]);
      }
    const done = await ask([{ op: "replace", path: "/password", value: "whisper" }], false);
    expect(done.status).toBeLessThan(300);
    expect(JSON.stringify(done.body)).not.toContain("whisper");
  });

  test("[O18] a patch shifts no value that a function redacts by its index", async () => {
    const { hf } = await api(target);
    const { id } = await hf.enqueue(plain, { list: ["hush", "open"] });
    await hf.jobs.cancel(id);
    const { send } = over(hf, {
      redact: (value, { path }) => (path.join(".") === "list.0" ? "***" : value),
    });
    const ask = (patch: unknown) =>
      send("POST", "/jobs/bulk", { action: "retry", filter: { ids: [id] }, patch, dryRun: true }, header);
    for (const patch of [
      [{ op: "add", path: "/list/0", value: "first" }],
      [{ op: "remove", path: "/list/0" }],
    ]) {
      const answer = await ask(patch);
      expect([patch, answer.status, code(answer)]).toEqual([patch, 400, "BAD_REQUEST"]);
    }
    const answer = await ask([{ op: "add", path: "/list/-", value: "last" }]);
    expect(answer.status).toBe(200);
    expect(JSON.stringify(answer.body)).not.toContain("hush");
  });

  test("[O18] facets count nothing of queues that are not one's own", async () => {
    const { hf } = await api(target);
    await hf.enqueueMany(["a", "b"].map((queue) => ({ job: plain, input: 1, queue })));
    const { get } = over(hf, { authorize: (_user, _permission, { queue }) => queue === "a" });
    const { body } = await get<{ queues: { value: string }[] }>("/jobs/facets?queue=a");
    expect(body.queues.map(({ value }) => value)).toEqual(["a"]);
  });

  test("[O18] a pattern named like a member of every object is no error of the server", async () => {
    const { get } = await api(target);
    for (const word of ["constructor", "__proto__", "toString"])
      expect((await get(`/schedules/preview?cron=${word}&n=3`)).status, word).toBeLessThan(500);
  });
});
