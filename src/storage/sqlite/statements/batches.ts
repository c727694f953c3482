/**
 * Batches: what was enqueued together, and how far it is. Read it beside storage/postgres/statements/batches.ts: same names, same order, same
 * parameters.
 */
import type { Statements, Tables } from "../../catalogue.ts";
import { seqOf } from "../seq.ts";

export function batchStatements(t: Tables) {
  const seq = seqOf(t);
  const columns = (b: string) =>
    `${b}.id, ${b}.made_at, ${b}.total, ${b}.names, ${b}.then_job, ${b}.then_name, ${b}.policy`;
  return {
    addBatch: `
      insert into ${t.batch} (id, made_at, total, names, then_job, then_name, policy)
      values (:id, :now, :total, :names, :thenJob, :thenName, :policy) on conflict do nothing`,
    addMembers: `
      insert into ${t.member} (batch, seq) select :rows.batch, known.seq from ${t.job} known where known.id = :rows.id on conflict do nothing`,
    walkBatches: `
      select ${columns("b")} from ${t.batch} b where b.id < :before order by b.id desc limit :limit`,
    // The newest members of each; each is looked up where it is.
    tallyBatches: `
      select n.value as id, count(*) as counted, sum(h.state is 'done') as done, sum(h.state is 'dead') as dead,
        sum(h.state is 'cancelled') as cancelled, count(r.token) as running,
        min(coalesce(h.started_at, r.started_at)) as started_at, max(h.ended_at) as ended_at
      from json_each(:ids) n cross join ${t.member} m on m.batch = n.value
        and m.seq >= coalesce((select k.seq from ${t.member} k where k.batch = n.value order by k.seq desc limit 1 offset :most - 1), 0)
      left join ${t.history} h on h.seq = m.seq left join ${t.ready} r on r.seq = m.seq
      group by n.value`,
    batchesOf: `
      select ${columns("b")}, x."then" from (
        select * from (select m.batch, 0 as "then" from ${t.member} m where m.seq = ${seq.of(":id")} order by m.batch desc limit :limit)
        union all
        select * from (select k.id, 1 from ${t.batch} k where k.then_job = :id order by k.id desc limit :limit)
      ) x cross join ${t.batch} b on b.id = x.batch
      order by b.id desc, x."then" limit :limit`,
    deleteBatches: `
      delete from ${t.batch} where id in (
        select b.id from ${t.batch} b where b.id < :before and not exists (select 1 from ${t.member} m where m.batch = b.id)
        order by b.id limit :limit
      ) returning id`,
  } satisfies Partial<Statements>;
}
