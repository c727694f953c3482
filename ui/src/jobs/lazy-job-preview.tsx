// The preview of a job beside its list. Loaded when it first opens.
import { Act } from "../kit/actions.tsx";
import { lazily } from "../kit/lazy-component.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import type { JobPreview as PreviewOf } from "./job-preview.tsx";
import { actionsColumn, type Column } from "../kit/table.tsx";

interface PreviewedJob {
  readonly id: string;
  readonly name: string;
}

const JobPreview = lazily<Parameters<typeof PreviewOf>[0]>(
  async () => (await import("./job-preview.tsx")).JobPreview,
  () => (
    <div class="dialog" role="status">
      <div class="content">Loading…</div>
    </div>
  ),
);

export const previewColumn: Column<PreviewedJob> = actionsColumn((job) => (
  <Act
    verb="Preview"
    on={job.name}
    needs="view"
    icon="search"
    bare
    quiet
    title="Preview (v)"
    press={() => openPreview(job)}
  />
));

export function openPreview({ id, name }: PreviewedJob): void {
  showDialog(`Job ${name}`, (close) => <JobPreview id={id} close={close} />, "drawer");
}
