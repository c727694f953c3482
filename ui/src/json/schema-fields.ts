// A JSON Schema as form fields. The JSON text is the value, and the form a view of it. Pure; schemas are not trusted.
import { type JsonNode, pretty, readJson } from "./json-text.ts";

export interface FormField {
  readonly key: string;
  /** `json`: any value without its own kind of field. */
  readonly kind: "text" | "number" | "integer" | "choice" | "json";
  readonly required: boolean;
  /** A short type name. */
  readonly type: string;
  readonly hint: string;
  /** Options as JSON. */
  readonly options: readonly string[];
  /** The default as JSON. */
  readonly usual: string | null;
  /** An empty field means null, not a missing member. */
  readonly nullable: boolean;
}

const mostFields = 30;
const mostOptions = 100;
const mostText = 300;

type Unknown = Readonly<Record<string, unknown>>;

/** Null: no form is possible, or it would be too long. */
export function fieldsOf(schema: unknown): readonly FormField[] | null {
  if (!isObject(schema) || schema["type"] !== "object" || !isObject(schema["properties"])) return null;
  // Conditions over several members are edited as JSON.
  if (["$ref", "allOf", "anyOf", "oneOf", "if", "not"].some((word) => Object.hasOwn(schema, word)))
    return null;
  const properties = Object.entries(schema["properties"]);
  if (properties.length === 0 || properties.length > mostFields) return null;
  if (properties.some(([key]) => key === "" || key.length > 100)) return null;
  const required = Array.isArray(schema["required"]) ? (schema["required"] as unknown[]) : [];
  return properties.map(([key, property]) => fieldOf(key, property, required.includes(key)));
}

function fieldOf(key: string, property: unknown, required: boolean): FormField {
  const given = isObject(property) ? property : {};
  const types = [given["type"]].flat().filter((one) => typeof one === "string");
  const nullable = types.includes("null");
  const [type = "", ...others] = types.filter((one) => one !== "null");
  const options = optionsOf(given, type);
  const kind = others.length > 0 ? "json" : kindOf(type, options);
  const format = kind === "text" && typeof given["format"] === "string" ? given["format"].slice(0, 40) : "";
  return {
    key,
    kind,
    required,
    type: kind === "choice" ? "" : format !== "" ? format : kind === "json" ? "JSON" : kind,
    hint: textOf(given["description"]) || textOf(given["title"]),
    options: kind === "choice" ? options : [],
    usual: Object.hasOwn(given, "default") ? JSON.stringify(given["default"]).slice(0, mostText) : null,
    nullable,
  };
}

function kindOf(type: string, options: readonly string[]): FormField["kind"] {
  if (options.length > 0) return options.length > mostOptions ? "json" : "choice";
  if (type === "string") return "text";
  return type === "number" || type === "integer" ? type : "json";
}

function optionsOf(given: Unknown, type: string): string[] {
  if (type === "boolean") return ["true", "false"];
  const values = Array.isArray(given["enum"])
    ? (given["enum"] as unknown[])
    : Object.hasOwn(given, "const")
      ? [given["const"]]
      : [];
  return values.every((one) => one === null || typeof one !== "object")
    ? values.map((one) => JSON.stringify(one))
    : [];
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, mostText) : "";
}

function isObject(value: unknown): value is Unknown {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Members of an object; null: not an object. */
export function membersOf(text: string): ReadonlyMap<string, JsonNode> | null {
  try {
    const node = readJson(text);
    return node.kind === "object" ? new Map(node.members) : null;
  } catch {
    return null;
  }
}

/** The text with one member set or removed. Any other value counts as an empty object. */
export function withMember(text: string, key: string, value: JsonNode | null): string {
  const members = new Map(membersOf(text) ?? []);
  if (value === null) members.delete(key);
  else members.set(key, value);
  return pretty({ kind: "object", members: [...members] }, undefined, 0);
}

/** The field's text for a member; null: only JSON can show it. */
export function shownIn(field: FormField, value: JsonNode | undefined): string | null {
  if (value === undefined) return "";
  if (field.kind === "json") return pretty(value);
  if (value.kind !== "scalar") return null;
  if (value.text === "null" && field.nullable) return "";
  if (field.kind === "choice") return field.options.includes(value.text) ? value.text : null;
  if (field.kind === "text") return value.text.startsWith('"') ? (JSON.parse(value.text) as string) : null;
  return /^-?\d/.test(value.text) ? value.text : null;
}

/** The member for a typed text; null removes it, undefined is invalid. */
export function memberOf(field: FormField, typed: string): JsonNode | null | undefined {
  if (field.kind === "text" ? typed === "" : typed.trim() === "")
    return field.nullable && field.required ? { kind: "scalar", text: "null" } : null;
  if (field.kind === "text") return { kind: "scalar", text: JSON.stringify(typed) };
  if (field.kind === "choice") return { kind: "scalar", text: typed };
  try {
    const node = readJson(typed);
    if (field.kind === "json") return node;
    const fits = node.kind === "scalar" && /^-?\d/.test(node.text);
    if (!fits || (field.kind === "integer" && !Number.isInteger(Number(node.text)))) return undefined;
    return node;
  } catch {
    return undefined;
  }
}

/** Whether an issue's path (`.to`, `["a b"]`, `.items[0]`) begins with this member. */
export function isAt(path: string, key: string): boolean {
  const own = /^[A-Za-z_$][\w$]*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
  return path.startsWith(own) && /^(?:[.[]|$)/.test(path.slice(own.length));
}
