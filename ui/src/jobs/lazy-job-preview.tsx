// Looking at a job from a list without leaving it: the drawer is fetched when it is first opened.
import { Act } from "../kit/actions.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import type { Peek as PeekOf } from "./job-preview.tsx";
import { actionsColumn, type Column } from "../kit/table.tsx";
import { t } from "../language/translation.ts";

interface Peeked {
  readonly id: string;
  readonly name: string;
}

const Peek = lazily<Parameters<typeof PeekOf>[0]>(
  async () => (await import("./job-preview.tsx")).Peek,
  () => (
    <div class="dialog" role="status">
      <div class="content">{t("Loading…")}</div>
    </div>
  ),
);

export const peekColumn: Column<Peeked> = actionsColumn((job) => (
  <Act
    verb={t("Peek")}
    on={t("at {name}", { name: job.name })}
    needs="view"
    icon="search"
    bare
    quiet
    title={t("Look at it here (v)")}
    press={() => peek(job)}
  />
));

export function peek({ id, name }: Peeked): void {
  showDialog(t("Job {name}", { name }), (close) => <Peek id={id} close={close} />, "drawer");
}
