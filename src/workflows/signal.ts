/**
 * Signals: messages that a run can wait for, by name or by a definition that types and checks their data. A job that lists
 * the definitions (`signals`) has them checked by name too.
 *
 * A signal is kept until a run takes it or it expires, so it does not matter whether it is sent before or after the wait.
 * Not here: waiting (run.ts), keeping and waking (step-rows.ts).
 */
import { shown, UsageError } from "../errors.ts";
import { checkName, checkText } from "../values/name.ts";
import { checkOptions } from "../values/options.ts";
import {
  type InferInput,
  type InferOutput,
  isStandardSchema,
  type StandardSchemaV1,
  validate,
} from "../values/input-schema.ts";

const signalBrand = Symbol.for("holdfast.signal");

/** Carries the data's types; never there at run time. */
declare const dataTypes: unique symbol;

/**
 * A kind of signal, as `defineSignal` makes it.
 *
 * @example
 * const approved = defineSignal({ name: "approved", data: z.object({ by: z.string() }) });
 */
export interface SignalDefinition<Sent = unknown, Taken = Sent> {
  readonly name: string;
  readonly data: StandardSchemaV1<Sent, Taken> | null;
  readonly [dataTypes]?: { sent: Sent; taken: Taken };
}

/**
 * Defines a kind of signal: a name, and the shape of its data, which `hf.signal` checks.
 *
 * @throws UsageError BAD_NAME, BAD_OPTION, UNKNOWN_OPTION
 * @example
 * const approved = defineSignal({ name: "approved", data: z.object({ by: z.string() }) });
 * await hf.signal(approved, { key: orderId, data: { by: "Ada" } });
 */
export function defineSignal<Schema extends StandardSchemaV1>(options: {
  readonly name: string;
  readonly data: Schema;
}): SignalDefinition<InferInput<Schema>, InferOutput<Schema>>;
export function defineSignal<Data = unknown>(options: {
  readonly name: string;
  readonly data?: undefined;
}): SignalDefinition<Data>;
export function defineSignal(given: object): unknown {
  const { name, data } = checkOptions(given, ["name", "data"], "defineSignal");
  if (data !== undefined && !isStandardSchema(data))
    throw new UsageError(
      "BAD_OPTION",
      `data of a signal must be a Standard Schema (zod, valibot, arktype …); got ${shown(data)}.`,
    );
  return Object.freeze({
    [signalBrand]: true,
    name: checkName(name, "The name of a signal"),
    data: data ?? null,
  });
}

/** Whether a value is what `defineSignal` gives, also that of another copy of the package. */
export function isSignal(value: unknown): value is SignalDefinition {
  return typeof value === "object" && value !== null && signalBrand in value;
}

/** The name and schema of what was given as a signal. */
export function signalOf(signal: unknown): Pick<SignalDefinition, "name" | "data"> {
  if (typeof signal === "string") return { name: checkName(signal, "The name of a signal"), data: null };
  if (isSignal(signal)) return signal;
  throw new UsageError(
    "BAD_OPTION",
    `A signal is a name, or the result of defineSignal; got ${shown(signal)}.`,
  );
}

/** What kinds declare of the signals that they wait for. */
type Declaring = Iterable<{ readonly signals?: readonly SignalDefinition[] }>;

/** The schemas under which these kinds declare a signal. */
export function schemasOf(name: string, definitions: Declaring): StandardSchemaV1[] {
  const schemas = [...definitions].flatMap(({ signals = [] }) =>
    signals.flatMap((one) => (one.name === name && one.data !== null ? [one.data] : [])),
  );
  return [...new Set(schemas)];
}

/**
 * Holds the data of a signal against what these kinds declare. Two kinds may wait for one name with different data, and a
 * signal is for one of them: it must fit one. What nobody declares is not checked.
 *
 * @throws UsageError SIGNAL_INVALID with what the first of them says
 */
export async function checkDeclared(name: string, data: unknown, definitions: Declaring): Promise<void> {
  const [first, ...others] = schemasOf(name, definitions);
  if (first === undefined) return;
  try {
    await dataOf(first, name, data);
  } catch (error) {
    for (const schema of others) if (await fits(schema, name, data)) return;
    throw error;
  }
}

/**
 * The data of a signal as its schema gives it.
 *
 * @throws UsageError SIGNAL_INVALID
 */
export function dataOf(schema: StandardSchemaV1, name: string, data: unknown): unknown {
  return validate(schema, data, `data of signal "${name}"`, "SIGNAL_INVALID");
}

async function fits(schema: StandardSchemaV1, name: string, data: unknown): Promise<boolean> {
  try {
    await dataOf(schema, name, data);
    return true;
  } catch {
    return false;
  }
}

/** Where signals of this name and key meet those who wait for them. A name has no line break, a key may have any. */
export function topicOf(name: string, key: unknown): string {
  return key === undefined ? name : `${name}\n${checkText(key, "key")}`;
}

/** The opposite of `topicOf`. Key null: the signal is for runs that wait without one. */
export function nameAndKeyOf(topic: string): { readonly name: string; readonly key: string | null } {
  const end = topic.indexOf("\n");
  return end === -1 ? { name: topic, key: null } : { name: topic.slice(0, end), key: topic.slice(end + 1) };
}
