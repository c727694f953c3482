/**
 * The context of a running command: its arguments, the database (opened on first use), and output.
 *
 * Invariants: results go to standard output, everything else (progress, questions, warnings) to standard error; with --json
 * standard output holds only JSON; the client is closed when the command ends; a command that only reads creates no file.
 */
import { existsSync } from "node:fs";
import { StateError, StoreError, UsageError } from "../errors.ts";
import type { Holdfast, Logger, OpenOptions } from "../index.ts";
import { open } from "../index.ts";
import { type Admin, openAdmin, sqliteFile } from "../operate/index.ts";
import { loadConfig, type LoadedConfig } from "./config-file.ts";
import { type Io, type Out, type Paint, painter } from "./io.ts";
import { resolveTarget, secretsOf, type Target } from "./target.ts";
import { bar, dateOf, grouped, harmless, json, oneLine } from "./text.ts";
import { operatorOf } from "../operate/operator.ts";

export type Values = Readonly<Record<string, string | boolean | (string | boolean)[] | undefined>>;

/** The parts of the running command that its messages need. */
export interface Called {
  readonly name: string;
  readonly args?: string;
}

export class Context {
  readonly io: Io;
  readonly command: Called;
  readonly args: readonly string[];
  readonly json: boolean;
  /** Colours for standard output. */
  readonly paint: Paint;
  readonly paintError: Paint;
  readonly #values: Values;
  /** The command above it, if any: "queues ". */
  readonly #path: string;
  readonly #secrets = new Set<string>();
  #config: Promise<LoadedConfig> | undefined;
  #client: Holdfast | undefined;
  readonly #others: Holdfast[] = [];
  readonly #admins: Admin[] = [];

  constructor(io: Io, command: Called, args: readonly string[], values: Values, path = "") {
    this.io = io;
    this.#path = path;
    this.command = command;
    this.args = args;
    this.#values = values;
    this.json = values["json"] === true;
    const wanted = values["color"] as boolean | undefined;
    this.paint = painter(io.stdout, io.env, wanted);
    this.paintError = painter(io.stderr, io.env, wanted);
  }

  // --- arguments ---------------------------------------------------------------------------------------

  string(name: string): string | undefined {
    const given = this.#values[name];
    const value = Array.isArray(given) ? given.at(-1) : given;
    return typeof value === "string" ? value : undefined;
  }

  flag(name: string): boolean {
    return this.#values[name] === true;
  }

  /** Undefined when neither --name nor --no-name was given. */
  switch(name: string): boolean | undefined {
    return this.#values[name] as boolean | undefined;
  }

  /** Values of an option that may be repeated or have commas. */
  list(name: string): string[] | undefined {
    const value = this.#values[name];
    if (value === undefined) return undefined;
    const given = Array.isArray(value) ? value : [value];
    return given.flatMap((text) => String(text).split(",")).filter((text) => text !== "");
  }

  /** @throws UsageError BAD_OPTION */
  integer(name: string): number | undefined {
    const value = this.string(name);
    if (value === undefined) return undefined;
    const number = Number(value);
    if (value.trim() !== "" && Number.isInteger(number)) return number;
    throw new UsageError("BAD_OPTION", `--${name} takes a whole number; got ${JSON.stringify(value)}.`);
  }

  /**
   * An instant. Only as 2026-01-31 or 2026-01-31T12:00Z: JavaScript takes "1" and "mail 5" for dates, too.
   *
   * @throws UsageError BAD_INSTANT
   */
  date(name: string): Date | undefined {
    const value = this.string(name);
    if (value === undefined) return undefined;
    const date = dateOf(value);
    if (date !== null) return date;
    throw new UsageError(
      "BAD_INSTANT",
      `--${name} takes a date, such as 2026-01-31 or 2026-01-31T12:00Z; got ${JSON.stringify(value)}.`,
    );
  }

  /** A required positional argument. */
  argument(index: number, what: string): string {
    const value = this.args[index];
    if (value !== undefined && value !== "") return value;
    throw new UsageError(
      "BAD_OPTION",
      `${this.#path}${this.command.name} needs ${what}. Usage: holdfast ${this.#path}${this.command.name} ${this.command.args ?? ""}`.trimEnd(),
    );
  }

  // --- the database ------------------------------------------------------------------------------------

