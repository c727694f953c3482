// The dialog for a new job, or a copy with its input. Loaded when it is first opened.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { toast } from "../kit/toasts.tsx";

export interface Start {
  readonly name?: string;
  readonly queue?: string;
  readonly lane?: string | null;
  readonly priority?: number;
  readonly input?: string | null;
  /** The input exists but the viewer may not see it. */
  readonly payloadHidden?: boolean;
  readonly masked?: JobDetail["masked"];
}

let fetching = false;

export function enqueueDialog(start: Start): void {
  // A double click opens one dialog.
  if (fetching) return;
  fetching = true;
  import("./new-job-dialog.tsx")
    .then(
      ({ newJobDialog }) => newJobDialog(start),
      () => toast("The dialog could not be loaded. Try again.", "bad"),
    )
    .finally(() => (fetching = false));
}
