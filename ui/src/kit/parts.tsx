// Parts that screens are made of. Everything that comes from a job is rendered as text; nothing here takes HTML.
import { stateWord } from "../language/state-words.ts";
import { signal, useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CappedCount, JobLine } from "../../../src/dashboard/api/contract.ts";
import { noted, slow, takeBack } from "../data/api.ts";
import { ago, count, instant } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { live, overview } from "../data/live-stream.ts";
import { rich } from "../language/rich-text.ts";
import { href } from "../data/router.ts";
import { times } from "../data/page-settings.ts";
import { t } from "../language/translation.ts";
import type { Query } from "../data/live-query.ts";

/** This moment by the database's clock as we last heard it, moved on by our own. */
export const now = signal(Date.now());
/** How far the database's clock is ahead of this machine's. */
export const skew = signal(0);
overview.subscribe((heard) => {
  if (heard !== null) skew.value = heard.at - Date.now();
});
/** The job whose page is open, for the title and the breadcrumbs. */
export const named = signal<{ readonly id: string; readonly name: string } | null>(null);
/** As `now`, but it stands still while the page is paused: what is asked for as time goes by is then not asked for. */
export const beat = signal(now.peek());
setInterval(() => {
  if (document.hidden) return;
  now.value = Date.now() + skew.peek();
  if (live.peek()) beat.value = now.peek();
}, 1_000);

const icons: Readonly<Record<string, IconName>> = {
  scheduled: "clock",
  ready: "dot",
  running: "play",
  waiting: "wait",
  done: "check",
  dead: "dead",
  failed: "dead",
  lost: "workers",
  cancelled: "minus",
  retrying: "retry",
  paused: "pause",
  draining: "drain",
  quiet: "moon",
  stopping: "wait",
  pending: "minus",
  open: "dead",
  "half-open": "retry",
  closed: "check",
  regressed: "retry",
  ignored: "minus",
  resolved: "check",
  stopped: "minus",
  "stands still": "wait",
};

export function stateIcon(state: string): IconName {
  return icons[state] ?? "dot";
}

export function State({ state }: { state: string }) {
  return (
    <span class={`state ${state}`}>
      <Icon name={stateIcon(state)} size={12} />
      {stateWord(state)}
    </span>
  );
}

/** A failed job that waits for its next attempt is scheduled like any other, and a paused one waits; here they say so. */
export function JobStateOf({ job }: { job: Pick<JobLine, "state" | "errorGroup" | "paused"> }) {
  const retrying = job.errorGroup !== null && (job.state === "scheduled" || job.state === "ready");
  return <State state={job.paused ? "paused" : retrying ? "retrying" : job.state} />;
}

export function Ago({ at }: { at: number | null }) {
  if (at === null) return <span class="muted">—</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={instant(at)} class="nowrap">
      {times.value === "absolute" ? instant(at) : ago(at, now.value)}
    </time>
  );
}

export function Count({ of, quiet = true }: { of: CappedCount | number; quiet?: boolean }) {
  const value = typeof of === "number" ? { count: of, more: false } : of;
  return <span class={quiet && value.count === 0 && !value.more ? "muted" : ""}>{count(value)}</span>;
}

