/**
 * Schemas of the API: each is a node of JSON Schema that also has a static type, so that one declaration yields the
 * type, the check of a request and the OpenAPI description.
 *
 * Not here: the shapes (contract.ts), the OpenAPI document (openapi.ts), reading requests (query.ts).
 */
/** The part of JSON Schema that the API uses. */
export interface JsonSchema {
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly oneOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly maxItems?: number;
  readonly default?: unknown;
  /** A list in a query string: each value is a parameter of its own, and may contain commas. */
  readonly explode?: true;
}

/** A node whose values have the static type `T`. */
export interface Schema<T = unknown> extends JsonSchema {
  /** Never there at run time. */
  readonly "~type"?: T;
}

/** The static type of a schema's values. */
export type Infer<S> = S extends { readonly "~type"?: infer T } ? T : never;

type Fields = Readonly<Record<string, Schema>>;
type Inferred<F extends Fields> = { readonly [K in keyof F]: Infer<F[K]> };
type Optional<F extends Fields> = { readonly [K in keyof F]?: Infer<F[K]> };

/** A schema of objects, with its fields. */
export interface ObjectSchema<T = unknown> extends Schema<T> {
  readonly properties: Fields;
  readonly required: readonly string[];
}

export const text: Schema<string> = { type: "string" };
export const number: Schema<number> = { type: "number" };
export const integer: Schema<number> = { type: "integer" };
export const flag: Schema<boolean> = { type: "boolean" };
export const anything: Schema = {};
export const duration: Schema<string | number> = {
  type: ["string", "integer"],
  description: 'A duration such as "5m", or milliseconds.',
};
/** At most 1,000 texts. In a query string: `a,b`, or the parameter several times. In a body one text will do. */
export const texts: Schema<readonly string[]> = { type: "array", items: text, maxItems: 1_000 };
export const instant: Schema<number> = {
  type: "integer",
  description: "Epoch milliseconds.",
  minimum: 0,
  maximum: 8.64e15,
};
/** A map or an option whose content the client checks. */
export const anyObject: Schema<Readonly<Record<string, unknown>>> = { type: "object" };
export const jsonText: Schema<string | null> = {
  type: ["string", "null"],
  description: "JSON as text, redacted; null: absent, or not visible to you.",
};

export function oneOf<const T extends string>(...values: readonly T[]): Schema<T> {
  return { type: "string", enum: values };
}

/** An integer with bounds and, in a query string, a default. */
export function within(minimum: number, maximum: number, fallback?: number): Schema<number> {
  return {
    type: "integer",
    minimum,
    maximum,
    ...(fallback === undefined ? {} : { default: fallback }),
  };
}

export function list<S extends Schema>(items: S): Schema<readonly Infer<S>[]> {
  return { type: "array", items };
}

/** The same, or null. */
export function maybe<S extends Schema>(schema: S): Schema<Infer<S> | null> {
  if (schema.properties !== undefined || schema.type === undefined)
    return { oneOf: [schema, { type: "null" }] };
  return { ...schema, type: [schema.type, "null"].flat() } as Schema<Infer<S> | null>;
}

/** An object with all of the `fields`, some of the `optional` ones, and no others. */
export function object<F extends Fields>(fields: F): ObjectSchema<Inferred<F>> & { readonly properties: F };
export function object<F extends Fields, O extends Fields>(
  fields: F,
  optional: O,
): ObjectSchema<Inferred<F> & Optional<O>> & { readonly properties: F & O };
export function object(fields: Fields, optional: Fields = {}): ObjectSchema {
  const properties = { ...fields, ...optional };
  return { type: "object", properties, required: Object.keys(fields), additionalProperties: false };
}

export function record<S extends Schema>(values: S): Schema<Readonly<Record<string, Infer<S>>>> {
  return { type: "object", additionalProperties: values };
}

export function described<S extends Schema>(description: string, schema: S): S {
  return { ...schema, description };
}

/** A schema for values whose type the API's own code or the client ensures. */
export function typed<T>(schema: JsonSchema): Schema<T> {
  return schema;
}
