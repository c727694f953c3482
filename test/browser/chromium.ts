// A headless Chromium: from npm on Linux, elsewhere an installed one.
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium as playwright } from "playwright-core";

const installed = [
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe",
  "/usr/bin/chromium",
  "/usr/bin/google-chrome",
];

export async function launch(): Promise<Browser> {
  const path = process.env["CHROMIUM_PATH"] ?? installed.find((one) => existsSync(one));
  if (path !== undefined) return playwright.launch({ executablePath: path, headless: true });
  if (process.platform !== "linux")
    throw new Error("No Chromium was found. Install Chrome, or set CHROMIUM_PATH to one.");
  const { default: packed } = await import("@sparticuz/chromium");
  return playwright.launch({
    executablePath: await unpacked(packed),
    // Made for machines without a GPU and with little memory; ours are like that. Not by way of a GPU that is computed: without
    // it a page is drawn by the processor too, and loading and looking through one takes two thirds of the time.
    args: packed.args.filter((arg) => !/headless|single-process|no-zygote|gpu|angle|swiftshader/.test(arg)),
    headless: true,
  });
}

/**
 * The package unpacks into the directory for temporary files, and takes a file that is there for a whole one: of two test
 * files that start together, one runs what the other still writes (ETXTBSY). Here it appears by its name when it is whole.
 */
async function unpacked(packed: { executablePath(): Promise<string> }): Promise<string> {
  const home = fileURLToPath(new URL("../../node_modules/.cache/chromium", import.meta.url));
  if (existsSync(home)) return join(home, "chromium");
  await mkdir(dirname(home), { recursive: true });
  const fresh = await mkdtemp(`${home}-`);
  const { TMPDIR } = process.env;
  process.env["TMPDIR"] = fresh;
  try {
    await packed.executablePath();
  } finally {
    if (TMPDIR === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = TMPDIR;
  }
  // Whoever was first has made the same.
  await rename(fresh, home).catch(() => rm(fresh, { recursive: true }));
  return join(home, "chromium");
}
