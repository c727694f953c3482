/**
 * Batches: what was enqueued together, and how far it is. Read it beside storage/sqlite/statements/batches.ts: same names, same order, same
 * parameters.
 */
import type { Statements, Tables } from "../../catalogue.ts";

export function batchStatements(t: Tables, NOW: string) {
  const columns = (b: string) =>
    `${b}.id, ${b}.made_at, ${b}.total, ${b}.names, ${b}.then_job, ${b}.then_name, ${b}.policy`;
  return {
    addBatch: `
      insert into ${t.batch} (id, made_at, total, names, then_job, then_name, policy)
      values (:id::uuid, ${NOW}, :total::int, :names::text, :thenJob::uuid, :thenName::text, :policy::text) on conflict do nothing`,
    addMembers: `
      insert into ${t.member} (batch, id) select * from unnest(:rows.batch::uuid[], :rows.id::uuid[]) on conflict do nothing`,
    walkBatches: `
      select ${columns("b")} from ${t.batch} b where b.id < :before::uuid order by b.id desc limit :limit::int`,
    // The newest members of each; each is looked up where it is, behind a fence, as in `browseMembers`.
    tallyBatches: `
      select n.id, count(*) as counted, count(*) filter (where h.state = 'done') as done, count(*) filter (where h.state = 'dead') as dead,
        count(*) filter (where h.state = 'cancelled') as cancelled, count(r.token) as running,
        min(coalesce(h.started_at, r.started_at)) as started_at, max(h.ended_at) as ended_at
      from unnest(:ids::uuid[]) as n (id)
      cross join lateral (select k.id from ${t.member} k where k.batch = n.id order by k.id desc limit :most::int) m
      left join lateral (select k.state, k.started_at, k.ended_at from ${t.history} k where k.id = m.id offset 0) h on true
      left join lateral (select k.token, k.started_at from ${t.ready} k where k.id = m.id and h.state is null offset 0) r on true
      group by n.id`,
    batchesOf: `
      select ${columns("b")}, x.then from (
        (select m.batch, false as then from ${t.member} m where m.id = :id::uuid order by m.batch desc limit :limit::int)
        union all
        (select k.id, true from ${t.batch} k where k.then_job = :id::uuid order by k.id desc limit :limit::int)
      ) x cross join lateral (select * from ${t.batch} k where k.id = x.batch offset 0) b
      order by b.id desc, x.then limit :limit::int`,
    deleteBatches: `
      delete from ${t.batch} where id = any(array(
        select b.id from ${t.batch} b where b.id < :before::uuid and not exists (select 1 from ${t.member} m where m.batch = b.id)
        order by b.id limit :limit::int
      )) returning id`,
  } satisfies Partial<Statements>;
}
