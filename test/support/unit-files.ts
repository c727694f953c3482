// Which test files are unit tests: those that reach no process, socket, thread or database, neither by themselves nor through
// the test helpers, scripts and demo files that they import. Imports of src/ and ui/ are not followed: a test that imports the
// client opens a database by its helpers (stores.ts), or one in memory, which is fast.
// A file that computes for seconds is named `….slow.test.ts`, and is no unit test either.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, posix } from "node:path";

const outside =
  /^(?:node:(?:child_process|cluster|dgram|http2?|https|net|sqlite|tls|worker_threads)|better-sqlite3|express|fastify|hono|next|pg|playwright-core|vite)(?:\/|$)/;
const specifiers = /^\s*(?:import|export)\b[^;]*?\bfrom\s+"([^"]+)"|\bimport\(?\s*"([^"]+)"/gm;

/** Paths of the unit tests, relative to the root. */
export function unitFiles(root: string): string[] {
  const known = new Map<string, boolean>();
  const reachesOutside = (file: string): boolean => {
    const before = known.get(file);
    if (before !== undefined) return before;
    known.set(file, false); // for a cycle
    const text = readFileSync(join(root, file), "utf8");
    const found = [...text.matchAll(specifiers)].some(([, from, bare]) => {
      const specifier = from ?? bare!;
      if (!specifier.startsWith(".")) return outside.test(specifier);
      const target = posix.join(posix.dirname(file), specifier);
      return /^(?:bench|demo|scripts|test)\/.*\.ts$/.test(target) && existsSync(join(root, target))
        ? reachesOutside(target)
        : false;
    });
    known.set(file, found);
    return found;
  };
  return readdirSync(join(root, "test"), { recursive: true, encoding: "utf8" })
    .map((path) => `test/${path.replaceAll("\\", "/")}`)
    .filter((file) => file.endsWith(".test.ts") && !file.endsWith(".slow.test.ts"))
    .filter((file) => !file.includes("/node_modules/") && !reachesOutside(file))
    .sort();
}
