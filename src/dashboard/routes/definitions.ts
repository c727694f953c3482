/** Kinds of jobs, for whoever enqueues one: which there are, and what one takes. */
import { checkName } from "../../values/name.ts";
import { jsonSchemaOf, type StandardSchemaV1 } from "../../values/input-schema.ts";
import { DefinitionDetail, DefinitionList } from "../api/contract.ts";
import { type Route, type RouteContext, route } from "./route.ts";
import { about, queueOfName } from "./targets.ts";

const mostDefinitions = 1_000;
const mostSchemaChars = 65_536;

export const definitionsRoutes: readonly Route[] = [
  route({
    method: "GET",
    path: "/definitions",
    id: "listDefinitions",
    summary: "Job names that workers have registered, or that this process defines.",
    permission: "view",
    about: about.all("definition"),
    answer: DefinitionList,
    run: async (context) => {
      const registered = await context.store.definitions.list();
      const names = [...new Set([...registered.keys(), ...context.definitions()])].sort();
      return {
        names: names.slice(0, mostDefinitions).map((name) => lineOf(context, name, registered.get(name))),
      };
    },
  }),
  route({
    method: "GET",
    path: "/definitions/:name",
    id: "getDefinition",
    summary: "One job name: its queue, required options, and the schemas of its input and signals.",
    permission: "view",
    about: about.definition,
    answer: DefinitionDetail,
    run: async (context) => {
      const name = checkName(context.path["name"], "name");
      const { input = null, signals = [] } = context.definition(name) ?? {};
      return {
        ...lineOf(context, name, (await context.store.definitions.list()).get(name)),
        queue: queueOfName(context, name),
        ...shownSchema(input),
        signals: signals.map((signal) => ({ name: signal.name, ...shownSchema(signal.data) })),
      };
    },
  }),
];

function shownSchema(schema: StandardSchemaV1 | null): Pick<DefinitionDetail, "checked" | "schema"> {
  return { checked: schema !== null, schema: schema === null ? null : jsonSchemaOf(schema, mostSchemaChars) };
}

/** This process's own definition knows better than the last worker that started. */
function lineOf(
  { definition }: RouteContext,
  name: string,
  registered: { readonly unique: boolean; readonly lane: boolean } | undefined,
): DefinitionList["names"][number] {
  const job = definition(name);
  if (job === null)
    return { name, unique: registered?.unique === true, lane: registered?.lane === true, here: false };
  return { name, unique: job.unique !== null, lane: job.lane !== null, here: true };
}
