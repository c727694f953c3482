// What it tests is in workflow-kills.ts; the other store's half is in workflow-kills-postgres.test.ts.
import { onSqlite } from "../support/stores.ts";
import { workflowKills } from "./workflow-kills.ts";

onSqlite(workflowKills);
