// Actions on a failure group: retry one job, retry or delete all, resolve, ignore, reopen.
import type { FailureGroup, FilterJson } from "../../../src/dashboard/api/contract.ts";
import { send } from "../data/api.ts";
import { may } from "../data/live-stream.ts";
import { go } from "../data/router.ts";
import { Field, openForm } from "../kit/forms.tsx";
import { attempt, toast, type Undo } from "../kit/toasts.tsx";
import { startBulk } from "../operations/bulk-dialog.tsx";

/** The dead jobs of a group. */
export function deadOf({ group, name, queues }: FailureGroup): FilterJson {
  return {
    state: ["dead"],
    ...(queues.length === 1 ? { queue: queues } : {}),
    name: [name],
    failureGroup: group,
  };
}

export function isSettled({ state }: FailureGroup): boolean {
  return state === "resolved" || state === "ignored";
}

/** Whether the group needs attention: it has dead or retrying jobs, or has regressed. */
export function wantsAttention({ state, dead, retrying }: FailureGroup): boolean {
  return state === "regressed" || (state === "open" && dead + retrying > 0);
}

/** Retries one job and opens the group with its result. */
export function tryOne(group: FailureGroup): void {
  const { sample, dead } = group;
  if (!may("jobs:retry") || sample === null || dead === 0) return;
  void attempt("Retrying one job", () => send("POST", `/jobs/${sample}/retry`)).then(
    (ok) => ok && go(`/errors/${group.group}?tried=${sample}`),
  );
}

export function retryAll(group: FailureGroup, again: () => void): void {
  if (group.dead > 0) startBulk("retry", deadOf(group), again);
}

/** Retries with changed input: a merged object or a JSON Patch. */
export function patchAll(group: FailureGroup, again: () => void): void {
  if (group.dead === 0) return;
  let patch: object | null = null;
  openForm({
    title: "Retry with changed input",
    verb: "Preview",
    body: (
      <>
        <label class="field">
          <span>Patch (JSON)</span>
          <textarea
            class="input mono"
            name="patch"
            rows={6}
            required
            placeholder={'{ "plan": "pro", "coupon": null }'}
            spellcheck={false}
          />
        </label>
        <p class="muted small">
          An object is merged into each input; null removes a key. An array is a JSON Patch:{" "}
          <code>{'[{ "op": "replace", "path": "/user/plan", "value": "pro" }]'}</code>. Unique keys and lanes
          do not change.
        </p>
      </>
    ),
    run: async (fields) => {
      const given = fields.json("patch", "patch");
      if (typeof given !== "object" || given === null)
        throw new Error("A patch must be an object or an array.");
      patch = given;
      return null;
    },
    then: () => startBulk("retry", deadOf(group), again, patch),
  });
}

/** Moves the dead jobs to another queue. */
export function moveAll(group: FailureGroup, again: () => void): void {
  if (group.dead > 0) startBulk("edit", deadOf(group), again);
}

export function deleteAll(group: FailureGroup, again: () => void): void {
  if (group.dead > 0) startBulk("delete", deadOf(group), again);
}

function mayDecide(): boolean {
  if (may("errors:decide")) return true;
  toast("You do not have permission to decide on failures.", "bad");
  return false;
}

export function resolve(group: FailureGroup, again: () => void): void {
  if (!mayDecide()) return;
  openForm({
    title: "Resolve this failure group",
    verb: "Resolve",
    body: (
      <>
        <p class="muted">
          Reopens if the same failure occurs again. Dead jobs stay until you retry or delete them.
        </p>
        <NoteFields group={group} />
      </>
    ),
    run: async (fields) => {
      await send("POST", `/errors/${group.group}/resolve`, noteOf(fields.text("note"), fields.text("link")));
      return "Resolved";
    },
    undo: () => deciding(group),
    then: again,
  });
}

export function ignore(group: FailureGroup, again: () => void): void {
  if (!mayDecide()) return;
  openForm({
    title: "Ignore this failure group",
    verb: "Ignore",
    body: (
      <>
        <div class="grid two">
          <Field label="For" name="for" placeholder="no end; or 12h, 7d" />
          <Field
            label="Until this many more failures"
            name="count"
            inputMode="numeric"
            placeholder="no limit"
          />
        </div>
        <NoteFields group={group} />
      </>
    ),
    run: async (fields) => {
      await send("POST", `/errors/${group.group}/ignore`, {
        ...noteOf(fields.text("note"), fields.text("link")),
        for: fields.text("for"),
        count: fields.number("count"),
      });
      return "Ignored";
    },
    undo: () => deciding(group),
    then: again,
  });
}

export function reopen(group: FailureGroup, again: () => void): void {
  if (!mayDecide()) return;
  void attempt("Reopened", () => send("POST", `/errors/${group.group}/reopen`), deciding(group)).then(again);
}

/** Restores the decision that the page shows now. */
function deciding({ group, state, note, link, untilAt, untilCount }: FailureGroup): Undo {
  const path = `/errors/${group}`;
  if (state === "resolved") return () => send("POST", `${path}/resolve`, { note, link });
  if (state !== "ignored") return () => send("POST", `${path}/reopen`, { note, link });
  return () =>
    send("POST", `${path}/ignore`, {
      note,
      link,
      until: untilAt ?? undefined,
      count: untilCount ?? undefined,
    });
}

export function note(group: FailureGroup, again: () => void): void {
  if (!mayDecide()) return;
  openForm({
    title: "Note",
    verb: "Keep",
    body: <NoteFields group={group} />,
    run: async (fields) => {
      await send("PATCH", `/errors/${group.group}`, noteOf(fields.text("note"), fields.text("link")));
      return "Note saved";
    },
    then: again,
  });
}

/** An empty field removes its value. */
function noteOf(
  text: string | undefined,
  link: string | undefined,
): { note: string | null; link: string | null } {
  return { note: text ?? null, link: link ?? null };
}

function NoteFields({ group }: { group: FailureGroup }) {
  return (
    <>
      <label class="field">
        <span>Note</span>
        <textarea
          class="input short"
          name="note"
          defaultValue={group.note ?? ""}
          placeholder="What is known so far"
        />
      </label>
      <Field label="Link" name="link" placeholder="https://…" defaultValue={group.link ?? ""} />
    </>
  );
}

/** Keys on a failure group, in the list and on its own screen. */
export function groupKeys(again: () => void): readonly (readonly [string, (group: FailureGroup) => void])[] {
  return [
    ["r", (group) => retryAll(group, again)],
    ["#", (group) => deleteAll(group, again)],
    ["n", tryOne],
    ["s", (group) => resolve(group, again)],
    ["i", (group) => ignore(group, again)],
    ["o", (group) => reopen(group, again)],
  ];
}
