/**
 * Which commands there are, in the order of the help. To add one: a file in commands/, a line here.
 */
import type { Command } from "./command.ts";
import { batches } from "./commands/batches.ts";
import { benchProbe } from "./commands/bench-probe.ts";
import { completionFor } from "./commands/completion.ts";
import { dashboard } from "./commands/dashboard.ts";
import { demo } from "./commands/demo.ts";
import { doctor } from "./commands/doctor.ts";
import { check, signal } from "./commands/flows.ts";
import { errors } from "./commands/errors.ts";
import { init } from "./commands/init.ts";
import { enqueue } from "./commands/enqueue.ts";
import { jobs, why } from "./commands/jobs.ts";
import { breakers, budgets, lanes } from "./commands/limits.ts";
import { move } from "./commands/move.ts";
import { operations } from "./commands/operations.ts";
import { overrides } from "./commands/overrides.ts";
import { holds, queues } from "./commands/queues.ts";
import { schedules } from "./commands/schedules.ts";
import { create, drop, migrate, reset, status } from "./commands/schema.ts";
import { events, metrics, prune, stats } from "./commands/stats.ts";
import { top } from "./commands/top.ts";
import { work } from "./commands/work.ts";
import { workers } from "./commands/workers.ts";
import type { CommandGroup } from "./help.ts";

const completion = completionFor(() => allCommands);

export const groups: readonly CommandGroup[] = [
  { title: "Begin", commands: [init, demo, work] },
  { title: "Jobs", commands: [enqueue, jobs, batches, errors, operations, why, signal, check] },
  { title: "Steer", commands: [queues, holds, schedules, budgets, lanes, breakers, overrides, workers] },
  { title: "See", commands: [dashboard, stats, top, metrics, events, doctor] },
  { title: "Database", commands: [create, migrate, status, move, prune, drop, reset] },
  { title: "More", commands: [benchProbe, completion] },
];

export const allCommands: readonly Command[] = groups.flatMap(({ commands }) => commands);
