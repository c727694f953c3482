/**
 * All commands, in the order of the help. A new one needs a file in the folder of its group, and a line here.
 */
import type { Command } from "./command.ts";
import { batches } from "./jobs/batches-command.ts";
import { benchProbe } from "./tools/bench-probe-command.ts";
import { completionFor } from "./tools/completion-command.ts";
import { dashboard } from "./monitor/dashboard-command.ts";
import { demo } from "./start/demo-command.ts";
import { doctor } from "./monitor/doctor-command.ts";
import { check, signal } from "./jobs/run-commands.ts";
import { errors } from "./jobs/errors-command.ts";
import { init } from "./start/init-command.ts";
import { enqueue } from "./jobs/enqueue-command.ts";
import { jobs, why } from "./jobs/job-commands.ts";
import { breakers, budgets, lanes } from "./control/limit-commands.ts";
import { move } from "./database/move-command.ts";
import { operations } from "./jobs/operations-command.ts";
import { temporaryLimits } from "./control/temporary-limits-command.ts";
import { holds, queues } from "./control/queue-commands.ts";
import { schedules } from "./control/schedules-command.ts";
import { create, drop, migrate, reset, status } from "./database/schema-commands.ts";
import { events, metrics, prune, stats } from "./monitor/stats-commands.ts";
import { top } from "./monitor/top-command.ts";
import { work } from "./start/work-command.ts";
import { workers } from "./control/workers-command.ts";
import type { CommandGroup } from "./help.ts";

const completion = completionFor(() => allCommands);

export const groups: readonly CommandGroup[] = [
  { title: "Start", commands: [init, demo, work] },
  { title: "Jobs", commands: [enqueue, jobs, batches, errors, operations, why, signal, check] },
  {
    title: "Control",
    commands: [queues, holds, schedules, budgets, lanes, breakers, temporaryLimits, workers],
  },
  { title: "Monitor", commands: [dashboard, stats, top, metrics, events, doctor] },
  { title: "Database", commands: [create, migrate, status, move, prune, drop, reset] },
  { title: "Tools", commands: [benchProbe, completion] },
];

export const allCommands: readonly Command[] = groups.flatMap(({ commands }) => commands);