export function Empty({
  icon,
  title,
  brief = false,
  children,
}: {
  icon: IconName;
  title: string;
  /** In a line: that there is none is as it should be, and others are below. */
  brief?: boolean;
  children?: ComponentChildren;
}) {
  return (
    <div class={brief ? "empty brief" : "empty"}>
      <div class="mark">
        <Icon name={icon} size={20} />
      </div>
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A panel's content by how its question stands. */
export function Loaded<T>({
  query,
  children,
}: {
  query: Query<T>;
  children: (data: T) => ComponentChildren;
}) {
  if (query.data !== null)
    return (
      <>
        {query.error !== null && <Failure error={query.error} again={query.again} />}
        {children(query.data)}
      </>
    );
  if (query.error !== null) return <Failure error={query.error} again={query.again} />;
  return (
    <div class="empty" role="status">
      <p>{t("Loading…")}</p>
    </div>
  );
}

export function Failure({ error, again }: { error: Error; again: () => void }) {
  return (
    <div class="banner bad" role="alert">
      <Icon name="dead" />
      <span>{error.message}</span>
      <button type="button" class="button small" onClick={again}>
        {t("Try again")}
      </button>
    </div>
  );
}

/** `left`: what remains of a stock, where empty is the news; else what is used of a limit, where full is. */
export function Gauge({
  used,
  of,
  label,
  left = false,
}: {
  used: number;
  of: number;
  label: string;
  left?: boolean;
}) {
  const share = of === 0 ? 0 : Math.max(0, Math.min(1, used / of));
  const news = left ? share < 0.1 : share >= 1;
  return (
    <span
      class="gauge"
      role="img"
      aria-label={t("{label}: {used} of {of}", { label, used: Math.floor(used), of })}
    >
      <i class={news ? "full" : ""} style={{ width: `${share * 100}%` }} />
    </span>
  );
}

export function Head({
  title,
  children,
  note,
}: {
  title: ComponentChildren;
  children?: ComponentChildren;
  note?: ComponentChildren;
}) {
  return (
    <div class="head">
      <div>
        <h1>{title}</h1>
        {note !== undefined && <p>{note}</p>}
      </div>
      <span class="spring" />
      <div class="row">{children}</div>
    </div>
  );
}

/** The class of a name in a table: a long one takes several lines, so that the other columns stay in sight. */
export function nameClass(name: string, like = "main-link"): string {
  return name.length > 40 ? `${like} long-name` : like;
}

/** An error can have pages: its beginning, and the rest when it is asked for. */
export function LongText({ of: text }: { of: string }) {
  const whole = useSignal(false);
  if (whole.value || text.length <= 600) return <>{text}</>;
  return (
    <>
      {text.slice(0, 500).replace(/[\ud800-\udbff]$/, "")}…{" "}
      <button type="button" class="button small" onClick={() => (whole.value = true)}>
        {t("Show all")}
      </button>
    </>
  );
}

export function JobLink({ id, children }: { id: string; children: ComponentChildren }) {
  return (
    <a class="main-link" href={href(`/jobs/${id}`)}>
      {children}
    </a>
  );
}

/**
 * The clipboard is there on safe origins alone. Without it the browser's old way is tried, and where that fails too the text is
 * shown, chosen, so that one key copies it.
 */
export async function copy(text: string, said = t("Copied.")): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    if (copyChosen(text)) toast(said);
    else showDialog(t("Copy"), (close) => <CopyByHand text={text} close={close} />);
  }
}

function copyChosen(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden-text";
  const before = document.activeElement;
  // Behind an open dialog nothing can be chosen.
  ([...document.querySelectorAll("dialog[open]")].at(-1) ?? document.body).append(field);
  field.select();
  try {
    return document.execCommand("copy");
  } catch {
    return false;
  } finally {
    field.remove();
    if (before instanceof HTMLElement) before.focus();
  }
}

function CopyByHand({ text, close }: { text: string; close: () => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  useLayoutEffect(() => field.current?.select(), []);
  return (
    <div class="dialog">
      <header>
        <h2>{t("Not copied")}</h2>
      </header>
      <div class="content">
        <p>{t("This browser does not let a page copy here. The text is chosen: press Ctrl C, or ⌘ C.")}</p>
        <textarea
          ref={field}
          class="input mono"
          rows={6}
          readOnly
          value={text}
          aria-label={t("Text to copy")}
        />
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          {t("Close")}
        </button>
      </footer>
    </div>
  );
}

// Toasts

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: "good" | "bad";
  /** Entries of the audit trail that it offers to take back. */
  readonly undo: readonly number[];
}
const undoMs = 10_000;
const toasts = signal<readonly Toast[]>([]);
let lastToast = 0;

