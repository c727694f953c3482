/** One scenario of one system in a process of its own. Forked by main.ts; says its figures and ends. */
import { Context, type Figures, type Servers, type Sizes } from "./context.ts";
import { scenarioOf } from "./scenarios.ts";
import { systemOf } from "./systems.ts";

export interface Task {
  readonly system: string;
  readonly scenario: string;
  readonly sizes: Sizes;
  readonly servers: Servers;
}

export type Message =
  | { kind: "progress"; text: string }
  | { kind: "done"; figures: Figures }
  | { kind: "failed"; error: string };

const say = (message: Message): Promise<void> =>
  new Promise((resolve) => {
    if (process.send === undefined) resolve();
    else process.send(message, () => resolve());
  });

let lastProgress = 0;
function progress(text: string): void {
  if (performance.now() - lastProgress < 100) return;
  lastProgress = performance.now();
  void say({ kind: "progress", text });
}

async function obey(task: Task): Promise<void> {
  const context = new Context(systemOf(task.system), task.sizes, task.servers, progress);
  try {
    const figures = await scenarioOf(task.scenario).run(context);
    await say({ kind: "done", figures });
  } catch (error) {
    await say({
      kind: "failed",
      error: error instanceof Error ? (error.stack ?? error.message) : String(error),
    });
  } finally {
    await context.dispose();
    process.exit(0);
  }
}

process.once("message", (task: Task) => void obey(task));
process.once("disconnect", () => process.exit(1));
