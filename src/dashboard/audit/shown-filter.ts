/**
 * Filters of others, as they are shown on the audit trail and in the list of bulk actions.
 *
 * What a filter looks for in payloads and error texts says something about them. It is shown to whoever may look for it
 * (`jobs:search` and `view:payload`), redacted as they are; to others only that something was looked for: left out, it would
 * seem as if the action had been on all jobs.
 */
import type { InsightFilter } from "../../operate/browse.ts";
import { wordTexts } from "../../operate/filter-range.ts";
import type { FilterJson } from "../api/contract.ts";
import { defined } from "../api/query.ts";
import { REDACTED, type Redactor } from "../access/redact.ts";
import type { RouteContext } from "../routes/route.ts";

export type ShowFilter = (filter: InsightFilter) => FilterJson;

export async function filterShownTo({
  may,
  redactor,
}: Pick<RouteContext, "may" | "redactor">): Promise<ShowFilter> {
  const quotes = (await may("jobs:search")) && (await may("view:payload"));
  return (filter) => shownFilter(filter, quotes ? redactor : null);
}

/** The filter as it can be given again, but for what is redacted; without a redactor nothing of payloads is shown. Pure. */
export function shownFilter(filter: InsightFilter, redactor: Redactor | null): FilterJson {
  const { states, queues, names, attempt, ran, ended, worker, error, payload, search, ...rest } = filter;
  const text = (value: string | undefined): string | undefined =>
    value === undefined || redactor !== null ? (redactor?.text(value ?? null) ?? undefined) : REDACTED;
  const job = { name: names?.[0] ?? "", queue: queues?.[0] ?? "" };
  const words = wordTexts(defined({ attempt, ran, ended, worker, error: text(error) }));
  return defined({
    ...rest,
    ...words,
    payload: payload?.map(({ path, value }) =>
      redactor === null
        ? REDACTED
        : `${path.join(".")}:${isMasked(path, value, job, redactor) ? REDACTED : value}`,
    ),
    search: text(search),
    state: states,
    queue: queues,
    name: names,
  });
}

/** Whether the value would be taken out of a payload that has it at this path. */
function isMasked(
  path: readonly string[],
  value: unknown,
  job: { readonly name: string; readonly queue: string },
  redactor: Redactor,
): boolean {
  let inner: unknown = value;
  for (const key of [...path].reverse()) inner = { [key]: inner };
  return redactor.masking(JSON.stringify(inner) ?? "null", job).masked.length > 0;
}

/** A target of the audit trail: the filter of a bulk action as JSON, which may be cut, or the name of a thing. */
export function shownTarget(target: string | null, show: ShowFilter, redactor: Redactor): string | null {
  if (target === null || !target.startsWith("{")) return redactor.text(target);
  try {
    return JSON.stringify(show(JSON.parse(target) as InsightFilter));
  } catch {
    // Cut: what it looks for cannot be told from the rest.
    return /"(search|error|payload)"/.test(target) ? REDACTED : redactor.text(target);
  }
}
