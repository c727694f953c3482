// What it tests is in flow-kills.ts; the other store's half is in flow-kills-postgres.test.ts.
import { onSqlite } from "../support/stores.ts";
import { flowKills } from "./flow-kills.ts";

onSqlite(flowKills);
