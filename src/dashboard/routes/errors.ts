/** Failures by cause: lists, one of them, and what is decided about it. */
import {
  type Infer,
  instant,
  integer,
  maybe,
  object,
  type ObjectSchema,
  text,
  texts,
} from "../api/schema.ts";
import type { FailureGroup } from "../../operate/browse.ts";
import { FailureGroupDetail, FailureGroups, FailuresBy, type Permission } from "../api/contract.ts";
import { ApiError } from "../http.ts";
import { insightFilter } from "../api/query.ts";
import { resource } from "../api/resource.ts";
import { change, nameOf, type Route, type RouteContext, route, WHILE } from "./route.ts";
import { about } from "./targets.ts";
import { checkBy, checkFailureGroupState, isGroup } from "../../operate/index.ts";

const permission: Permission = "errors:decide";
const NOTE = object({}, { note: maybe(text), link: maybe(text) });
type Note = Infer<typeof NOTE>;
const missing = "There is no such failure group, or it was pruned.";

export const errorsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/errors",
    id: "failureGroups",
    summary:
      "Failure groups, regressed and open ones first: jobs among the newest 50,000 that ended unsuccessfully, and counts of the workers.",
    permission: "view",
    about: about.errorsOfQuery,
    query: object({}, { queue: texts, name: texts, state: texts }),
    answer: FailureGroups,
    run: async (context) => {
      const { state, ...where } = context.query;
      const states = state?.map(checkFailureGroupState);
      const { queues, names } = insightFilter(where);
      const found = await context.insight.failureGroups({
        ...(queues === undefined ? {} : { queues }),
        ...(names === undefined ? {} : { names }),
        ...(states === undefined ? {} : { states }),
        within: queues !== undefined && !(await mayAnywhere(context, names)),
      });
      const show = await shownTo(context);
      return { ...found, groups: found.groups.map(show) };
    },
  }),
  route({
    method: "GET",
    path: "/failures",
    id: "failuresBy",
    summary:
      "Failed attempts by kind, queue, worker, version or hour since an instant (default: a day ago). Workers are known for the last hour or two.",
    permission: "view",
    about: about.cluster,
    query: object({}, { by: text, since: instant }),
    answer: FailuresBy,
    run: async ({ insight, store, query }) => {
      const by = checkBy(query.by ?? null);
      return insight.failuresBy(by, query.since ?? (await store.now()) - 86_400_000);
    },
  }),
  route({
    method: "GET",
    path: "/errors/:group",
    id: "failureGroup",
    summary: "One failure group: counts by the hour, queues, versions.",
    permission: "view",
    about: about.error,
    answer: FailureGroupDetail,
    run: async (context) => {
      const group = context.path["group"] ?? "";
      const found = isGroup(group) ? await context.insight.failureGroup(group) : null;
      if (found === null) throw new ApiError("NOT_FOUND", missing);
      return (await shownTo(context))(found);
    },
  }),
  decision(
    "resolve",
    "resolved",
    "Marks a group as resolved. If the failure occurs again, the group is `regressed`.",
    NOTE,
    (context, group, options) => context.hf.errors.resolve(group, options),
  ),
  decision(
    "ignore",
    "ignored",
    "Ignores a group: for good, `for` a time, `until` an instant, or until `count` further failures.",
    object({}, { ...WHILE, count: integer, note: maybe(text), link: maybe(text) }),
    (context, group, options) => {
      const { for: delay, until, count } = context.body;
      return context.hf.errors.ignore(group, { ...options, for: delay, until, count });
    },
  ),
  decision("reopen", "opened", "Reopens a group.", NOTE, (context, group, options) =>
    context.hf.errors.reopen(group, options),
  ),
  change(
    {
      method: "PATCH",
      path: "/errors/:group",
      id: "noteError",
      summary: "Sets a note or a link; null removes it.",
      permission,
      about: about.error,
      body: NOTE,
    },
    ["errors.note", "noted"],
    async ({ hf, body }, group) => isGroup(group) && hf.errors.set(group, noteOf(body)),
    missing,
  ),
];

function decision<B extends ObjectSchema>(
  verb: "resolve" | "ignore" | "reopen",
  outcome: string,
  summary: string,
  body: B,
  run: (
    context: RouteContext<unknown, Infer<B>>,
    group: string,
    options: { by: string } & ReturnType<typeof noteOf>,
  ) => Promise<boolean>,
): Route {
  return change(
    {
      method: "POST",
      path: `/errors/:group/${verb}`,
      id: `${verb}Error`,
      summary,
      permission,
      about: about.error,
      body,
    },
    [`errors.${verb}`, outcome],
    async (context, group) =>
      isGroup(group) && run(context, group, { ...noteOf(context.body as Note), by: nameOf(context) }),
    missing,
  );
}

function noteOf({ note, link }: Note): Note {
  return { ...(note === undefined ? {} : { note }), ...(link === undefined ? {} : { link }) };
}

/** Whether the causes of these asked may be viewed in all queues. */
function mayAnywhere({ may }: RouteContext, names: readonly string[] | undefined): Promise<boolean> {
  const asked = names === undefined || names.length === 0 ? [null] : names;
  return may("view", () => asked.map((name) => resource("error", null, { name })));
}

/** What an error says may have been in a payload. */
async function shownTo({ may, redactor }: RouteContext): Promise<<T extends FailureGroup>(group: T) => T> {
  const mayPayload = await may("view:payload");
  return (group) => ({ ...group, message: mayPayload ? redactor.text(group.message) : null });
}