export function toast(text: string, kind: Toast["kind"] = "good", undo: readonly number[] = []): void {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind, undo }];
  setTimeout(() => dismiss(id), undo.length > 0 ? undoMs : kind === "bad" ? 9_000 : 4_000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {slow.value > 0 && (
        <div class="toast">
          <Icon name="wait" />
          <span>{t("Still waiting for the database…")}</span>
        </div>
      )}
      {toasts.value.map(({ id, text, kind, undo }) => (
        <div key={id} class={`toast ${kind}`}>
          <Icon name={kind === "bad" ? "dead" : "check"} />
          <span>{text}</span>
          {undo.length > 0 && (
            <button
              type="button"
              class="button small"
              onClick={() => {
                dismiss(id);
                void attempt(t("Undone."), () => takeBack(undo));
              }}
            >
              {t("Undo")}
            </button>
          )}
          <button
            type="button"
            class="button quiet small icon"
            aria-label={t("Dismiss")}
            onClick={() => dismiss(id)}
          >
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}

/** Does something, and says what became of it: with an offer to take it back, where that can be done. */
export async function attempt(
  what: string,
  run: () => Promise<unknown>,
  /** Of what was done before. */
  undo: readonly number[] = [],
): Promise<boolean> {
  try {
    toast(what, "good", [...undo, ...(await noted(run)).undo]);
    return true;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), "bad");
    return false;
  }
}

// Dialogs

const open = signal<readonly { id: number; body: ComponentChildren; label: string; kind: string }[]>([]);
let lastDialog = 0;

/** Shows a dialog; the given function closes it. */
export function showDialog(label: string, body: (close: () => void) => ComponentChildren, kind = ""): void {
  const id = ++lastDialog;
  const close = (): void => {
    open.value = open.value.filter((one) => one.id !== id);
  };
  open.value = [...open.value, { id, body: body(close), label, kind }];
}

export function dialogOpen(): boolean {
  return open.value.length > 0;
}

export function Dialogs() {
  return (
    <>
      {open.value.map(({ id, body, label, kind }) => (
        <Dialog
          key={id}
          label={label}
          kind={kind}
          close={() => (open.value = open.value.filter((one) => one.id !== id))}
        >
          {body}
        </Dialog>
      ))}
    </>
  );
}

function Dialog({
  label,
  kind,
  close,
  children,
}: {
  label: string;
  kind: string;
  close: () => void;
  children: ComponentChildren;
}) {
  const element = useRef<HTMLDialogElement>(null);
  // Before the paint: what is typed after Ctrl K must find its field.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      // While it is open nothing behind it can have the focus.
      dialog?.close();
      // Also a node of a graph.
      if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={kind}
      aria-label={label}
      // Escape, at once: "close" is told later, and a key that was typed in between would be lost.
      onCancel={(event) => event.target === element.current && close()}
      onClose={close}
      onClick={(event) => event.target === element.current && close()}
    >
      {children}
    </dialog>
  );
}

/** Asks before doing. `typed` must be written out for what cannot be undone. */
export function confirm(options: {
  title: string;
  text: ComponentChildren;
  verb: string;
  danger?: boolean;
  typed?: string;
  run: () => Promise<unknown>;
  done: string;
}): void {
  showDialog(options.title, (close) => <Confirm {...options} close={close} />);
}

function Confirm({
  title,
  text,
  verb,
  danger,
  typed,
  run,
  done,
  close,
}: Parameters<typeof confirm>[0] & { close: () => void }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <form
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        if (typed !== undefined && input.current?.value !== typed) {
          input.current?.focus();
          return;
        }
        void attempt(done, run).then(close);
      }}
    >
      <header>
        <h2>{title}</h2>
      </header>
      <div class="content">
        <div>{text}</div>
        {typed !== undefined && (
          <label class="field">
            <span>{rich("Type {typed} to confirm", { typed: <b class="mono">{typed}</b> })}</span>
            <input ref={input} class="input" autocomplete="off" spellcheck={false} />
          </label>
        )}
      </div>
      <DialogButtons verb={verb} danger={danger} close={close} />
    </form>
  );
}

/** Not now, or do it. */
export function DialogButtons({
  verb,
  danger,
  close,
}: {
  verb: string;
  danger: boolean | undefined;
  close: () => void;
}) {
  return (
    <footer>
      <button type="button" class="button" onClick={close}>
        {t("Not now")}
      </button>
      <button type="submit" class={`button ${danger === true ? "danger fill" : "primary"}`}>
        {verb}
      </button>
    </footer>
  );
}
