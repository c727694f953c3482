/** The audit trail: who did what, newest first. */
import type { AuditLine as Kept } from "../../operate/browse.ts";
import type { AuditLine } from "../api/contract.ts";
import { bad, integer } from "../api/query.ts";
import type { Redactor } from "../access/redact.ts";
import { filterShownTo, type ShowFilter, shownTarget } from "../audit/shown-filter.ts";
import type { Route } from "./route.ts";
import { about } from "./targets.ts";

const mostTarget = 1_000;

export const auditRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/audit",
    id: "listAudit",
    summary:
      "What was done on the dashboard, newest first, or with target what was done to one thing; kept 90 days.",
    permission: "audit:view",
    about: about.audit,
    query: ["limit", "before", "target"],
    answer: "AuditList",
    run: async (context) => {
      const { insight, query, redactor } = context;
      const show = await filterShownTo(context);
      const limit = integer(query, "limit", { min: 1, max: 200, or: 50 });
      const before = query.has("before")
        ? integer(query, "before", { min: 0, max: 2 ** 53 - 1, or: 0 })
        : null;
      const target = query.get("target");
      if (target !== null && (target === "" || target.length > mostTarget))
        throw bad("target", `must be what an entry has as its target, up to ${mostTarget} characters.`);
      const of = target === null ? {} : { target };
      const entries = await insight.audit({ limit: limit + 1, before, ...of });
      const page = entries.slice(0, limit);
      return {
        entries: page.map((entry) => auditLine(entry, show, redactor)),
        before: entries.length > limit ? (page.at(-1)?.id ?? null) : null,
      };
    },
  },
];

/** Reasons, notes and filters are what somebody typed: they are redacted like what they speak of. */
function auditLine(entry: Kept, show: ShowFilter, redactor: Redactor): AuditLine {
  return {
    ...entry,
    target: shownTarget(entry.target, show, redactor),
    details: redactor.json(entry.details, { name: "", queue: "" }),
  };
}
