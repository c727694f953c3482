// Actions on jobs: label, permission and key.
import type { BulkAction, BulkVerb, Permission } from "../../../src/dashboard/api/contract.ts";

export const actions: Readonly<
  Record<BulkAction, { verb: string; permission: Permission; danger: boolean; key: string }>
> = {
  retry: { verb: "Retry", permission: "jobs:retry", danger: false, key: "r" },
  "run-now": { verb: "Run now", permission: "jobs:run", danger: false, key: "n" },
  edit: { verb: "Edit", permission: "jobs:edit", danger: false, key: "e" },
  pause: { verb: "Pause", permission: "jobs:pause", danger: false, key: "p" },
  resume: { verb: "Resume", permission: "jobs:pause", danger: false, key: "P" },
  cancel: { verb: "Cancel", permission: "jobs:cancel", danger: true, key: "c" },
  terminate: { verb: "Terminate", permission: "jobs:terminate", danger: true, key: "!" },
  delete: { verb: "Delete", permission: "jobs:delete", danger: true, key: "#" },
};

/** Includes purge, which acts on a queue. */
export const verbs: Readonly<Record<BulkVerb, (typeof actions)[BulkAction]>> = {
  ...actions,
  purge: { verb: "Purge", permission: "jobs:delete", danger: true, key: "" },
};

/** A dead job can only be moved: it has no due time. */
export function verbOn(action: BulkVerb, dead: boolean): string {
  return action === "edit" && dead ? "Move" : verbs[action].verb;
}
