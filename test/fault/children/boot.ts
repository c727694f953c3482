// A first boot: opens the database, enqueues one job, and leaves.
import { open, silentLogger } from "../../../src/index.ts";

const { url, options } = JSON.parse(process.argv[2] ?? "{}") as { url: string; options: { schema?: string } };
const hf = await open(url, { ...options, logger: silentLogger });
await hf.enqueue("nap", { ms: 1 });
await hf.close();
console.log(JSON.stringify({ type: "booted" }));
