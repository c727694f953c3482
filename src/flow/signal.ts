/**
 * Signals: messages that a run can wait for, by name or by a definition that types and checks their data.
 *
 * A signal is kept until a run takes it or it expires, so it does not matter whether it is sent before or after the wait.
 * Not here: waiting (run.ts), keeping and waking (sql/flows.ts).
 */
import { shown, UsageError } from "../errors.ts";
import { checkName, checkText } from "../policy/name.ts";
import { checkOptions } from "../policy/options.ts";
import {
  type InferInput,
  type InferOutput,
  isStandardSchema,
  type StandardSchemaV1,
} from "../policy/schema.ts";

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

/** The name and schema of what was given as a signal. */
export function signalOf(signal: unknown): {
  readonly name: string;
  readonly data: StandardSchemaV1 | null;
} {
  if (typeof signal === "string") return { name: checkName(signal, "The name of a signal"), data: null };
  if (typeof signal === "object" && signal !== null && signalBrand in signal)
    return signal as unknown as { name: string; data: StandardSchemaV1 | null };
  throw new UsageError("BAD_OPTION", `A signal is a name, or what defineSignal gives; got ${shown(signal)}.`);
}

/** Where signals of this name and key meet those who wait for them. A name has no line break, a key may have any. */
export function topicOf(name: string, key: unknown): string {
  return key === undefined ? name : `${name}\n${checkText(key, "key")}`;
}
