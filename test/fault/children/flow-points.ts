// Every point at which a worker of test/fault/children/flow.ts can be killed.

import type { Verb } from "../../support/store-parts.ts";

/** After each await of the handlers, and around each effect. */
export const handlerPoints = [
  "flow: after step first",
  "flow: after sleep nap",
  "flow: after steps left and right",
  "flow: after signal told",
  "flow: after call child",
  "flow: after step last",
  "child: after step made",
  "effect: before",
  "effect: after",
  "paid: after insert",
  "paid: after ctx.commit",
  "paid: after commit",
] as const;

/** Calls of the store that a flow makes. */
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
