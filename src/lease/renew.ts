/**
 * Renewing a session: one statement and one reading of its answer, for the store and for the renewing thread, which has
 * a connection of its own that can do nothing else (storage/sqlite/renewal-connection.ts, storage/postgres/renewal-connection.ts).
 */
import type { Renewal } from "./store.ts";
import type { Call, Row } from "../storage/catalogue.ts";
import { flag, maybeNumber, text } from "../jobs/rows.ts";

/** A connection that can do one thing. */
export interface RenewalConnection {
  renew(session: number): Promise<Renewal>;
  close(): Promise<void>;
}

export function renewCall(session: number, now: number | null, aheadMs = 0): Call<"renew"> {
  return { name: "renew", params: { now, session, ahead: Math.ceil(aheadMs) } };
}

export function readRenewal(rows: readonly Row[]): Renewal {
  const [row] = rows;
  if (row === undefined) return { alive: false, requests: [], claims: [], stop: false, quietAt: null };
  return {
    alive: true,
    stop: flag(row, "stop"),
    quietAt: maybeNumber(row, "quiet_at"),
    requests: JSON.parse(text(row, "requests")) as Renewal["requests"],
    claims: JSON.parse(text(row, "claims")) as Renewal["claims"],
  };
}
