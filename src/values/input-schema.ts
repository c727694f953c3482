/**
 * Input schemas by the Standard Schema convention (https://standardschema.dev), which zod, valibot, arktype and
 * others speak. The types are written out, so that no package is needed for them.
 *
 * Invariants: a synchronous schema is answered synchronously, so that `enqueue` needs no extra turn; an issue
 * becomes one error with every path and message; a schema that throws becomes the same error with its cause.
 * Not here: storing the raw input, JSON (json.ts).
 */
import { type ErrorCode, shown, UsageError } from "../errors.ts";

/**
 * Any Standard Schema of version 1.
 *
 * @example
 * const schema: StandardSchemaV1<{ to: string }> = z.object({ to: z.email() });
 */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Standard JSON Schema: zod and arktype have it. It throws for what JSON Schema has no words for. */
    readonly jsonSchema?:
      | { readonly input: (options: { readonly target: "draft-2020-12" }) => Record<string, unknown> }
      | undefined;
    /** Never there at run time: it carries the types. */
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

/**
 * What a schema answers: a value, or issues.
 *
 * @example
 * const result: StandardResult<string> = { issues: [{ message: "Required", path: ["to"] }] };
 */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/**
 * One thing that a schema found wrong.
 *
 * @example
 * const issue: StandardIssue = { message: "Required", path: ["items", 3, { key: "price" }] };
 */
export type StandardIssue = {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
};

/**
 * What a schema takes.
 *
 * @example
 * type Given = InferInput<typeof schema>;
 */
export type InferInput<Schema extends StandardSchemaV1> = NonNullable<Schema["~standard"]["types"]>["input"];

/**
 * What a schema gives.
 *
 * @example
 * type Parsed = InferOutput<typeof schema>;
 */
export type InferOutput<Schema extends StandardSchemaV1> = NonNullable<
  Schema["~standard"]["types"]
>["output"];

const mostIssues = 20;

/**
 * What a schema takes, as JSON Schema (draft 2020-12). Null: it does not offer that, or it has more than `mostChars`.
 *
 * @example
 * jsonSchemaOf(z.object({ to: z.string() }), 65_536)?.["required"]; // ["to"]
 */
export function jsonSchemaOf(schema: StandardSchemaV1, mostChars: number): Record<string, unknown> | null {
  try {
    // As text and back: what leaves the process is data alone, whatever the library gave.
    const text = JSON.stringify(schema["~standard"].jsonSchema?.input({ target: "draft-2020-12" }));
    if (text === undefined || text.length > mostChars) return null;
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value)
      ? (value as Record<string, unknown>)
      : null;
  } catch {
    return null;
  }
}

/**
 * Whether a value is a Standard Schema. Some (arktype's) are functions.
 *
 * @example
 * isStandardSchema(z.string()); // true
 */
export function isStandardSchema(value: unknown): value is StandardSchemaV1 {
  if ((typeof value !== "object" && typeof value !== "function") || value === null) return false;
  const standard = (value as { "~standard"?: unknown })["~standard"];
  return (
    typeof standard === "object" &&
    standard !== null &&
    typeof (standard as { validate?: unknown }).validate === "function"
  );
}

/**
 * The value as the schema gives it; a promise only if the schema gives one.
 *
 * @throws UsageError with `code`; `details.issues` has `{ path, message }` for each
 * @example
 * const input = await validate(schema, raw, "input", "INPUT_INVALID");
 */
export function validate<T>(
  schema: StandardSchemaV1<unknown, T>,
  value: unknown,
  what: string,
  code: ErrorCode,
): T | Promise<T> {
  let result: StandardResult<T> | Promise<StandardResult<T>>;
  try {
    result = schema["~standard"].validate(value);
  } catch (cause) {
    throw thrown(what, code, cause);
  }
  if (!isPromise(result)) return valueOf(result, what, code);
  return result.then(
    (settled) => valueOf(settled, what, code),
    (cause: unknown) => {
      throw thrown(what, code, cause);
    },
  );
}

// Promises of other realms and libraries count.
function isPromise<T>(result: T | Promise<T>): result is Promise<T> {
  return typeof (result as { then?: unknown }).then === "function";
}

function valueOf<T>(result: StandardResult<T>, what: string, code: ErrorCode): T {
  if (result.issues === undefined) return result.value;
  const issues = result.issues
    .slice(0, mostIssues)
    .map((issue) => ({ path: pathOf(issue), message: issue.message }));
  const lines = issues.map(({ path, message }) => `${what}${path}: ${message}`);
  if (result.issues.length > mostIssues) lines.push(`and ${result.issues.length - mostIssues} more`);
  throw new UsageError(code, `${what} does not fit its schema. ${lines.join("; ")}`, {
    details: { what, issues },
  });
}

function pathOf(issue: StandardIssue): string {
  let text = "";
  for (const part of issue.path ?? []) {
    const key = typeof part === "object" ? part.key : part;
    if (typeof key === "number") text += `[${key}]`;
    else if (typeof key === "string" && /^[A-Za-z_$][\w$]*$/.test(key)) text += `.${key}`;
    else text += `[${typeof key === "symbol" ? String(key) : shown(key)}]`;
  }
  return text;
}

function thrown(what: string, code: ErrorCode, cause: unknown): UsageError {
  return new UsageError(code, `${what} could not be checked: its schema threw. See the cause.`, {
    details: { what },
    cause,
  });
}
