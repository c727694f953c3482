// Opens a database at the word "go", says how that went, and ends.
import { once } from "node:events";
import { open } from "../../../src/index.ts";

const [url = "", schema = "holdfast"] = process.argv.slice(2);
console.log(JSON.stringify({ type: "here" }));
await once(process.stdin, "data");
process.stdin.destroy();
const hf = await open(url, { schema });
await hf.enqueue("opened", { pid: process.pid });
await hf.close();
console.log(JSON.stringify({ type: "opened" }));
