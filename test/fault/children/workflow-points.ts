// Every point at which a worker of test/fault/children/workflow.ts can be killed.

import type { Verb } from "../../support/store-parts.ts";

/** After each await of the handlers, and around each effect. */
export const handlerPoints = [
  "workflow: after step first",
  "workflow: after sleep nap",
  "workflow: after steps left and right",
  "workflow: after signal told",
  "workflow: after call child",
  "workflow: after step last",
  "child: after step made",
  "effect: before",
  "effect: after",
  "paid: after insert",
  "paid: after ctx.commit",
  "paid: after commit",
] as const;

/** Calls of the store that a workflow makes. */
export const deadlyVerbs = [
  "claims.claim",
  "workflows.steps",
  "workflows.recordSteps",
  "workflows.takeSignal",
  "workflows.startCall",
  "settles.settle",
] as const satisfies readonly Verb[];

/** Before such a call, while it is under way, and after its answer. */
export const storePoints = deadlyVerbs.flatMap((verb) => [
  `${verb}: before` as const,
  `${verb}: under way` as const,
  `${verb}: answered` as const,
]);

export type DeathPoint = (typeof handlerPoints)[number] | (typeof storePoints)[number];

export const deathPoints: readonly DeathPoint[] = [...handlerPoints, ...storePoints];
