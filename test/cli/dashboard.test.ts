// `holdfast dashboard --open` and `--label-color`: what is started, with what, and what is refused.
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openBrowser, openerOf } from "../../src/cli/monitor/browser.ts";
import { cli, folder } from "./support.ts";

/** The opener is a script. */
const onPosix = test.skipIf(process.platform === "win32");
const eventually = { timeout: 20_000 };

/** A folder with an opener of our own that writes down what it was given. */
function opener(name: string, code = 0): { readonly env: Record<string, string>; readonly told: string } {
  const bin = folder(name);
  const told = join(bin, "told.txt");
  for (const command of ["xdg-open", "open"]) {
    writeFileSync(join(bin, command), `#!/bin/sh\nprintf '%s\\n' "$#" "$1" > "${told}"\nexit ${code}\n`);
    chmodSync(join(bin, command), 0o755);
  }
  return { env: { PATH: `${bin}:${process.env["PATH"] ?? ""}` }, told };
}

async function serve(
  args: readonly string[],
  env: Record<string, string>,
  use: (address: string) => Promise<void>,
): Promise<{ readonly code: number; readonly err: string }> {
  const url = `sqlite:${join(folder("open"), "jobs.db")}`;
  expect((await cli(["migrate", "--url", url])).code).toBe(0);
  const end = new AbortController();
  const told = Promise.withResolvers<string>();
  const running = cli(["dashboard", "--port", "0", "--json", "--url", url, ...args], {
    env,
    signal: end.signal,
    onOut: (out) => told.resolve((JSON.parse(out) as { address: string }).address),
  });
  void running.then(({ err }) => told.reject(new Error(err)));
  try {
    await use(await told.promise);
  } finally {
    end.abort();
  }
  return running;
}

onPosix(
  "--open gives the printed address to the system's opener, as one argument (not on Windows)",
  async () => {
    const { env, told } = opener("opener");
    const ran = await serve(["--open"], env, async (address) => {
      await expect
        .poll(() => existsSync(told) && readFileSync(told, "utf8"), eventually)
        .toBe(`1\n${address}\n`);
      expect(address).toContain("#token=");
    });
    expect(ran).toMatchObject({ code: 0, err: "" });
  },
);

onPosix("without --open nothing is started (not on Windows)", async () => {
  const { env, told } = opener("unopened");
  await serve([], env, async (address) => {
    expect((await fetch(address)).status).toBe(200);
  });
  expect(existsSync(told)).toBe(false);
});

onPosix("where there is no browser it says so, and the dashboard goes on (not on Windows)", async () => {
  const { env, told } = opener("headless", 3);
  const ran = await serve(["--open"], env, async (address) => {
    await expect.poll(() => existsSync(told), eventually).toBe(true);
    expect((await fetch(address)).status).toBe(200);
  });
  expect(ran.code).toBe(0);
  expect(await openBrowser("http://127.0.0.1:1/", { PATH: folder("nothing") })).toBe(false);
  expect(await openBrowser("http://127.0.0.1:1/", env)).toBe(false);
});

test("no opener is a shell, and the address is its last argument whatever is in it", () => {
  const address = "http://127.0.0.1:1/#token=a&calc.exe;$(id)";
  for (const platform of ["linux", "darwin", "win32"]) {
    const [command, ...args] = openerOf(platform, address);
    expect(["open", "xdg-open", "rundll32"]).toContain(command);
    expect(args.at(-1)).toBe(address);
  }
});

test("--label-color takes a name or a colour, and says what it takes", async () => {
  const settings = async (args: readonly string[]): Promise<unknown> => {
    let found: unknown;
    await serve(args, {}, async (address) => {
      const html = await (await fetch(address)).text();
      const { label, labelColors } = JSON.parse(/id="settings">(.*?)<\/script>/.exec(html)?.[1] ?? "{}") as {
        label: unknown;
        labelColors: unknown;
      };
      found = { label, labelColors };
    });
    return found;
  };
  expect(await settings(["--label", "prod", "--label-color", "red"])).toEqual({
    label: "prod",
    labelColors: { paper: "#b91c1c", ink: "#ffffff" },
  });
  const url = `sqlite:${join(folder("refused"), "jobs.db")}`;
  expect((await cli(["migrate", "--url", url])).code).toBe(0);
  expect(await cli(["dashboard", "--url", url, "--port", "0", "--label-color", "url(x)"])).toMatchObject({
    code: 2,
    err: expect.stringContaining("labelColor must be red, orange") as string,
  });
});
