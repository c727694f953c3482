/**
 * Which Node is old: the oldest that Holdfast runs on, and the error for those before it.
 *
 * Invariant: this file and what it imports load on any Node that knows ES modules. Not here: the look itself, which each
 * entry of the package makes by importing supported-node.ts before anything else.
 */
import { StateError } from "./errors.ts";

const oldestNode = [22, 18] as const;

/** Says how to replace a Node that is too old; null where it is not. */
export function oldNode(version: string): string | null {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  const enough = major > oldestNode[0] || (major === oldestNode[0] && minor >= oldestNode[1]);
  return enough ? null : `Use Node ${oldestNode.join(".")} or newer.`;
}

/** The error for a Node that is too old; null where it is not. */
export function nodeTooOld(version: string): StateError | null {
  const remedy = oldNode(version);
  if (remedy === null) return null;
  return new StateError("NODE_TOO_OLD", `Node ${version} is too old for holdfast. ${remedy}`, {
    details: { node: version },
  });
}

/**
 * Bun and Deno name a Node that they are like, which says nothing of what they can do; other runtimes may have no process.
 *
 * @throws StateError NODE_TOO_OLD
 */
export function checkNode(
  runtime:
    | { readonly version: string; readonly versions: Readonly<Record<string, string | undefined>> }
    | undefined,
): void {
  if (runtime === undefined || (runtime.versions["bun"] ?? runtime.versions["deno"]) !== undefined) return;
  const error = nodeTooOld(runtime.version);
  if (error !== null) throw error;
}
