/**
 * Which jobs a claim without names may take (`hf.lease`), the same in both dialects: neither machines nor runs with recorded steps.
 *
 * The database knows a machine by the names that workers have registered, or by the step that its enqueue put first into `extras`, and
 * a run by its rows in `step`. It cannot know whether the handler of a job that has not begun will use steps: that is code.
 */
import type { Tables } from "../storage/catalogue.ts";

/** A condition on a row of `ready`. A worker names its jobs: then nothing is looked up. */
export function plainUnlessNamed(t: Tables, row: string, key: "id" | "seq", names: string): string {
  return `(${names} is not null or not exists (
          select 1 from ${t.job} p where p.${key} = ${row}.${key}
            and (p.extras like '{"step":%' or (${row}.begun and (select 1 from ${t.step} e where e.job = p.id limit 1) is not null))))`;
}

/** A condition on a row of `job_type`: no worker has registered its jobs as machines. A worker names its jobs: then nothing is looked up. */
export function noMachineUnlessNamed(t: Tables, jobType: string, names: string): string {
  return `(${names} is not null or not exists (select 1 from ${t.definition} m where m.name = ${jobType}.name and m.is_machine))`;
}
