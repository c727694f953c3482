/** The audit trail: what was done, and taking it back where that can be done. */
import { object, text, within } from "../api/schema.ts";
import type { AuditLine as Kept } from "../../operate/browse.ts";
import { type AuditLine, AuditList, Done } from "../api/contract.ts";
import { ApiError } from "../http.ts";
import { bad } from "../api/query.ts";
import type { Redactor } from "../access/redact.ts";
import { filterShownTo, type ShowFilter, shownTarget } from "../audit/shown-filter.ts";
import { putBack, standing } from "../../operate/audit/standings.ts";
import { changedSince, stillStands, undoOf } from "../../operate/audit/undo.ts";
import { nameOf, type Route, route } from "./route.ts";
import { about, ofUndo } from "./targets.ts";

const mostTarget = 1_000;

export const auditRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/audit",
    id: "listAudit",
    summary:
      "What was done on the dashboard, newest first, or with target what was done to one thing; kept 90 days. `undo` says what taking it back would do.",
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
        throw bad("target", `must be what an entry has as its target, up to ${mostTarget} characters.`);
      const of = target === undefined ? {} : { target };
      const entries = await insight.audit({ limit: limit + 1, before, ...of });
      const page = entries.slice(0, limit);
      return {
        entries: page.map((entry) => auditLine(entry, show, redactor)),
        before: entries.length > limit ? (page.at(-1)?.id ?? null) : null,
      };
    },
  }),
  route({
    method: "POST",
    path: "/audit/:id/undo",
    id: "undoAudit",
    summary:
      "Takes an action back, once: needs the permission of what it does (`undo.permission`); 409 where the thing has been changed since.",
    permission: "audit:view",
    about: about.audit,
    write: true,
    answer: Done,
    run: async (context) => {
      const { insight, path, need, audit } = context;
      const id = /^\d{1,15}$/.test(path["id"] ?? "") ? Number(path["id"]) : -1;
      const [entry] = id < 0 ? [] : await insight.audit({ limit: 1, before: id + 1 });
      if (entry?.id !== id) throw new ApiError("NOT_FOUND", "The audit trail has no entry of this id.");
      const undo = undoOf(entry);
      if (undo === null) throw new ApiError("CONFLICT", `${entry.action} cannot be undone here.`);
      await need(undo.permission, () => ofUndo(context, undo));
      const already = new ApiError("CONFLICT", "This was undone already.");
      if (entry.undoneBy !== null) throw already;
      const now = await standing(context.operator, undo.subject, undo);
      if (!stillStands(undo, now)) throw new ApiError("CONFLICT", changedSince(undo, now));
      await putBack(context.operator, undo, nameOf(context));
      // Two at once put back the same; one of them is told that it came second.
      const { action, target } = entry;
      if (!(await audit("audit.undo", String(id), "undone", { action, target, did: undo.words }, id)))
        throw already;
      return { ok: true };
    },
  }),
];

/** Reasons, notes and filters are what somebody typed: they are redacted like what they speak of. */
function auditLine(entry: Kept, show: ShowFilter, redactor: Redactor): AuditLine {
  const undo = entry.undoneBy === null ? undoOf(entry) : null;
  return {
    ...entry,
    target: shownTarget(entry.target, show, redactor),
    details: redactor.json(entry.details, { name: "", queue: "" }),
    undo: undo === null ? null : { words: redactor.text(undo.words), permission: undo.permission },
  };
}
