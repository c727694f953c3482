// Workflows on their way, the wait for their end, and what is wrong with them then.
import { existsSync, readFileSync } from "node:fs";
import { onTestFinished } from "vitest";
import { type Holdfast, open, silentLogger } from "../../src/index.ts";
import { type NodeProcess, waitFor } from "../support/process.ts";

export const runs = 24;
export const seed = Number(process.env["SEED"] ?? Date.now() % 1_000_000);

export interface Place {
  readonly url: string;
  readonly options: { schema?: string };
}

/** A client of this process's own, with workflows on their way. */
export async function started(place: Place): Promise<{ hf: Holdfast; workflows: string[]; paid: string[] }> {
  const hf = await open(place.url, { ...place.options, logger: silentLogger });
  onTestFinished(() => hf.close());
  const numbers = Array.from({ length: runs }, (_, n) => n);
  const workflows = await hf.enqueueMany(numbers.map((n) => ({ job: "workflow", input: { n } })));
  const paid = await hf.enqueueMany(numbers.map((n) => ({ job: "paid", queue: "paid", input: { n } })));
  return { hf, workflows: workflows.map(({ id }) => id), paid: paid.map(({ id }) => id) };
}

export async function allDone(hf: Holdfast, count: number, children: readonly NodeProcess[]): Promise<void> {
  try {
    const done = async (): Promise<boolean> => (await hf.jobs.count({ state: "done" })) === count;
    await waitFor(done, { what: `${count} jobs to be done`, deadlineMs: 60_000, everyMs: 100 });
  } catch (error) {
    const stuck = await hf.jobs.list({ state: ["ready", "scheduled", "waiting", "running", "dead"] });
    const whys = await Promise.all(stuck.jobs.slice(0, 5).map(({ id }) => hf.jobs.why(id)));
    const output = children.map((child) => child.output.slice(-1_000)).join("\n---\n");
    throw new Error(`${String(error)} seed ${seed} ${JSON.stringify(whys)}\n${output}`, { cause: error });
  }
}

function notes(log: string): { job: string; step: string; nonce: string }[] {
  if (!existsSync(log)) return [];
  const lines = readFileSync(log, "utf8").split("\n");
  return lines.filter((line) => line.endsWith("}")).map((line) => JSON.parse(line) as never);
}

/** What is wrong with the workflows, as sentences: what a run ended with must be what each step did last. */
export async function faults(hf: Holdfast, workflows: readonly string[], log: string): Promise<string[]> {
  const found: string[] = [];
  const last = new Map(notes(log).map(({ job, step, nonce }) => [`${job} ${step}`, nonce]));
  for (const [n, id] of workflows.entries()) {
    const job = await hf.jobs.get(id);
    const output = job?.output as Record<string, unknown> | null;
    if (job?.state !== "done") found.push(`${id} is ${job?.state ?? "gone"}`);
    for (const step of ["first", "left", "right", "last"])
      if (last.get(`${id} ${step}`) !== output?.[step])
        found.push(`${id}: step ${step} ran again after it was finished`);
    if (output?.["told"] !== n) found.push(`${id} was told ${String(output?.["told"])}`);
    const history = await hf.jobs.history(id);
    const called = history?.children.filter(({ relation }) => relation === "called") ?? [];
    if (called.length !== 1) found.push(`${id} has called ${called.length} jobs`);
    if (last.get(`${called[0]?.id} made`) !== output?.["called"]) found.push(`${id}: its child ran again`);
    // A sleep that is over needs no second write: its row stays as it was.
    const open = history?.steps.filter(({ state, kind }) => state === "open" && kind !== "sleep") ?? [];
    for (const { name } of open) found.push(`${id}: ${name} is still open`);
  }
  return found;
}
