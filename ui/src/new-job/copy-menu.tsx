// The menu that copies a job as text: a command that shows it, or one that enqueues a copy.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { Icon } from "../kit/icons.tsx";
import { commandOf } from "../jobs/job-filter.ts";
import { Menu } from "../kit/menu.tsx";
import { copy } from "../kit/clipboard.tsx";
import { page } from "../data/page-settings.ts";
import { commandSnippet, curlSnippet, typescriptSnippet } from "./snippets.ts";

interface Form {
  readonly name: string;
  readonly hint: string;
  readonly text: (job: JobDetail) => string;
}

const see: Form = {
  name: "Command to see it",
  hint: "holdfast jobs show",
  text: ({ id }) => commandOf("list", { ids: [id] }),
};
const likeIt: readonly Form[] = [
  { name: "CLI command", hint: "holdfast enqueue", text: commandSnippet },
  {
    name: "curl",
    hint: "POST /api/v1/jobs",
    text: (job) => curlSnippet(job, { api: `${location.origin}${page.basePath}/api/v1`, auth: page.auth }),
  },
  { name: "TypeScript", hint: "hf.enqueue", text: typescriptSnippet },
];

export function CopyMenu({ job }: { job: JobDetail }) {
  const masked = job.payloadHidden || job.masked.length > 0;
  const item = ({ name, hint, text }: Form, choose: (run: () => void) => () => void) => (
    <button
      key={name}
      type="button"
      role="menuitem"
      tabIndex={-1}
      onClick={choose(() => {
        const said = masked ? "Copied. Fill in what its first line says." : undefined;
        void copy(text(job), name === see.name ? undefined : said);
      })}
    >
      {name} <span class="hint mono">{hint}</span>
    </button>
  );
  return (
    <Menu
      label="Copy as"
      looks="button quiet small"
      button={
        <>
          <Icon name="copy" size={13} /> Copy as…
        </>
      }
    >
      {(choose) => (
        <>
          {item(see, choose)}
          <div role="group" aria-label="To enqueue one like it">
            <span aria-hidden="true">To enqueue one like it</span>
            {likeIt.map((form) => item(form, choose))}
          </div>
        </>
      )}
    </Menu>
  );
}
