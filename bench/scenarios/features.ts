/** What a feature costs against the plain path: enqueues/s with 100 in flight (transactions: 10 connections). */
import pg from "pg";
import { microseconds } from "../adapter.ts";
import type { Context, Figures } from "../context.ts";
import { inFlight } from "./enqueue.ts";

const text = "x".repeat(70);

export async function features(context: Context): Promise<Figures> {
  const seconds = context.sizes.enqueueSeconds;
  const target = await context.fresh("drain");
  const client = await context.open(target);
  const figures: Figures = {};
  context.progress("plain");
  const plain = await inFlight((n) => client.add({ n, at: microseconds(), text }), 100, seconds);
  figures["plain"] = plain.rate;
  if (client.addUnique) {
    context.progress("unique key");
    const job = (n: number): Promise<unknown> =>
      client.addUnique!({ n, at: microseconds(), text }, `key-${n}`);
    figures["unique"] = (await inFlight(job, 100, seconds)).rate;
    figures["uniqueKept"] = figures["unique"] / figures["plain"];
  }
  if (client.addInTransaction && context.system.store === "postgres") {
    const admin = new pg.Pool({ connectionString: target.url, max: 10 });
    await admin.query("create table business (n int)");
    context.progress("the transaction alone");
    const alone = async (n: number): Promise<void> => {
      const connection = await admin.connect();
      try {
        await connection.query("begin");
        await connection.query("insert into business (n) values ($1)", [n]);
        await connection.query("commit");
      } finally {
        connection.release();
      }
    };
    figures["transactionAlone"] = (await inFlight(alone, 10, seconds)).rate;
    await admin.end();
    context.progress("in a transaction");
    const job = (n: number): Promise<unknown> => client.addInTransaction!({ n, at: microseconds(), text });
    figures["transaction"] = (await inFlight(job, 10, seconds)).rate;
    figures["transactionKept"] = figures["transaction"] / figures["transactionAlone"];
  }
  return figures;
}
