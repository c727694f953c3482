// A new job, or a copy of one with its input to be edited first.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { send } from "./api.ts";
import { showDialog, toast } from "./parts.tsx";
import { go } from "./router.ts";

interface Start {
  readonly name?: string;
  readonly queue?: string;
  readonly input?: string;
}

export function enqueueDialog(start: Start): void {
  showDialog("New job", (close) => <Enqueue start={start} close={close} />);
}

function Enqueue({ start, close }: { start: Start; close: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  const error = useSignal<string | null>(null);
  const submit = async (): Promise<void> => {
    const data = new FormData(form.current ?? undefined);
    const text = (name: string): string | undefined => {
      const value = data.get(name);
      return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
    };
    let input: unknown;
    try {
      input = JSON.parse(text("input") ?? "null");
    } catch {
      error.value = "The input is not JSON.";
      return;
    }
    const priority = text("priority");
    try {
      const { status, id } = await send<{ status: string; id: string }>("POST", "/jobs", {
        name: text("name") ?? "",
        input,
        ...(text("queue") === undefined ? {} : { queue: text("queue") }),
        ...(text("delay") === undefined ? {} : { delay: text("delay") }),
        ...(text("key") === undefined ? {} : { key: text("key") }),
        ...(priority === undefined ? {} : { priority: Number(priority) }),
      });
      toast(status === "enqueued" ? "Enqueued." : `Not enqueued again: ${status}.`);
      close();
      go(`/jobs/${id}`);
    } catch (failure) {
      error.value = (failure as Error).message;
    }
  };
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <header>
        <h2>New job</h2>
      </header>
      <div class="content">
        {error.value !== null && (
          <div class="banner bad" role="alert">
            {error.value}
          </div>
        )}
        <label class="field">
          <span>Name</span>
          <input
            class="input"
            name="name"
            required
            defaultValue={start.name ?? ""}
            autocomplete="off"
            spellcheck={false}
          />
        </label>
        <label class="field">
          <span>Input (JSON)</span>
          <textarea class="input" name="input" spellcheck={false} defaultValue={start.input ?? "{}"} />
        </label>
        <div class="grid two">
          <label class="field">
            <span>Queue</span>
            <input
              class="input"
              name="queue"
              placeholder="default"
              defaultValue={start.queue ?? ""}
              spellcheck={false}
            />
          </label>
          <label class="field">
            <span>Delay</span>
            <input class="input" name="delay" placeholder="none, or 5m" spellcheck={false} />
          </label>
          <label class="field">
            <span>Priority</span>
            <input class="input" name="priority" inputMode="numeric" placeholder="0" />
          </label>
          <label class="field">
            <span>Unique key</span>
            <input class="input" name="key" placeholder="none" spellcheck={false} />
          </label>
        </div>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Not now
        </button>
        <button type="submit" class="button primary">
          Enqueue
        </button>
      </footer>
    </form>
  );
}
