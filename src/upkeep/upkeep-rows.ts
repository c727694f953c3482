/**
 * Forgetting what has been kept long enough, and who does the upkeep tasks that one process of a cluster does for all.
 *
 * Whole days are dropped where the database has days (Postgres); the rest goes in batches, each its own transaction,
 * with a turn of the event loop in between, so that neither claims nor this process wait for it.
 */
import { queueSettings } from "../limits/queue-settings.ts";
import { setImmediate as turn } from "node:timers/promises";
import { HIGHEST_ID, idAt } from "../values/id.ts";
import type { UpkeepTaskState, PruneReport, Over, UpkeepStore } from "./store.ts";
import { rowKeyIn } from "../jobs/page-cursor.ts";
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import type { LimitedQueues } from "../limits/limited-queues.ts";
import { flag, maybeText, number, text } from "../jobs/rows.ts";

const DAY_MS = 86_400_000;

interface Rule {
  readonly states: readonly ("done" | "dead" | "cancelled")[];
  /** 0 keeps for ever. */
  readonly keepMs: number;
  /** Null: every queue but `except`. */
  readonly queues: readonly string[] | null;
  readonly except: readonly string[];
}

export class Upkeep implements UpkeepStore {
  readonly #driver: Driver;
  readonly #limitedQueues: LimitedQueues;

  constructor(driver: Driver, limitedQueues: LimitedQueues) {
    this.#driver = driver;
    this.#limitedQueues = limitedQueues;
  }

