#!/usr/bin/env node
/**
 * `holdfast`: the command line. This file is the process; command-line.ts has the rest.
 *
 * On a Node that is too old nothing else is loaded: command-line.ts and its imports may not even link there.
 */
import { nodeTooOld } from "../node-version.ts";

const argv = process.argv.slice(2);
const tooOld = nodeTooOld(process.version);
if (tooOld === null) {
  const [{ processIo }, { run }] = await Promise.all([import("./io.ts"), import("./command-line.ts")]);
  process.exitCode = await run(argv, processIo());
} else {
  const { code, message, details } = tooOld;
  const text = argv.includes("--json")
    ? JSON.stringify({ error: { code, message, details } })
    : `error ${code}  ${message}`;
  process.stderr.write(`${text}\n`);
  process.exitCode = 1;
}
