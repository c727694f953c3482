// What was done on the dashboard, and by whom.
import { Head } from "../kit/panels.tsx";
import { AuditTrail } from "../operations/audit-trail.tsx";

export function AuditScreen() {
  return (
    <>
      <Head title="Audit" note="What was done on this dashboard, and by whom. Kept 90 days." />
      <section class="panel" aria-label="Audit trail">
        <AuditTrail target={null} empty="Every retry, cancel, pause and change made here leaves a line." />
      </section>
    </>
  );
}
