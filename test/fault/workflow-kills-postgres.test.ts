// What it tests is in workflow-kills.ts; the other store's half is in workflow-kills-sqlite.test.ts.
import { onPostgres } from "../support/stores.ts";
import { workflowKills } from "./workflow-kills.ts";

onPostgres(workflowKills);
