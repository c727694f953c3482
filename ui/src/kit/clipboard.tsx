import { useLayoutEffect, useRef } from "preact/hooks";
import { InfoDialog, showDialog } from "./dialogs.tsx";
import { toast } from "./toasts.tsx";

/**
 * The clipboard API exists on secure origins only. Else the old command is tried, and if that fails the text is
 * shown selected, ready for Ctrl C.
 */
export async function copy(text: string, said = "Copied"): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    toast(said);
  } catch {
    if (copyChosen(text)) toast(said);
    else showDialog("Copy", (close) => <CopyByHand text={text} close={close} />);
  }
}

function copyChosen(text: string): boolean {
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "hidden-text";
  const before = document.activeElement;
  // Text behind an open dialog cannot be selected.
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
    <InfoDialog title="Not copied" close={close}>
      <p>The browser does not allow copying here. The text is selected: press Ctrl C or ⌘ C.</p>
      <textarea ref={field} class="input mono" rows={6} readOnly value={text} aria-label="Text to copy" />
    </InfoDialog>
  );
}
