// Ends the run with one plain line, `12 passed, 0 failed, 0 skipped`, for whoever reads the log by machine.
// A file that could not be loaded and an error outside of any test count as failed, as vitest's exit code does.
import type { Reporter, SerializedError, TestModule } from "vitest/node";

export default class PlainResultReporter implements Reporter {
  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly SerializedError[]): void {
    let passed = 0;
    let failed = unhandledErrors.length;
    let skipped = 0;
    for (const module of modules) {
      let failedHere = 0;
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === "passed") passed++;
        else if (state === "failed") failedHere++;
        else skipped++;
      }
      if (failedHere === 0 && !module.ok()) failedHere = 1;
      failed += failedHere;
    }
    // Written at exit: vitest's own summary is on the way out when this is called.
    process.once("exit", () =>
      process.stdout.write(`\n${passed} passed, ${failed} failed, ${skipped} skipped\n`),
    );
  }
}
