// The palette: finds screens, queues, schedules, workers and saved views by name, and runs actions on them. Loaded after
// the first paint. Ctrl K opens it, and / on screens without a search.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { JobLine, JobMatches, ScheduleLine, WorkerLine } from "../../../src/dashboard/api/contract.ts";
import { idPart } from "../../../src/values/id-part.ts";
import { get, query, seg } from "../data/api.ts";
import { mayDo, startBulk } from "../operations/bulk-dialog.tsx";
import { enqueueDialog } from "../new-job/lazy-new-job.tsx";
import { Icon, type IconName } from "../kit/icons.tsx";
import { live, may, overview } from "../data/live-stream.ts";
import { type Actions, allowed } from "../kit/actions.tsx";
import { queueActions } from "../queues/queue-actions.tsx";
import { actionsOf } from "../schedules/schedule-actions.tsx";
import { go } from "../data/router.ts";
import { nextTheme } from "../data/page-settings.ts";
import { useQuery } from "../data/live-query.ts";
import { views } from "../jobs/saved-views.tsx";

export interface PaletteEntry {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly key: string;
}

interface Option {
  readonly name: string;
  readonly icon: IconName;
  readonly hint: string;
  readonly run: () => void;
}

const mostJobs = 5;
/** Limits named things; screens are always listed. */
const mostOptions = 14;

