/**
 * How the steps of an ended run are prepared for its retry, the same in both dialects and for a retry by raw SQL.
 *
 *   no undo marker                  ─▶ the run continues: finished steps stay, failed ones count as of an earlier attempt
 *   marker, some steps not undone   ─▶ undoing continues: finished undos stay, the others get their tries anew
 *   marker, every step undone       ─▶ the run starts from the beginning: nothing stays
 *
 * A failed step is not deleted: whether the handler had an answer to the failure is known from the whole history (workflows/replay.ts).
 * Columns are named with their table, because a trigger of SQLite allows no alias.
 */

/** The statements, in order. `among` restricts a column to the retried jobs. */
export function retrySteps(step: string, among: (column: string) => string): readonly [string, string] {
  const marked = `exists (select 1 from ${step} m where m.job = ${step}.job and m.name = '$undo')`;
  return [
    `delete from ${step} where ${among(`${step}.job`)} and case
        when not ${marked} then ${step}.state = 'open' and ${step}.kind = 'step'
        when ${undoLeft(step, `${step}.job`)} then ${step}.kind = 'undo' and ${step}.name <> '$undo' and ${step}.state <> 'done'
        else true end`,
    `update ${step} set attempt = 0 where ${among(`${step}.job`)} and ${step}.state = 'failed' and not ${marked}`,
  ];
}

/** A run has finished steps whose undo has not finished. */
function undoLeft(step: string, job: string): string {
  return `exists (select 1 from ${step} d where d.job = ${job} and d.undo and d.state = 'done'
          and not exists (select 1 from ${step} u where u.job = d.job and u.name = 'undo:' || d.name and u.state = 'done'))`;
}

/** The retried jobs that continue to undo their steps, by id. */
export function undoingAmong(step: string, among: (column: string) => string): string {
  return `select m.job from ${step} m where ${among("m.job")} and m.name = '$undo' and ${undoLeft(step, "m.job")}`;
}