  config(): Promise<LoadedConfig> {
    this.#config ??= loadConfig(
      this.io.cwd,
      this.string("config"),
      // With --url the database is known, so no config of a folder above is run.
      this.string("url") === undefined ? undefined : 0,
    );
    return this.#config;
  }

  target(): Promise<Target> {
    return this.#resolve(this.string("url"));
  }

  async #resolve(url: string | undefined): Promise<Target> {
    const { config, path } = await this.config();
    const [schema, passwordEnv] = [this.string("schema"), this.string("password-env")];
    const flags = {
      ...(url === undefined ? {} : { url }),
      ...(schema === undefined ? {} : { schema }),
      ...(passwordEnv === undefined ? {} : { "password-env": passwordEnv }),
    };
    const target = resolveTarget({ flags, env: this.io.env, config, configPath: path });
    for (const secret of target.secrets) this.#secrets.add(secret);
    return target;
  }

  /** Hides the secrets of this URL in all output. */
  hide(url: string): void {
    for (const secret of secretsOf(url)) this.#secrets.add(secret);
  }

  /** The client, opened once. The schema must exist and be up to date, unless `migrate` is set. */
  async client(options: { migrate?: boolean; logger?: Logger } = {}): Promise<Holdfast> {
    if (this.#client !== undefined) return this.#client;
    const target = await this.target();
    const { config } = await this.config();
    if (options.migrate !== true) await this.#mustExist(target);
    const migrate = options.migrate === true ? (config.open?.migrate ?? true) : "check";
    this.#client = await this.#open(target, { migrate, logger: options.logger ?? this.#logger() });
    if (options.migrate !== true) await this.#noteMoved(this.#client);
    await config.setup?.(this.#client);
    return this.#client;
  }

  /** Warns when a command reads a database that has been moved. */
  async #noteMoved(hf: Holdfast): Promise<void> {
    const { movedTo, movedAt } = await operatorOf(hf).store.schemaState();
    if (movedTo === null) return;
    const at = movedAt === null ? "" : ` at ${new Date(movedAt).toISOString()}`;
    this.note(
      this.paintError(
        "warn",
        `This database was moved to ${harmless(movedTo)}${at}. It shows the data of that time.`,
      ),
    );
  }

  /** Values of an option that may be repeated, unsplit. */
  strings(name: string): string[] {
    const given = this.#values[name];
    return (Array.isArray(given) ? given : [given]).filter((one) => typeof one === "string");
  }

  /** A client on another address, opened like `client`. */
  async clientOn(url: string): Promise<Holdfast> {
    const target = await this.#resolve(url);
    await this.#mustExist(target);
    const hf = await this.#open(target, { migrate: "check", logger: this.#logger() });
    this.#others.push(hf);
    return hf;
  }

  async #open(target: Target, options: Pick<OpenOptions, "migrate" | "logger">): Promise<Holdfast> {
    const { config } = await this.config();
    return open(target.url, { metrics: true, ...config.open, schema: target.schema, ...options });
  }

  /** Administration of the database; closed when the command ends. */
  async admin(url?: string, schema?: string): Promise<Admin> {
    const target = await this.target();
    if (url !== undefined) this.hide(url);
    const admin = await openAdmin(url ?? target.url, schema ?? target.schema);
    this.#admins.push(admin);
    return admin;
  }

  async close(): Promise<void> {
    await this.#client?.close();
    for (const hf of this.#others) await hf.close();
    for (const admin of this.#admins) await admin.close();
  }

  /** @throws StoreError SCHEMA_MISSING for a SQLite file that is not there, DATABASE_UNREACHABLE or DATABASE_MISSING for a server or its database. */
  async mustExist(): Promise<void> {
    await this.#mustExist(await this.target());
  }

  async #mustExist(target: Target): Promise<void> {
    const file = await sqliteFile(target.url);
    // `open` waits for a server that is away; a person at a terminal should learn it at once.
    if (target.url.startsWith("postgres")) await (await openAdmin(target.url, target.schema)).close();
    if (file === null || existsSync(file)) return;
    throw new StoreError(
      "SCHEMA_MISSING",
      `There is no database ${file} (address from ${target.from}). Create it with: holdfast migrate${target.from === "--url" ? ` --url ${target.place}` : ""}; holdfast work also creates it.`,
    );
  }

  #logger(): Logger {
    const line =
      (tone: "warn" | "bad") =>
      (_details: Record<string, unknown>, message: string): void =>
        this.note(this.paintError(tone, message));
    const nothing = (): void => {};
    return { debug: nothing, info: nothing, warn: line("warn"), error: line("bad") };
  }

  /** The error for a job that does not exist, with the database that was searched. */
  async noJob(id: string): Promise<StateError> {
    const { place } = await this.target();
    return new StateError(
      "JOB_NOT_FOUND",
      `There is no job ${oneLine(id, 60)} in ${place}. The id is wrong, or the job was deleted or pruned.`,
      { details: { job: id } },
    );
  }

  // --- printing ----------------------------------------------------------------------------------------

  /** Prints the result: JSON, or the text for people. */
  result(value: unknown, text: () => string): void {
    this.print(this.json ? json(value, this.io.stdout.isTTY ? 2 : undefined) : text());
  }

  /** One line of JSON. */
  line(value: unknown): void {
    this.print(json(value));
  }

  print(text: string): void {
    this.#write(this.io.stdout, `${text}\n`);
  }

  /** A line on standard error. */
  note(text: string): void {
    this.#write(this.io.stderr, `${text}\n`);
  }

  /** Output without a newline, for progress lines and `top`. */
  draw(out: Out, text: string): void {
    this.#write(out, text);
  }

  #write(out: Out, text: string): void {
    let shown = text;
    for (const secret of this.#secrets) shown = shown.replaceAll(secret, "***");
    out.write(shown);
  }

  /** A progress bar on standard error, only on a terminal. */
  progress(label: string): (done: number, total: number) => void {
    const { stderr } = this.io;
    if (!stderr.isTTY || this.json) return () => {};
    let last = -1;
    return (done, total) => {
      const share = total === 0 ? 1 : Math.min(1, done / total);
      const percent = Math.floor(share * 100);
      const over = done >= total;
      if (percent === last && !over) return;
      last = percent;
      const text = `${oneLine(label)} ${bar(share, 30)} ${String(percent).padStart(3)} %  ${grouped(done)} of ${grouped(total)}`;
      this.#write(stderr, `\r\u001b[2K${text}${over ? "\n" : ""}`);
    };
  }

  // --- asking ------------------------------------------------------------------------------------------

  /**
   * Confirms an action: --force confirms, a terminal is asked, anything else is refused.
   *
   * @throws UsageError FORCE_REQUIRED
   */
  async confirm(what: string, warning = "This cannot be reverted."): Promise<boolean> {
    if (this.flag("force")) return true;
    if (!this.io.interactive || this.json)
      throw new UsageError("FORCE_REQUIRED", `${what} ${warning} Add --force to confirm.`);
    const answer = await this.io.ask(`${harmless(what)} ${warning} Continue? [y/N] `);
    if (/^y(es)?$/i.test(answer.trim())) return true;
    this.note("No changes made.");
    return false;
  }
}
