/**
 * Changing an input by a description, without code: a JSON Merge Patch (RFC 7396: an object whose nulls take away) or a JSON
 * Patch (RFC 6902: a list of add, remove, replace, move, copy, test).
 *
 * Invariants: pure; numbers that JavaScript would round keep their digits, as nothing but what is patched is read as a
 * value; a patch that does not fit an input changes nothing of it.
 */
import { shown, UsageError } from "../errors.ts";

/** One step of a JSON Patch. */
export interface PatchStep {
  readonly op: "add" | "remove" | "replace" | "move" | "copy" | "test";
  /** A JSON pointer: "/user/plan", "/items/0", "/items/-". */
  readonly path: string;
  readonly from?: string;
  readonly value?: unknown;
}

/** A merge patch, or the steps of a patch. */
export type InputPatch = Readonly<Record<string, unknown>> | readonly PatchStep[];

const ops: readonly string[] = ["add", "remove", "replace", "move", "copy", "test"];
const most = 100;

/** @throws UsageError BAD_OPTION */
export function checkPatch(given: unknown, what = "patch"): InputPatch {
  const wrong = (text: string): UsageError =>
    new UsageError("BAD_OPTION", `${what} ${text}`, { details: { option: what } });
  if (typeof given !== "object" || given === null)
    throw wrong(
      `must be an object to merge into the input, such as { "plan": "pro", "old": null }, or a list of steps; got ${shown(given)}.`,
    );
  if (!Array.isArray(given)) {
    if (Object.keys(given).length === 0) throw wrong("is empty, so it changes nothing.");
    return given as InputPatch;
  }
  if (given.length === 0 || given.length > most) throw wrong(`must have 1 to ${most} steps.`);
  for (const [i, step] of (given as unknown[]).entries()) {
    const { op, path, from } = (step ?? {}) as Partial<Record<keyof PatchStep, unknown>>;
    if (typeof op !== "string" || !ops.includes(op))
      throw wrong(`[${i}].op must be one of ${ops.join(", ")}; got ${shown(op)}.`);
    if (!isPointer(path))
      throw wrong(`[${i}].path must be a JSON pointer such as "/user/plan"; got ${shown(path)}.`);
    if ((op === "move" || op === "copy") && !isPointer(from))
      throw wrong(`[${i}].from must be a JSON pointer; got ${shown(from)}.`);
    if (["add", "replace", "test"].includes(op) && !Object.hasOwn(step as object, "value"))
      throw wrong(`[${i}].value is missing.`);
  }
  return given as InputPatch;
}

function isPointer(text: unknown): text is string {
  if (typeof text !== "string" || text.length > 1_024) return false;
  return text === "" || (text.startsWith("/") && !/~(?![01])/.test(text));
}

/**
 * The input's text, patched; null: the patch does not fit it (a place that is not there, a test that fails, no JSON).
 *
 * @example
 * patched('{"user":{"plan":"free","old":1}}', { user: { plan: "pro", old: null } }); // '{"user":{"plan":"pro"}}'
 */
export function patched(text: string, patch: InputPatch): string | null {
  try {
    const value = JSON.parse(text, exact as never) as unknown;
    const next = Array.isArray(patch) ? (patch as PatchStep[]).reduce(apply, value) : merged(value, patch);
    return JSON.stringify(next) ?? null;
  } catch (error) {
    if (error instanceof Misfit || error instanceof SyntaxError) return null;
    throw error;
  }
}

class Misfit extends Error {}

type RawJson = { readonly rawJSON: (text: string) => unknown };

/** A number whose text JavaScript would not write the same stays text. */
function exact(_key: string, value: unknown, context?: { source?: string }): unknown {
  return typeof value === "number" && context?.source !== undefined && String(value) !== context.source
    ? (JSON as unknown as RawJson).rawJSON(context.source)
    : value;
}

type Json = Record<string, unknown>;

function isObject(value: unknown): value is Json {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** With a null prototype: a key `__proto__` is a key like any other. */
function merged(target: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const result = Object.assign(Object.create(null) as Json, isObject(target) && !isRaw(target) ? target : {});
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

function isRaw(value: object): boolean {
  return (JSON as unknown as { isRawJSON?: (value: unknown) => boolean }).isRawJSON?.(value) === true;
}

function apply(root: unknown, step: PatchStep): unknown {
  switch (step.op) {
    case "add":
      return put(root, step.path, structuredClone(step.value), "add");
    case "replace":
      return put(root, step.path, structuredClone(step.value), "replace");
    case "remove":
      return put(root, step.path, undefined, "remove");
    case "copy":
      return put(root, step.path, at(root, step.from ?? ""), "add");
    case "move": {
      const from = step.from ?? "";
      if (step.path.startsWith(`${from}/`)) throw new Misfit(); // into itself
      const moved = at(root, from);
      return put(put(root, from, undefined, "remove"), step.path, moved, "add");
    }
    case "test":
      if (JSON.stringify(sorted(at(root, step.path))) !== JSON.stringify(sorted(step.value)))
        throw new Misfit();
      return root;
  }
}

/** The keys of a JSON pointer, from the top. */
export function pointerKeys(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function at(root: unknown, pointer: string): unknown {
  let value = root;
  for (const key of pointerKeys(pointer)) {
    if (Array.isArray(value)) value = value[place(key, value.length - 1)];
    else if (isObject(value) && Object.hasOwn(value, key)) value = value[key];
    else throw new Misfit();
  }
  return value;
}

/** A new root in which the place has been changed; what is beside it is shared. */
function put(root: unknown, pointer: string, value: unknown, how: "add" | "replace" | "remove"): unknown {
  const [key, ...rest] = pointerKeys(pointer);
  if (key === undefined) {
    if (how === "remove") throw new Misfit(); // an input cannot be nothing
    return value;
  }
  const below = rest.map((one) => `/${one.replaceAll("~", "~0").replaceAll("/", "~1")}`).join("");
  if (Array.isArray(root)) {
    const list = [...(root as unknown[])];
    const end = how === "add" && rest.length === 0 ? list.length : list.length - 1;
    const i = key === "-" && how === "add" && rest.length === 0 ? list.length : place(key, end);
    if (rest.length > 0) list[i] = put(list[i], below, value, how);
    else if (how === "remove") list.splice(i, 1);
    else list.splice(i, how === "add" ? 0 : 1, value);
    return list;
  }
  if (!isObject(root) || isRaw(root)) throw new Misfit();
  const there = Object.hasOwn(root, key);
  if (!there && (rest.length > 0 || how !== "add")) throw new Misfit();
  const copy = Object.assign(Object.create(null) as Json, root);
  if (rest.length > 0) copy[key] = put(copy[key], below, value, how);
  else if (how === "remove") delete copy[key];
  else copy[key] = value;
  return copy;
}

function place(key: string, last: number): number {
  const index = /^(?:0|[1-9]\d{0,8})$/.test(key) ? Number(key) : Number.NaN;
  if (!(index <= last)) throw new Misfit();
  return index;
}

/** Objects are equal whatever the order of their keys. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return (value as unknown[]).map(sorted);
  if (!isObject(value) || isRaw(value)) return value;
  return Object.fromEntries(
    Object.keys(value)
      .sort()
      .map((key) => [key, sorted(value[key])]),
  );
}
