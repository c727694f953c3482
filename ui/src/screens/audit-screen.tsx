// The audit trail of everything.
import { Head } from "../kit/panels.tsx";
import { AuditTrail } from "../operations/audit-trail.tsx";

export function AuditScreen() {
  return (
    <>
      <Head title="Audit" note="Operator actions on the dashboard and the command line. Kept for 90 days." />
      <section class="panel" aria-label="Audit trail">
        <AuditTrail target={null} empty="Every retry, cancel, pause and change is recorded here." />
      </section>
    </>
  );
}
