// The dialog for a new job: name, input (json-input.tsx) and options. The input stays text on its way to the server.
import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { DefinitionDetail } from "../../../src/dashboard/api/contract.ts";
import { Field, Fields } from "../kit/forms.tsx";
import { call, get, seg } from "../data/api.ts";
import type { Start } from "./lazy-new-job.tsx";
import { compact, enqueueBody, readJson } from "../json/json-text.ts";
import { NameField } from "./name-field.tsx";
import { may } from "../data/live-stream.ts";
import { maskedInput, stillMasked } from "../json/redaction-masks.ts";
import { Ago, JobStateOf } from "../kit/labels.tsx";
import { DialogButtons, showDialog } from "../kit/dialogs.tsx";
import { type RecentInput, recentInputs } from "./recent-inputs.ts";
import { go } from "../data/router.ts";
import { type Draft, JsonInput, useDraft, useSending, written } from "../json/json-input.tsx";

export function newJobDialog(start: Start): void {
  showDialog("New job", (close) => <NewJob start={start} close={close} />, "new-job");
}

function NewJob({ start, close }: { start: Start; close: () => void }) {
  const name = useSignal(start.name ?? "");
  const given = useRef(maskedInput(start.input ?? "{}", start.masked ?? [])).current;
  const draft = useDraft(given.text, given.marks);
  const kind = useSignal<DefinitionDetail | null>(null);
  const recent = useSignal<readonly RecentInput[]>([]);

  useEffect(() => {
    kind.value = null;
    recent.value = [];
    const ended = new AbortController();
    void learn(name.value.trim(), ended.signal, kind, recent);
    return () => ended.abort();
  }, [name.value]);

  const { form, wrong, onSubmit } = useSending(draft, {
    send: async (fields) => ({ said: await enqueue(new Fields(fields), draft) }),
    misfit: "The input does not match the job's schema. Not enqueued.",
    close,
  });

  const computed = (what: "unique" | "lane"): string =>
    kind.value?.[what] === true ? (kind.value.here ? "from the input" : "needed for this name") : "none";
  return (
    <form ref={form} method="dialog" noValidate onSubmit={onSubmit}>
      <header>
        <h2>New job</h2>
      </header>
      <div class="content">
        <NameField start={start.name ?? ""} chosen={name} />
        <Recent
          list={recent.value}
          take={({ input, masked }) => {
            const taken = maskedInput(input ?? "null", masked);
            draft.text.value = taken.text;
            draft.marks.value = taken.marks;
            draft.halves.value = new Map();
            draft.issues.value = [];
          }}
        />
        {start.payloadHidden === true && (
          <div class="banner warn">You do not have permission to see the copied job's input. Enter one.</div>
        )}
        <JsonInput draft={draft} of={kind.value} what="input" undone="enqueued" />
        <div class="grid two">
          <Field
            label="Queue"
            name="queue"
            placeholder={kind.value?.queue ?? "default"}
            defaultValue={start.queue ?? ""}
          />
          <Field label="Delay" name="delay" placeholder="none, or 5m" />
          <Field
            label="Priority"
            name="priority"
            inputMode="numeric"
            placeholder="0"
            defaultValue={start.priority === 0 ? "" : (start.priority ?? "")}
          />
          <Field label="Attempts" name="attempts" inputMode="numeric" placeholder="default of the job" />
          <Field label="Unique key" name="key" placeholder={computed("unique")} />
          <Field label="Lane" name="lane" placeholder={computed("lane")} defaultValue={start.lane ?? ""} />
        </div>
      </div>
      {wrong !== null && (
        <div class="banner bad told" role="alert">
          {wrong}
        </div>
      )}
      <DialogButtons verb="Enqueue" danger={false} close={close} />
    </form>
  );
}

/** The schema and recent inputs of a name. An unknown name has none. */
async function learn(
  name: string,
  ended: AbortSignal,
  kind: Signal<DefinitionDetail | null>,
  recent: Signal<readonly RecentInput[]>,
): Promise<void> {
  if (name === "") return;
  const ask = async <T,>(into: Signal<T>, question: Promise<T>): Promise<void> => {
    try {
      const answer = await question;
      if (!ended.aborted) into.value = answer;
    } catch {
      // The form works without it.
    }
  };
  await Promise.all([
    ask(kind, get<DefinitionDetail>(`/definitions/${seg(name)}`, {}, ended)),
    may("view:payload") && ask(recent, recentInputs(name, get, ended)),
  ]);
}

/** @throws Error for an invalid form; ApiFailure with the schema's issues */
async function enqueue(fields: Fields, draft: Draft): Promise<string> {
  const name = fields.text("name");
  if (name === undefined) throw new Error("Enter a job name.");
  const input = written(draft, "The input is not valid JSON.");
  if (stillMasked(input, draft.marks.value).length > 0)
    throw new Error("Not enqueued: part of the input is redacted.");
  const options = {
    queue: fields.text("queue"),
    delay: fields.text("delay"),
    priority: fields.number("priority"),
    attempts: fields.number("attempts"),
    key: fields.text("key"),
    lane: fields.text("lane"),
  };
  const json = enqueueBody(name, compact(input), options);
  const response = await call("/jobs", { method: "POST", json });
  const { status, id } = (await response.json()) as { status: string; id: string };
  go(`/jobs/${id}`);
  return status === "enqueued" ? "Enqueued" : `Not enqueued: ${status}`;
}

function Recent({ list, take }: { list: readonly RecentInput[]; take: (one: RecentInput) => void }) {
  if (list.length === 0) return null;
  return (
    <div class="field">
      <span id="recent-inputs">Recent inputs</span>
      <ul class="recent" aria-labelledby="recent-inputs">
        {list.map((one) => (
          <li key={one.id}>
            <button type="button" onClick={() => take(one)} title="Use this input">
              <span class="mono clip">{compact(readJson(one.input ?? "null")).slice(0, 400)}</span>
              {one.masked.length > 0 && <span class="tag warn">redacted</span>}
              <JobStateOf job={one} />
              <span class="muted small">
                <Ago at={one.createdAt} />
              </span>
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}
