/** The audit trail: who did what, newest first. */
import { object, text, within } from "../api/schema.ts";
import type { AuditLine as Kept } from "../../operate/browse.ts";
import { type AuditLine, AuditList } from "../api/contract.ts";
import { bad } from "../api/query.ts";
import type { Redactor } from "../access/redact.ts";
import { filterShownTo, type ShowFilter, shownTarget } from "../audit/shown-filter.ts";
import { type Route, route } from "./route.ts";
import { about } from "./targets.ts";

const mostTarget = 1_000;

export const auditRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/audit",
    id: "listAudit",
    summary:
      "What was done on the dashboard, newest first, or with target what was done to one thing; kept 90 days.",
    permission: "audit:view",
    about: about.audit,
    query: object(
      { limit: within(1, 200, 50) },
      { before: within(0, Number.MAX_SAFE_INTEGER), target: text },
    ),
    answer: AuditList,
    run: async (context) => {
      const { insight, query, redactor } = context;
      const show = await filterShownTo(context);
      const { limit, before = null, target } = query;
      if (target !== undefined && (target === "" || target.length > mostTarget))
        throw bad("target", `must be the target of an entry, up to ${mostTarget} characters.`);
      const of = target === undefined ? {} : { target };
      const entries = await insight.audit({ limit: limit + 1, before, ...of });
      const page = entries.slice(0, limit);
      return {
        entries: page.map((entry) => auditLine(entry, show, redactor)),
        before: entries.length > limit ? (page.at(-1)?.id ?? null) : null,
      };
    },
  }),
];

/** Reasons, notes and filters are what somebody typed: they are redacted like what they speak of. */
function auditLine(entry: Kept, show: ShowFilter, redactor: Redactor): AuditLine {
  return {
    ...entry,
    target: shownTarget(entry.target, show, redactor),
    details: redactor.json(entry.details, { name: "", queue: "" }),
  };
}
