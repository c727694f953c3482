// Sends a signal that a run waits for: a form if the job declares its schema, else JSON.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { DefinitionDetail } from "../../../src/dashboard/api/contract.ts";
import { Act } from "../kit/actions.tsx";
import { call, get, seg } from "../data/api.ts";
import { compact } from "../json/json-text.ts";
import { DialogButtons, showDialog } from "../kit/dialogs.tsx";
import { JsonInput, useDraft, useSending, written } from "../json/json-input.tsx";

interface Sent {
  readonly name: string;
  readonly topicKey: string | null;
  /** The waiting run. */
  readonly kind: string;
  readonly again: () => void;
}

export function SendSignal(signal: Sent) {
  const press = (): void => {
    const title = `Send ${signal.name}`;
    showDialog(title, (close) => <SignalForm {...signal} title={title} close={close} />, "new-job");
  };
  return <Act verb="Send" on={signal.name} needs="workflows:signal" press={press} />;
}

function SignalForm({
  name,
  topicKey,
  kind,
  again,
  title,
  close,
}: Sent & { title: string; close: () => void }) {
  const draft = useDraft("");
  const declared = useSignal<DefinitionDetail["signals"][number] | null>(null);

  useEffect(() => {
    const ended = new AbortController();
    void get<DefinitionDetail>(`/definitions/${seg(kind)}`, {}, ended.signal).then(
      ({ signals }) => {
        const found = signals.find((one) => one.name === name) ?? null;
        // A form needs an object.
        if (found?.schema?.["type"] === "object" && draft.text.value === "") draft.text.value = "{}";
        declared.value = found;
      },
      () => {}, // then without
    );
    return () => ended.abort();
  }, [kind, name]);
  const { form, wrong, onSubmit } = useSending(draft, {
    send: async () => {
      const data = compact(written(draft, "The data is not valid JSON."));
      const json = `{"name":${JSON.stringify(name)},"key":${JSON.stringify(topicKey)},"data":${data}}`;
      await call("/signals", { method: "POST", json });
      return { said: "Signal sent", next: again };
    },
    misfit: "The data does not match the signal's schema. Not sent.",
    close,
  });

  return (
    <form ref={form} method="dialog" noValidate onSubmit={onSubmit}>
      <header>
        <h2>{title}</h2>
      </header>
      <div class="content">
        <JsonInput draft={draft} of={declared.value} what="data" undone="sent" />
      </div>
      {wrong !== null && (
        <div class="banner bad told" role="alert">
          {wrong}
        </div>
      )}
      <DialogButtons verb="Send" danger={false} close={close} />
    </form>
  );
}
