// The whole mount: one catch-all route whose every method is the handler.
import { open } from "holdfast";
import { dashboard } from "holdfast/dashboard";

export const dynamic = "force-dynamic";

let mounted;

function handle(request) {
  mounted ??= open().then((hf) =>
    dashboard(hf, { auth: { token: process.env.DASHBOARD_TOKEN }, basePath: "/admin/jobs" }),
  );
  return mounted.then((handler) => handler(request));
}

export { handle as DELETE, handle as GET, handle as PATCH, handle as POST, handle as PUT };
