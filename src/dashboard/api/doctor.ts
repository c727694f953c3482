/**
 * What `holdfast doctor` would say of this database, and how it is kept: schema, retention, who holds it back.
 *
 * Invariants: however many look, the database is looked at every 5 seconds at most; nothing is written, so that the schema is
 * not compared (that makes it once more); no word has an address with its secrets in it.
 * Not here: the facts and the verdicts (../findings.ts, ../diagnosis.ts).
 */
import type { Clock } from "../../clock.ts";
import { diagnose } from "../../operate/doctor/diagnosis.ts";
import { findings, noFacts } from "../../operate/doctor/findings.ts";
import type { DoctorReport } from "./contract.ts";
import type { Holdfast } from "../../index.ts";
import { operatorOf, withoutSecrets } from "../../operate/index.ts";

const trustMs = 5_000;
/** Of each name: a page says "1,000+" where the command line counts on. */
const mostCounted = 1_000;
/** A thousand unserved names are no sentence. */
const mostSaid = 600;

export class Doctor {
  readonly #hf: Holdfast;
  readonly #clock: Clock;
  #known: { readonly at: number; readonly report: Promise<DoctorReport> } | null = null;

  constructor(hf: Holdfast, clock: Clock) {
    this.#hf = hf;
    this.#clock = clock;
  }

  report(): Promise<DoctorReport> {
    const at = this.#clock.monotonic();
    if (this.#known === null || at - this.#known.at >= trustMs) {
      const known = { at, report: look(this.#hf) };
      this.#known = known;
      // What failed is no answer for the next who asks.
      known.report.catch(() => {
        if (this.#known === known) this.#known = null;
      });
    }
    return this.#known.report;
  }
}

async function look(hf: Holdfast): Promise<DoctorReport> {
  const { store, settings, env } = operatorOf(hf);
  const [found, schema, upkeepTasks, queues] = await Promise.all([
    findings(hf, mostCounted),
    store.schemaState(),
    store.upkeep.tasks(),
    store.insight.queueRows(),
  ]);
  const at = env.clock.now();
  const checks = diagnose({
    ...noFacts(at),
    ...found,
    applied: [schema.version],
    drift: "unasked",
    movedTo: schema.movedTo === null ? null : withoutSecrets(schema.movedTo),
  });
  const prune = upkeepTasks.find(({ name }) => name === "prune");
  const { oldestTransactionMs, oldestTransaction, xminAge } = found.inspection ?? {};
  return {
    at,
    ok: checks.every(({ verdict }) => verdict !== "wrong"),
    checks: checks.map((check) => ({ ...check, text: cut(check.text) })),
    schema: { version: schema.version, name: schema.name, appliedAt: schema.appliedAt },
    retention: {
      ...settings.retention,
      queues: queues.filter(({ settings: { retention } }) => retention !== null).length,
      eventLogMs: settings.eventLog?.keepMs ?? null,
    },
    prune:
      prune === undefined
        ? null
        : { doneAt: prune.doneAt.getTime(), nextAt: prune.nextAt.getTime(), by: prune.by },
    oldest: {
      transactionMs: oldestTransactionMs ?? null,
      whose: oldestTransaction?.text ?? null,
      xminAge: xminAge ?? null,
    },
  };
}

function cut(text: string): string {
  return text.length > mostSaid ? `${text.slice(0, mostSaid - 1)}…` : text;
}
