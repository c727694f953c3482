/**
 * Throws NODE_TOO_OLD where Node is too old. Each entry of the package imports this file first: imports are evaluated in their
 * order, and without it a missing `node:sqlite` would be the first to fail, with words that name no remedy.
 */
import { checkNode } from "./node-version.ts";

checkNode((globalThis as { process?: NodeJS.Process }).process);
