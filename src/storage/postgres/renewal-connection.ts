/** Renewing a session over a Postgres connection of its own, for the thread that renews. */
import { systemClock } from "../../clock.ts";
import { readRenewal, renewCall, type RenewalConnection } from "../../lease/renew.ts";
import { Connections } from "./connections.ts";
import { Compiler } from "./driver.ts";

export async function openPostgresRenewal(url: string, schema: string): Promise<RenewalConnection> {
  const connections = await Connections.open(url, {
    poolSize: 1,
    applicationName: "holdfast renewal",
    clock: systemClock,
    onConnectionLost: () => {},
    onConnectionBack: () => {},
  });
  const compiler = new Compiler(schema);
  return {
    renew: async (session) =>
      readRenewal(await connections.query(compiler.prepare(renewCall(session, null)), "settle")),
    close: () => connections.close(),
  };
}
