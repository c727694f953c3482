// A new job, or a copy of one with its input to be edited first. The dialog itself is fetched when it is first asked for.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { toast } from "../kit/toasts.tsx";

export interface Start {
  readonly name?: string;
  readonly queue?: string;
  readonly lane?: string | null;
  readonly priority?: number;
  readonly input?: string | null;
  /** There is an input, which this person may not see. */
  readonly payloadHidden?: boolean;
  readonly masked?: JobDetail["masked"];
}

let fetching = false;

export function enqueueDialog(start: Start): void {
  // Pressed twice is one dialog.
  if (fetching) return;
  fetching = true;
  import("./new-job-dialog.tsx")
    .then(
      ({ newJobDialog }) => newJobDialog(start),
      () => toast("The dialog could not be loaded. Try again.", "bad"),
    )
    .finally(() => (fetching = false));
}
