/**
 * Sessions as rows, and the jobs that are held under them.
 *
 * Invariant: an expired session is never revived, and its id is never used again.
 */
import type { ClaimedJob } from "../jobs/job.ts";
import { claimedJob } from "../jobs/plain-claim.ts";
import { flag, maybeNumber, number, text } from "../jobs/rows.ts";
import type { Row } from "../storage/catalogue.ts";
import type { Driver } from "../storage/driver.ts";
import { isId, newSessionId } from "../values/id.ts";
import { readRenewal, renewCall } from "./renew.ts";
import type { GivenBack } from "./request-rows.ts";
import type { Renewal, SessionInfo, SessionStore } from "./store.ts";

/** Requests that are granted at once. */
const MOST_GRANTED = 500;

export class Sessions implements SessionStore {
  readonly #driver: Driver;
  readonly #grant: (given: readonly GivenBack[]) => Promise<void>;

  /** `grant`: grants the requests of jobs that are out of their holders' reach. */
  constructor(driver: Driver, grant: (given: readonly GivenBack[]) => Promise<void>) {
    this.#driver = driver;
    this.#grant = grant;
  }

  async open(info: SessionInfo): Promise<number> {
    const { kind, workerId, name, host, pid, version, leaseMs } = info;
    const params = {
      now: this.#driver.now(),
      kind,
      workerId,
      name,
      host,
      pid,
      version,
      leaseMs,
      queues: JSON.stringify(info.queues),
      names: JSON.stringify(info.names),
      runtime: info.runtime ?? null,
      release: info.release ?? null,
      versions: info.versions === undefined ? null : JSON.stringify(info.versions),
      quietAt: info.quietAt ?? null,
    };
    // A repeat after a lost answer makes another session. The first one holds nothing and expires.
    for (;;) {
      const id = newSessionId();
      const rows = await this.#driver.write({ name: "openSession", params: { ...params, id } }, "settle");
      if (rows.length > 0) return id;
    }
  }

  async isKnown(session: number): Promise<boolean> {
    return (await this.#driver.read({ name: "findSession", params: { session } }, "settle")).length > 0;
  }

  async renew(session: number, aheadMs = 0): Promise<Renewal> {
    return readRenewal(await this.#driver.write(renewCall(session, this.#driver.now(), aheadMs), "settle"));
  }

  async close(session: number): Promise<void> {
    const params = { now: this.#driver.now(), session };
    await this.#driver.write({ name: "closeSession", params }, "settle");
  }

  async forgetDead(): Promise<number> {
    const strays = await this.#driver.read({ name: "strayRequests", params: { limit: MOST_GRANTED } });
    await this.#grant(strays.map((row) => ({ id: text(row, "id"), token: null })));
    return (await this.#driver.write({ name: "deleteEndedSessions", params: { now: this.#driver.now() } }))
      .length;
  }

  async orphans(limit: number): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "orphans", params: { now: this.#driver.now(), limit } });
    return rows.map((row) => ({
      ...heldJob(row, number(row, "session")),
      leaseUntil: maybeNumber(row, "lease_until"),
      ...(flag(row, "unheard") ? { unheard: true as const } : null),
    }));
  }

  async held(wanted: readonly string[]): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "heldJobs", params: { ids: wanted.filter(isId) } });
    return rows.map((row) => heldJob(row, number(row, "session")));
  }

  async heldUnder(session: number, tokens: readonly number[]): Promise<ClaimedJob[]> {
    const rows = await this.#driver.read({ name: "heldUnder", params: { session, tokens } }, "settle");
    return rows.map((row) => heldJob(row, session));
  }
}

/** A job as its holder's claim has it. A job with recorded steps has run, even if its holder no longer knows it after a failover. */
function heldJob(row: Row, session: number): ClaimedJob {
  const job = claimedJob(row, session, { queue: text(row, "queue"), name: text(row, "name") });
  return flag(row, "stepped") ? { ...job, begun: true } : job;
}
