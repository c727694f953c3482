// The menu that copies a job as text: to see it in a terminal, or to enqueue one like it.
import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { JobDetail } from "../../src/dashboard/contract.ts";
import { Icon } from "./icons.tsx";
import { commandOf } from "./job-filter.ts";
import { copy } from "./parts.tsx";
import { page } from "./settings.ts";
import { commandSnippet, curlSnippet, typescriptSnippet } from "./snippets.ts";
import { t } from "./text.ts";

interface Form {
  readonly name: string;
  readonly hint: string;
  readonly text: (job: JobDetail) => string;
}

const see: Form = {
  name: t("Command to see it"),
  hint: "holdfast jobs show",
  text: ({ id }) => commandOf("list", { ids: [id] }),
};
const likeIt: readonly Form[] = [
  { name: t("CLI command"), hint: "holdfast enqueue", text: commandSnippet },
  {
    name: "curl",
    hint: "POST /api/v1/jobs",
    text: (job) => curlSnippet(job, { api: `${location.origin}${page.basePath}/api/v1`, auth: page.auth }),
  },
  { name: "TypeScript", hint: "hf.enqueue", text: typescriptSnippet },
];

export function CopyAs({ job }: { job: JobDetail }) {
  const open = useSignal(false);
  const root = useRef<HTMLDivElement>(null);
  const items = (): HTMLElement[] => [
    ...(root.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? []),
  ];
  const close = (): void => {
    open.value = false;
    root.current?.querySelector("button")?.focus();
  };
  useLayoutEffect(() => {
    if (open.value) items()[0]?.focus();
  }, [open.value]);
  useEffect(() => {
    const outside = (event: Event): void => {
      if (!root.current?.contains(event.target as Node)) open.value = false;
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, []);
  const move = (event: KeyboardEvent): void => {
    const all = items();
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    // Keys of the page (r, c, #) do nothing while a menu is open.
    event.stopPropagation();
    if (event.key === "Tab") open.value = false;
    else if (event.key === "Escape") close();
    else if (to !== undefined) all.at(to % all.length)?.focus();
    else return;
    if (event.key !== "Tab") event.preventDefault();
  };
  const masked = job.payloadHidden || job.masked.length > 0;
  const item = ({ name, hint, text }: Form) => (
    <button
      key={name}
      type="button"
      role="menuitem"
      tabIndex={-1}
      onClick={() => {
        close();
        const said = masked ? t("Copied. Its first line says what must be filled in.") : undefined;
        void copy(text(job), name === see.name ? undefined : said);
      }}
    >
      {name} <span class="hint mono">{hint}</span>
    </button>
  );
  return (
    <div class="menu" ref={root}>
      <button
        type="button"
        class="button quiet small"
        aria-haspopup="menu"
        aria-expanded={open.value}
        onClick={() => (open.value = !open.value)}
        onKeyDown={(event) => {
          if (event.key !== "ArrowDown" || open.value) return;
          event.preventDefault();
          open.value = true;
        }}
      >
        <Icon name="copy" size={13} /> {t("Copy as…")}
      </button>
      {open.value && (
        <div class="items" role="menu" aria-label={t("Copy as")} tabIndex={-1} onKeyDown={move}>
          {item(see)}
          <div role="group" aria-label={t("To enqueue one like it")}>
            <span aria-hidden="true">{t("To enqueue one like it")}</span>
            {likeIt.map(item)}
          </div>
        </div>
      )}
    </div>
  );
}
