// Preloaded into every thread of a process (`node --import`): its wall clock is off by what a file says, and can be set while it runs.
import { readFileSync } from "node:fs";

const path = process.env["TEST_WALL_CLOCK"] ?? "";
const machineNow = Date.now;
let readAt = -Infinity;
let offsetMs = 0;

Date.now = () => {
  if (performance.now() - readAt > 20) {
    readAt = performance.now();
    offsetMs = Number(readFileSync(path, "utf8"));
  }
  return machineNow() + offsetMs;
};
