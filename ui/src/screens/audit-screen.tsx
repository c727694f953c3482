// What was done on the dashboard, and by whom.
import { Head } from "../kit/panels.tsx";
import { t } from "../language/translation.ts";
import { AuditTrail } from "../operations/audit-trail.tsx";

export function AuditScreen() {
  return (
    <>
      <Head title={t("Audit")} note={t("What was done on this dashboard, and by whom. Kept 90 days.")} />
      <section class="panel" aria-label={t("Audit trail")}>
        <AuditTrail
          target={null}
          empty={t("Every retry, cancel, pause and change made here leaves a line.")}
        />
      </section>
    </>
  );
}
