// A job that exists if and only if your own transaction commits. `node examples/transaction.ts`
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { defineJob, open } from "holdfast";

const sendReceipt = defineJob({
  name: "send-receipt",
  run: async (input: { order: number }) => console.log(`receipt for order ${input.order}`),
});

const folder = mkdtempSync(join(tmpdir(), "holdfast-example-"));
const hf = await open(`sqlite:${folder}/app.db`);
const db = new DatabaseSync(`${folder}/app.db`);
db.exec("create table orders (id integer primary key, paid integer not null)");

/** Stores the order and enqueues its receipt: both, or neither. */
async function placeOrder(id: number, fails: boolean): Promise<void> {
  db.exec("begin immediate");
  try {
    db.prepare("insert into orders values (?, 1)").run(id);
    await hf.enqueue(sendReceipt, { order: id }, { tx: db });
    if (fails) throw new Error(`order ${id} was refused`);
    db.exec("commit");
  } catch (error) {
    db.exec("rollback");
    console.log(String(error));
  }
}

await placeOrder(1, false);
await placeOrder(2, true);

const worker = hf.work([sendReceipt], { queues: ["default"] });
await worker.idle();
console.log(`jobs: ${await hf.jobs.count()}, orders: ${db.prepare("select * from orders").all().length}`);

await worker.stop();
await hf.close();
db.close();
rmSync(folder, { recursive: true });
