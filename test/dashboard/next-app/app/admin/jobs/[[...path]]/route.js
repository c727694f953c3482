// The whole mount: one catch-all route whose every method is the handler.
import { open } from "holdfast";
import { dashboard } from "holdfast/dashboard";

export const dynamic = "force-dynamic";

let mounted;

function handle(request) {
  mounted ??= open().then((hf) => {
    counted(hf[Symbol.for("holdfast.operator")].store);
    return dashboard(hf, {
      auth: { token: process.env.DASHBOARD_TOKEN },
      basePath: "/admin/jobs",
      hosts: [process.env.DASHBOARD_HOST],
    });
  });
  return mounted.then((handler) => handler(request));
}

/** For the test alone: who listens for wake-ups does so as long as somebody reads the live stream. */
function counted(store) {
  const listen = store.listen.bind(store);
  globalThis.listening = 0;
  store.listen = (onWake) => {
    const stop = listen(onWake);
    globalThis.listening += 1;
    return () => {
      globalThis.listening -= 1;
      stop();
    };
  };
}

export { handle as DELETE, handle as GET, handle as PATCH, handle as POST, handle as PUT };
