// Parts that screens are made of. Everything that comes from a job is rendered as text; nothing here takes HTML.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import type { CappedCount, JobLine } from "../../src/dashboard/contract.ts";
import { ago, count, instant } from "./format.ts";
import { Icon, type IconName } from "./icons.tsx";
import { overview } from "./live.ts";
import { href } from "./router.ts";
import type { Query } from "./use-query.ts";

/** This moment by the database's clock as we last heard it, moved on by our own. */
export const now = signal(Date.now());
let skew = 0;
overview.subscribe((heard) => {
  if (heard !== null) skew = heard.at - Date.now();
});
setInterval(() => {
  if (!document.hidden) now.value = Date.now() + skew;
}, 1_000);

const icons: Readonly<Record<string, IconName>> = {
  scheduled: "clock",
  ready: "dot",
  running: "play",
  waiting: "wait",
  done: "check",
  dead: "dead",
  failed: "dead",
  cancelled: "minus",
  retrying: "retry",
  paused: "pause",
  draining: "drain",
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

export function State({ state }: { state: string }) {
  return (
    <span class={`state ${state}`}>
      <Icon name={icons[state] ?? "dot"} size={12} />
      {state}
    </span>
  );
}

/** A failed job that waits for its next attempt is scheduled like any other; here it says so. */
export function JobStateOf({ job }: { job: Pick<JobLine, "state" | "errorGroup"> }) {
  return (
    <State
      state={
        job.errorGroup !== null && (job.state === "scheduled" || job.state === "ready")
          ? "retrying"
          : job.state
      }
    />
  );
}

export function Ago({ at }: { at: number | null }) {
  if (at === null) return <span class="muted">—</span>;
  return (
    <time dateTime={new Date(at).toISOString()} title={instant(at)} class="nowrap">
      {ago(at, now.value)}
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
  children,
}: {
  icon: IconName;
  title: string;
  children?: ComponentChildren;
}) {
  return (
    <div class="empty">
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
      <p>Loading…</p>
    </div>
  );
}

export function Failure({ error, again }: { error: Error; again: () => void }) {
  return (
    <div class="banner bad" role="alert">
      <Icon name="dead" />
      <span>{error.message}</span>
      <button type="button" class="button small" onClick={again}>
        Try again
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
    <span class="gauge" role="img" aria-label={`${label}: ${Math.floor(used)} of ${of}`}>
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

export function JobLink({ id, children }: { id: string; children: ComponentChildren }) {
  return (
    <a class="main-link" href={href(`/jobs/${id}`)}>
      {children}
    </a>
  );
}

/** JSON as text, its parts coloured; large ones plain, because a hundred thousand spans help nobody. */
export function Json({ text, label }: { text: string; label: string }) {
  const parts = text.length > 60_000 ? [text] : tokens(text);
  return (
    <pre class="code" tabIndex={0} role="region" aria-label={label}>
      {parts.map((part) => (typeof part === "string" ? part : <span class={part.kind}>{part.text}</span>))}
    </pre>
  );
}

function tokens(text: string): (string | { kind: string; text: string })[] {
  const parts: (string | { kind: string; text: string })[] = [];
  let from = 0;
  for (const match of text.matchAll(/("(?:[^"\\]|\\.)*")(\s*:)?|-?\d[\d.eE+-]*|\b(?:true|false|null)\b/g)) {
    if (match.index > from) parts.push(text.slice(from, match.index));
    const [whole, quoted, colon] = match;
    if (quoted === undefined) parts.push({ kind: /[a-z]/.test(whole[0] ?? "") ? "b" : "n", text: whole });
    else {
      parts.push({ kind: colon === undefined ? "s" : "k", text: quoted });
      if (colon !== undefined) parts.push(colon);
    }
    from = match.index + whole.length;
  }
  parts.push(text.slice(from));
  return parts;
}

/** A stack, with the frames of libraries set back. */
export function Stack({ text }: { text: string }) {
  return (
    <pre class="code" tabIndex={0} role="region" aria-label="Stack">
      {text.split("\n").map((line, i) => (
        <span key={i} class={/node_modules|\bnode:/.test(line) ? "lib" : ""}>
          {line}
          {"\n"}
        </span>
      ))}
    </pre>
  );
}

export async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast("Copied.");
  } catch {
    toast("This browser does not allow copying here.", "bad");
  }
}

// Toasts

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly kind: "good" | "bad";
}
const toasts = signal<readonly Toast[]>([]);
let lastToast = 0;

export function toast(text: string, kind: Toast["kind"] = "good"): void {
  const id = ++lastToast;
  toasts.value = [...toasts.value.slice(-3), { id, text, kind }];
  setTimeout(() => dismiss(id), kind === "bad" ? 9_000 : 4_000);
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((one) => one.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {toasts.value.map(({ id, text, kind }) => (
        <div key={id} class={`toast ${kind}`}>
          <Icon name={kind === "bad" ? "dead" : "check"} />
          <span>{text}</span>
          <button
            type="button"
            class="button quiet small icon"
            aria-label="Dismiss"
            onClick={() => dismiss(id)}
          >
            <Icon name="close" size={12} />
          </button>
        </div>
      ))}
    </div>
  );
}

/** Does something, and says what became of it. */
export async function attempt(what: string, run: () => Promise<unknown>): Promise<boolean> {
  try {
    await run();
    toast(what);
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
    element.current?.showModal();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={kind}
      aria-label={label}
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
            <span>
              Type <b class="mono">{typed}</b> to confirm
            </span>
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
        Not now
      </button>
      <button type="submit" class={`button ${danger === true ? "danger fill" : "primary"}`}>
        {verb}
      </button>
    </footer>
  );
}
