#!/usr/bin/env node
/** `holdfast`: the command line. Everything of it is in run.ts; this file is the process. */
import { processIo } from "./io.ts";
import { run } from "./run.ts";

process.exitCode = await run(process.argv.slice(2), processIo());
