// Every time zone around every change of its clock, against the oracle.
import { expect, test } from "vitest";
import { cronTiming } from "../../src/schedules/cron.ts";
import { changesOf, hour, iso, minutesOf, oracle, patterns, occurrences, wallOf } from "./cron-oracle.ts";

const zones = Intl.supportedValuesOf("timeZone");
const years: readonly [number, number] = [Date.UTC(2026, 0, 1), Date.UTC(2031, 0, 1)];

test("[lab-T3][G1] in all zones, around every change from 2026 to 2030, forty patterns fire as the oracle says", () => {
  const seen = new Map<string, ReadonlyMap<string, number[]>>();
  let compared = 0;
  for (const zone of zones) {
    for (const change of changesOf(zone, ...years)) {
      const from = change - 14 * hour;
      const to = change + 14 * hour;
      // Zones that share their clocks share a signature: the first of each is asked everything, the others a few.
      const minutes = [change - hour, change].map((t) => wallOf(zone, t) - t).join(" ");
      const key = `${change} ${minutes}`;
      const known = seen.get(key);
      const asked = known === undefined ? patterns : ["30 2 * * *", "*/30 1 * * *", "*/30 * * * *"];
      const walk = known === undefined ? minutesOf(zone, from, to) : [];
      const told = new Map<string, number[]>();
      if (known === undefined) seen.set(key, told);
      for (const pattern of asked) {
        const expected = known?.get(pattern) ?? oracle(pattern, walk, from);
        told.set(pattern, expected);
        const found = occurrences(cronTiming(pattern, zone), from, to);
        if (found.join() !== expected.join())
          expect(iso(found), `${pattern} in ${zone} around ${iso([change])[0]}`).toEqual(iso(expected));
        compared += 1;
      }
    }
  }
  expect(compared).toBeGreaterThan(5_000);
  expect(seen.size).toBeGreaterThan(60);
}, 300_000);
