// A URL that cannot be read: the error says so, and neither it nor its causes hold the password.
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { open, silentLogger } from "../../src/index.ts";
import { resolveTarget } from "../../src/cli/target.ts";
import { cli } from "../cli/support.ts";

const malformed = [
  "postgres://ann:hush@ho st/db",
  "postgres://ann:hush@host:port/db",
  "postgres://ann:hush@host:99999/db",
  "postgres://ann:hu/sh@host/db",
  "postgres://ann:hush@[::1/db",
  "postgres://ann:hush@host",
  "postgres://ann:hush@host/",
  "postgres://ann:hush@one,two two/db",
  "postgres://ann:hush@host/db?target_session_attrs=standby",
  "postgres://ann@host/db?password=hush&port=abc",
  "postgres://ann:hush@one,two/db?port=99999",
  "postgress://ann:hush@host/db",
  "postgres:ann:hush@host/db",
  "mysql://ann:hush@host/db",
  "file://ann:hush@ho st/jobs.db",
  "file://ann:hush@host/%zz",
  "sqlite:jobs.db?key=hush",
];

test.each(malformed)("[O18] the error for %s holds no password, nor do its causes", async (url) => {
  const error: unknown = await open(url, { logger: silentLogger }).then(
    () => null,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ name: "UsageError", code: "BAD_URL" });
  const all = inspect(error, { depth: 9, showHidden: true });
  expect(all).not.toMatch(/hush|hu\/sh/);
  expect(JSON.stringify(error)).not.toMatch(/hush|hu\/sh/);
});

test.each(malformed)(
  "[O18] the command line says what is wrong with %s without its password",
  async (url) => {
    for (const argv of [["stats"], ["create"], ["dashboard"], ["stats", "--json"]]) {
      const ran = await cli([...argv, "--url", url]);
      expect([argv, ran.code === 0], ran.err).toEqual([argv, false]);
      expect(ran.out + ran.err).not.toMatch(/hush|hu\/sh/);
    }
  },
);

test.each(malformed)(
  "[O18] the error for %s holds none where the password comes from the environment",
  (url) => {
    const target = (): unknown =>
      resolveTarget({
        flags: { url, "password-env": "PASSWORD" },
        env: { PASSWORD: "hush-too" },
        config: {},
        configPath: null,
      });
    let error: unknown = null;
    try {
      target();
    } catch (thrown) {
      error = thrown;
    }
    if (error !== null) expect(error).toMatchObject({ code: "BAD_URL" });
    expect(inspect(error, { depth: 9, showHidden: true })).not.toMatch(/hush|hu\/sh/);
  },
);
