/**
 * The API's description in OpenAPI 3.1, derived from the route table and the schemas of contract.ts. A test holds real
 * answers against it.
 */
import { VERSION } from "../../version.ts";
import { TOPICS } from "../live/topics.ts";
import { type Route, routes } from "../routes/table.ts";
import * as contract from "./contract.ts";
import { READ_AT } from "./headers.ts";
import { type JsonSchema, type ObjectSchema, type Schema, text } from "./schema.ts";

/** A schema of the document: a shape of the contract that occurs in another one is a reference. */
export interface SchemaJson extends Omit<
  JsonSchema,
  "items" | "properties" | "additionalProperties" | "oneOf"
> {
  readonly $ref?: string;
  readonly items?: SchemaJson;
  readonly properties?: Readonly<Record<string, SchemaJson>>;
  readonly additionalProperties?: boolean | SchemaJson;
  readonly oneOf?: readonly SchemaJson[];
}

const { PERMISSIONS: _, ...shapes } = contract;
const named: ReadonlyMap<Schema, string> = new Map(
  Object.entries(shapes).map(([name, schema]) => [schema as Schema, name]),
);

const streamed = `text/event-stream. Topics: ${Object.entries(TOPICS)
  .map(([name, kind]) =>
    "names" in kind ? `${name}:<${kind.names}>` : "filtered" in kind ? `${name}?<filter>` : name,
  )
  .join(
    ", ",
  )}. Data is, for \`snapshot\`, { topic, readAt, value } with what the topic's route answers and when it was begun to be read (of an answer, \`${READ_AT}\` says so); for \`change\` and \`age\` { topic, readAt, delta: { set, drop, lists } } with fields that are other, fields that are gone, and of lists whose things have an id or a name the \`items\` that are other, with all \`keys\` where their order has changed; for \`current\` { topic }; for \`refused\` { topic, status, code, message }; for \`trouble\` { topic, message }.`;

/** The shapes of the contract, by name. */
export const schemas: Readonly<Record<string, SchemaJson>> = {
  ...Object.fromEntries([...named].map(([schema, name]) => [name, inner(schema)])),
  Stream: { type: "string", description: streamed },
};

function refer(schema: Schema): SchemaJson {
  const name = named.get(schema);
  return name === undefined ? inner(schema) : { $ref: `#/components/schemas/${name}` };
}

function inner({ items, properties, additionalProperties: others, oneOf, ...rest }: Schema): SchemaJson {
  return {
    ...rest,
    ...(items === undefined ? {} : { items: refer(items) }),
    ...(properties === undefined ? {} : { properties: fieldsOf({ properties }) }),
    ...(others === undefined
      ? {}
      : { additionalProperties: typeof others === "boolean" ? others : refer(others) }),
    ...(oneOf === undefined ? {} : { oneOf: oneOf.map(refer) }),
  };
}

function fieldsOf({ properties }: Pick<ObjectSchema, "properties">): Record<string, SchemaJson> {
  return Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, refer(schema)]));
}

const errors: Readonly<Record<string, string>> = {
  "400": "The request is wrong; `field` says where.",
  "401": "No user is signed in, or the token is wrong.",
  "403":
    "Not allowed: the permission is missing, the dashboard is read-only, or the request came from another site.",
  "404": "Not found.",
  "405": "The address does not support this method.",
  "409": "The state of the job does not allow this.",
  "413": "The body is too large.",
  "415": "The body is not application/json.",
  "429": "Too many wrong tokens, streams or bulk actions.",
  "500": "An internal error; the log has the cause under `requestId`.",
  "503": "The database did not answer within 5 s.",
};
/** Of answers to requests that have no body. */
const bodyless: readonly string[] = ["413", "415"];
/** Of what everybody may ask. */
const probed: readonly string[] = ["400", "403", "405", "500"];

function errorsOf({ write, probe }: Route): readonly [status: string, description: string][] {
  const all = Object.entries(errors);
  if (probe === true) return all.filter(([status]) => probed.includes(status));
  return write === true ? all : all.filter(([status]) => !bodyless.includes(status));
}

/** The whole document. */
export function openapi(basePath: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Holdfast dashboard API",
      version: VERSION,
      description:
        "Jobs, queues, workers and limits of one Holdfast database. Instants are epoch milliseconds.",
    },
    servers: [{ url: `${basePath}/api/v1` }],
    security: [{ token: [] }],
    paths,
    components: { schemas, securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}

function operation(route: Route): object {
  const inPath = [...route.path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: text,
  }));
  const inQuery = Object.entries(route.query === undefined ? {} : fieldsOf(route.query)).map(
    ([name, schema]) => ({ name, in: "query", required: false, schema }),
  );
  const answer = (schema: Schema): object => ({ content: { [route.type]: { schema: refer(schema) } } });
  return {
    operationId: route.id,
    summary: route.summary,
    ...(route.permission === null ? {} : { "x-permission": route.permission }),
    ...(route.probe === true ? { security: [] } : {}),
    ...(inPath.length + inQuery.length === 0 ? {} : { parameters: [...inPath, ...inQuery] }),
    ...(route.body === undefined
      ? {}
      : {
          requestBody: {
            required: true,
            content: { "application/json": { schema: refer(route.body) } },
          },
        }),
    responses: {
      "200": { description: "OK", ...answer(route.answer) },
      ...(route.later === undefined
        ? {}
        : { "202": { description: "Still running: see /operations/{id}.", ...answer(route.later) } }),
      ...(route.tagged === true
        ? { "304": { description: "Not changed since the answer with this `ETag`." } }
        : {}),
      ...(route.probe === true ? { "503": { description: "No.", ...answer(route.answer) } } : {}),
      ...Object.fromEntries(
        errorsOf(route).map(([status, description]) => [
          status,
          { description, content: { "application/json": { schema: refer(contract.ErrorBody) } } },
        ]),
      ),
    },
  };
}
