// The order of the files within a group of projects: those that take longest first, so that no worker is left with one of them
// while the others have nothing to do. vitest knows how long a file took from the run before; a fresh checkout has none, and
// by size, which stands in for it, the longest of all would come last.
import { relative } from "node:path";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { root } from "./repository.ts";

/** Files that take much longer than their size tells, the longest of each project first. */
export const longest: readonly string[] = [
  "test/fault/workflow-kills-postgres.test.ts",
  "test/fault/workflow-kills-sqlite.test.ts",
  "test/fault/limits.test.ts",
  "test/fault/throttles.test.ts",
];

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification): number => {
      const known = longest.indexOf(relative(root, moduleId));
      return known === -1 ? longest.length : known;
    };
    const group = ({ project }: TestSpecification): number => project.config.sequence.groupOrder;
    return (await super.sort(files)).sort((a, b) => group(a) - group(b) || rank(a) - rank(b));
  }
}
