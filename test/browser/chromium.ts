// A headless Chromium: from npm on Linux, elsewhere an installed one.
import { existsSync } from "node:fs";
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
    executablePath: await packed.executablePath(),
    // Made for machines without a GPU and with little memory; ours are like that.
    args: packed.args.filter(
      (arg) => !arg.startsWith("--headless") && arg !== "--single-process" && arg !== "--no-zygote",
    ),
    headless: true,
  });
}
