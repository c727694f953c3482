// Answers against the schemas of the OpenAPI file.
import { type SchemaJson, schemas } from "../../src/dashboard/api/openapi.ts";

/** Where a value is not what a schema says. */
export function misfits(schema: SchemaJson, value: unknown, at: string): string[] {
  if (schema.$ref !== undefined) return misfits(schemas[schema.$ref.split("/").at(-1)!]!, value, at);
  if (schema.oneOf !== undefined)
    return schema.oneOf.some((one) => misfits(one, value, at).length === 0)
      ? []
      : [`${at}: none of the shapes`];
  if (schema.const !== undefined) return value === schema.const ? [] : [`${at}: not ${String(schema.const)}`];
  const types = schema.type === undefined ? [] : [schema.type].flat();
  const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
  const fits =
    types.length === 0 ||
    types.includes(type) ||
    (type === "number" && types.includes("integer") && Number.isInteger(value));
  if (!fits) return [`${at}: ${type}, not ${types.join("|")}`];
  if (schema.enum !== undefined && value !== null && !schema.enum.includes(value))
    return [`${at}: ${String(value)} is not in the enum`];
  if (type === "array")
    return (value as unknown[]).flatMap((item, i) => misfits(schema.items ?? {}, item, `${at}[${i}]`));
  if (type !== "object") return [];
  const fields = value as Record<string, unknown>;
  const missing = (schema.required ?? [])
    .filter((name) => !Object.hasOwn(fields, name))
    .map((name) => `${at}.${name}: missing`);
  const rest = Object.entries(fields).flatMap(([name, part]) => {
    const own = schema.properties?.[name];
    if (own !== undefined) return misfits(own, part, `${at}.${name}`);
    if (schema.additionalProperties === false) return [`${at}.${name}: not described`];
    return typeof schema.additionalProperties === "object"
      ? misfits(schema.additionalProperties, part, `${at}.${name}`)
      : [];
  });
  return [...missing, ...rest];
}
