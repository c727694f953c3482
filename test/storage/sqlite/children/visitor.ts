// Another program with another SQLite: opens the file, reads, and closes it.
import Database from "better-sqlite3";

const db = new Database(process.argv[2] ?? "");
const { jobs } = db.prepare("select count(*) as jobs from holdfast_job").get() as { jobs: number };
db.close();
console.log(JSON.stringify({ type: "visited", jobs }));
