// What it tests is in flow-kills.ts; the other store's half is in flow-kills-sqlite.test.ts.
import { onPostgres } from "../support/stores.ts";
import { flowKills } from "./flow-kills.ts";

onPostgres(flowKills);