export function Palette({
  close,
  entries,
  help,
}: {
  close: () => void;
  entries: readonly PaletteEntry[];
  help: () => void;
}) {
  const text = useSignal("");
  const at = useSignal(0);
  const input = useRef<HTMLInputElement>(null);
  // The dialog took the focus before this component loaded.
  useEffect(() => input.current?.focus(), []);
  const wanted = text.value.trim().toLowerCase();
  const named = useNamed(wanted !== "");
  const { jobs, asking } = useJobs(wanted);
  const options = optionsOf(text.value, entries, { ...named, jobs }, help);
  const chosen = Math.min(at.value, options.length - 1);
  const choose = (i: number): void => {
    close();
    options[i]?.run();
  };
  // Enter after a pasted id waits for the job that has it.
  const entered = useSignal<string | null>(null);
  useEffect(() => {
    if (entered.value === wanted && !asking) choose(0);
  });
  return (
    <div class="dialog">
      <input
        ref={input}
        class="input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${chosen}`}
        aria-label="Go to a screen, queue or job, or run an action"
        placeholder="Screen, name, job id, action, or payload text"
        spellcheck={false}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") at.value = Math.min(options.length - 1, chosen + 1);
          else if (event.key === "ArrowUp") at.value = Math.max(0, chosen - 1);
          else if (event.key === "Enter" && asking && at.value === 0) entered.value = wanted;
          else if (event.key === "Enter") choose(chosen);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Results">
        {options.map((option, i) => (
          <li
            key={`${option.hint} ${option.name}`}
            id={`palette-${i}`}
            role="option"
            aria-selected={i === chosen}
            onClick={() => choose(i)}
          >
            <Icon name={option.icon} />
            <span class="clip">{option.name}</span>
            <span class="hint">{option.hint}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** Jobs by part of their id. `asking`: the request is pending. */
function useJobs(wanted: string): { readonly jobs: readonly JobLine[]; readonly asking: boolean } {
  const part = /^[0-9a-f…-]+$/.test(wanted) && idPart(wanted) !== null ? wanted : null;
  const { data, error } = useQuery(`palette id ${part ?? ""}`, async (signal) => ({
    part,
    jobs: part === null ? [] : (await get<JobMatches>("/jobs/matching", { id: part }, signal)).jobs,
  }));
  if (part === null || data === null) return { jobs: [], asking: part !== null && error === null };
  return { jobs: data.jobs, asking: data.part !== part && error === null };
}

interface Named {
  readonly schedules: readonly ScheduleLine[];
  readonly workers: readonly WorkerLine[];
}

/** Loaded when the first character is typed. */
function useNamed(ask: boolean): Named {
  const found = useQuery(`palette ${ask}`, async (signal): Promise<Named> => {
    if (!ask) return { schedules: [], workers: [] };
    const [{ schedules }, { workers }] = await Promise.all([
      get<Pick<Named, "schedules">>("/schedules", {}, signal),
      get<Pick<Named, "workers">>("/workers", {}, signal),
    ]);
    return { schedules, workers };
  });
  return found.data ?? { schedules: [], workers: [] };
}

function optionsOf(
  typed: string,
  entries: readonly PaletteEntry[],
  { schedules, workers, jobs }: Named & { readonly jobs: readonly JobLine[] },
  help: () => void,
): Option[] {
  const wanted = typed.trim().toLowerCase();
  const words = wanted.split(/\s+/);
  const fits = ({ name, hint }: Option): boolean =>
    words.every((word) => `${name} ${hint}`.toLowerCase().includes(word));
  const queues = overview.value?.queues ?? [];
  const things: Option[] =
    wanted === ""
      ? []
      : [
          ...views.value.map(({ name, to }) => option(name, "star", "saved view", () => go(to))),
          ...queues.map(({ name }) => option(name, "queues", "queue", () => go(`/queues/${seg(name)}`))),
          ...schedules.map(({ name }) =>
            option(name, "calendar", "schedule", () => go(`/schedules/${seg(name)}`)),
          ),
          ...workers.map(({ name, id }) =>
            option(name, "workers", `worker ${id.slice(-6)}`, () => go(`/workers?worker=${seg(id)}`)),
          ),
          ...queues.flatMap((queue) => actionOptions("queue", queue.name, queueActions(queue, again))),
          ...schedules.flatMap((one) => actionOptions("schedule", one.name, actionsOf(one, again))),
        ];
  const ways = entries.map(({ name, icon, key, path }) => option(name, icon, `g ${key}`, () => go(path)));
  const found = [
    // Screens match by name alone, not by key.
    ...ways.filter(({ name }) => name.toLowerCase().includes(wanted)),
    ...things.filter(fits).slice(0, mostOptions),
    ...commands(help).filter(fits),
  ];
  found.unshift(
    ...jobs
      .slice(0, mostJobs)
      .map(({ id, name, state }) =>
        option(`Job ${id}`, "jobs", `${name}, ${state}`, () => go(`/jobs/${id}`)),
      ),
  );
  if (wanted !== "" && may("jobs:search"))
    // The job search parses words, ids and parts of ids.
    found.push(
      option(`Find jobs with “${typed.trim()}”`, "search", "search", () =>
        go(`/jobs${query({ find: typed.trim() })}`),
      ),
    );
  return found;
}

function option(name: string, icon: IconName, hint: string, run: () => void): Option {
  return { name, icon, hint, run };
}

/** Actions without a target. */
function commands(help: () => void): Option[] {
  return [
    ...(may("jobs:enqueue") ? [option("New job", "plus", "", () => enqueueDialog({}))] : []),
    option("Change the theme", "moon", "t", nextTheme),
    option(
      live.value ? "Pause live updates" : "Resume live updates",
      live.value ? "pause" : "play",
      ".",
      () => {
        live.value = !live.value;
      },
    ),
    option("Keyboard and settings", "keyboard", "?", help),
    ...(mayDo("retry")
      ? [
          option("Retry all dead jobs", "retry", "with a preview", () =>
            startBulk("retry", { state: ["dead"] }, again),
          ),
        ]
      : []),
  ];
}

function actionOptions(kind: "queue" | "schedule", name: string, actions: Actions): Option[] {
  return allowed(actions).map(({ verb, icon = "next", press }) =>
    option(`${verb} ${name}`, icon, kind, press),
  );
}

/** Lists update through the live stream. */
function again(): void {}
