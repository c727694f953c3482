// Dialogs over the page, newest on top. The focus moves in and returns on close.
import { signal } from "@preact/signals";
import type { ComponentChildren, Ref } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { attempt, type Undo } from "./toasts.tsx";

const open = signal<readonly { id: number; body: ComponentChildren; label: string; kind: string }[]>([]);
let lastDialog = 0;

/** Opens a dialog; `close` closes it. */
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
  // Before the paint, so that keys typed after Ctrl K reach the field.
  useLayoutEffect(() => {
    const before = document.activeElement;
    const dialog = element.current;
    dialog?.showModal();
    return () => {
      // Elements behind an open dialog cannot take the focus.
      dialog?.close();
      // May be an SVG node of a graph.
      if (before instanceof HTMLElement || before instanceof SVGElement) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={element}
      class={kind}
      aria-label={label}
      // Escape closes at once: the "close" event comes later, and a key typed in between would be lost.
      onCancel={(event) => event.target === element.current && close()}
      onClose={close}
      onClick={(event) => event.target === element.current && close()}
    >
      {children}
    </dialog>
  );
}

/** Asks for confirmation. `typed` must be typed for actions that cannot be undone. */
export function confirm(options: {
  title: string;
  text: ComponentChildren;
  verb: string;
  danger?: boolean;
  typed?: string;
  run: () => Promise<unknown>;
  done: string;
  undo?: Undo | undefined;
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
  undo,
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
        void attempt(done, run, undo).then(close);
      }}
    >
      <header>
        <h2>{title}</h2>
      </header>
      <div class="content">
        <div>{text}</div>
        {typed !== undefined && <ConfirmingWord word={typed} input={input} />}
      </div>
      <DialogButtons verb={verb} danger={danger} close={close} />
    </form>
  );
}

/** A dialog without a form. */
export function InfoDialog({
  title,
  close,
  children,
}: {
  title: string;
  close: () => void;
  children: ComponentChildren;
}) {
  return (
    <div class="dialog">
      <header>
        <h2 class="clip">{title}</h2>
      </header>
      <div class="content">{children}</div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </div>
  );
}

/** The field in which `word` must be typed to confirm. */
export function ConfirmingWord({ word, input }: { word: string; input: Ref<HTMLInputElement> }) {
  return (
    <label class="field">
      <span>
        Type <b class="mono">{word}</b> to confirm
      </span>
      <input ref={input} class="input" autocomplete="off" spellcheck={false} />
    </label>
  );
}

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