  async takeTask(name: string, everyMs: number, by: string | null = null): Promise<boolean> {
    const params = { now: this.#driver.now(), name, every: everyMs, by };
    return (await this.#driver.write({ name: "takeUpkeepTask", params })).length > 0;
  }

  async tasks(): Promise<UpkeepTaskState[]> {
    const rows = await this.#driver.read({ name: "upkeepTasks", params: {} });
    return rows.map((row) => ({
      name: text(row, "name"),
      by: maybeText(row, "by"),
      doneAt: new Date(number(row, "done_at")),
      nextAt: new Date(number(row, "next_at")),
    }));
  }

  async over(): Promise<Over> {
    const params = { now: this.#driver.now(), limit: 1 };
    const row = (await this.#driver.read({ name: "over", params }))[0] as Row;
    return {
      sessions: flag(row, "sessions"),
      workflows: flag(row, "workflows"),
      temporaryLimits: flag(row, "temporary_limits"),
      limits: flag(row, "limits"),
      drains: flag(row, "drains"),
    };
  }

  get ownsPartitions(): boolean {
    return this.#driver.ownsPartitions;
  }

  async tidy(retention?: { doneMs: number; deadMs: number }): Promise<void> {
    await this.#driver.tidy(retention === undefined ? null : await this.#longestMs(retention));
    // Nothing of ours leaves a held job without its claim; if anything ever does (a hand in the tables, a restored
    // backup), this files it again, and the job is found like any other orphan.
    await this.#driver.write({ name: "refile", params: {} });
    if (this.#limitedQueues.anyLanes)
      await this.#driver.write({ name: "deleteUnusedLanes", params: { now: this.#driver.now() } });
  }

  /** How long an ended job is kept at most, whatever its queue; Infinity: for ever. */
  async #longestMs(defaults: { doneMs: number; deadMs: number }): Promise<number> {
    const kept = [defaults, ...(await this.#ownRetentions())].flatMap(({ doneMs, deadMs }) => [
      doneMs,
      deadMs,
    ]);
    return Math.max(...kept.map((ms) => (ms === 0 ? Infinity : ms)));
  }

  /** Queues with a retention of their own. */
  async #ownRetentions(): Promise<{ queue: string; doneMs: number; deadMs: number }[]> {
    const rows = await this.#driver.read({ name: "queueRows", params: { names: null } });
    return rows.flatMap((row) => {
      const { retention } = queueSettings(row);
      return retention === null ? [] : [{ queue: text(row, "name"), ...retention }];
    });
  }

  async prune(defaults: { doneMs: number; deadMs: number }, batch: number): Promise<PruneReport> {
    const own = await this.#ownRetentions();
    const except = own.map(({ queue }) => queue);
    const partitions = await this.#driver.dropOld({ ...defaults, exceptQueues: except });
    const rules: Rule[] = [
      { states: ["done"], keepMs: defaults.doneMs, queues: null, except },
      { states: ["dead", "cancelled"], keepMs: defaults.deadMs, queues: null, except },
      ...own.flatMap(({ queue, doneMs, deadMs }): Rule[] => [
        { states: ["done"], keepMs: doneMs, queues: [queue], except: [] },
        { states: ["dead", "cancelled"], keepMs: deadMs, queues: [queue], except: [] },
      ]),
    ];
    const report = { done: 0, dead: 0, cancelled: 0, partitions };
    for (const rule of rules) await this.#apply(rule, batch, report);
    await this.#deleteBatches(rules, batch);
    await this.#deleteExpiredIds(batch);
    await this.#deleteExpiredKeys(batch);
    return report;
  }

  /**
   * Unique keys whose time is over: a job that keeps nothing (`keep: false`), or that was pruned before, has left them. Those of jobs that
   * live stay, and are looked at in pages, so that a long backlog of them holds up nobody.
   */
  async #deleteExpiredKeys(batch: number): Promise<void> {
    let after = { at: 0, scope: "", key: "" };
    for (;;) {
      const now = this.#driver.now();
      const found = await this.#driver.read({ name: "expiredKeys", params: { now, ...after, limit: batch } });
      const over = found.filter((row) => !flag(row, "live"));
      const rows = over.map((row) => ({
        scope: text(row, "scope"),
        key: text(row, "key"),
        id: text(row, "id"),
      }));
      if (rows.length > 0) await this.#driver.write({ name: "deleteExpiredKeys", params: { now, rows } });
      const last = found.at(-1);
      if (last === undefined || found.length < batch) return;
      after = { at: number(last, "expires_at"), scope: text(last, "scope"), key: text(last, "key") };
      await turn();
    }
  }

  /** Ids that nobody sends again any more. */
  async #deleteExpiredIds(batch: number): Promise<void> {
    for (;;) {
      const params = { now: this.#driver.now(), limit: batch };
      const gone = await this.#driver.write({ name: "deleteExpiredIds", params });
      if (gone.length < batch) return;
      await turn();
    }
  }

  /**
   * Batches of which no job is left. Only those that are older than what is kept shortest are looked at: of the others the
   * jobs are there still, as a rule, and each would cost a look every time.
   */
  async #deleteBatches(rules: readonly Rule[], batch: number): Promise<void> {
    const kept = rules.map(({ keepMs }) => keepMs).filter((ms) => ms > 0);
    const before = idAt(
      Math.max(0, this.#driver.clock.now() - (kept.length === 0 ? DAY_MS : Math.min(...kept))),
    );
    for (;;) {
      const gone = await this.#driver.write({ name: "deleteBatches", params: { before, limit: batch } });
      if (gone.length < batch) return;
      await turn();
    }
  }

  async #apply(
    rule: Rule,
    batch: number,
    report: { done: number; dead: number; cancelled: number },
  ): Promise<void> {
    if (rule.keepMs === 0) return;
    // A job's id is from before its end, so nothing with a younger id can have been kept long enough.
    const now = this.#driver.clock.now();
    await this.#applyTo(
      rule,
      { after: null, before: idAt(Math.max(0, now - rule.keepMs + 1)) },
      batch,
      report,
    );
    // A client whose clock was ahead, or a hand, made ids of the future: their jobs have ended all the same.
    if (this.#driver.dialect === "postgres")
      await this.#applyTo(rule, { after: idAt(now + DAY_MS), before: HIGHEST_ID }, batch, report);
  }

  async #applyTo(
    rule: Rule,
    { after: from, before }: { after: string | null; before: string },
    batch: number,
    report: { done: number; dead: number; cancelled: number },
  ): Promise<void> {
    let after = from;
    for (;;) {
      const params = {
        now: this.#driver.now(),
        after,
        before,
        states: rule.states,
        keep: rule.keepMs,
        queues: rule.queues,
        except: rule.except,
        limit: batch,
      };
      const rows = await this.#driver.read({ name: "expired", params });
      const last = rows.at(-1);
      if (last === undefined) return;
      const gone = await this.#driver.write({
        name: "forget",
        params: { now: this.#driver.now(), ids: rows.map((row) => text(row, "id")), freed: false },
      });
      for (const row of gone) {
        const state = row["state"];
        if (state === "done" || state === "dead" || state === "cancelled") report[state] += 1;
      }
      if (rows.length < batch) return;
      after = String(rowKeyIn(last));
      await turn();
    }
  }
}
