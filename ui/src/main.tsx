// The shell: menu, live state, palette, and the screen that the address names.
import { render } from "preact";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import "./style.css";
import { locked, query, unlock } from "./api.ts";
import { enqueueDialog } from "./enqueue.tsx";
import { count, number } from "./format.ts";
import { Icon, type IconName, Logo } from "./icons.tsx";
import { searchParams } from "./job-filter.ts";
import { onKey, startKeys } from "./keys.ts";
import { about, connect, connection, live, may, me, overview } from "./live.ts";
import { Dialogs, showDialog, Toasts } from "./parts.tsx";
import { go, href, path, startRouter } from "./router.ts";
import { Limits, Runs } from "./lazy-screens.tsx";
import { Audit } from "./screens/audit.tsx";
import { Database } from "./screens/database.tsx";
import { ErrorScreen } from "./screens/error.tsx";
import { Errors } from "./screens/errors.tsx";
import { Job } from "./screens/job.tsx";
import { Jobs } from "./screens/jobs.tsx";
import { OperationsScreen } from "./screens/operations.tsx";
import { Overview } from "./screens/overview.tsx";
import { Queues, QueueScreen } from "./screens/queues.tsx";
import { Schedules } from "./screens/schedules.tsx";
import { Workers } from "./screens/workers.tsx";
import { clock, density, nextTheme, page, shortcuts, theme, themes } from "./settings.ts";
import { views } from "./views.tsx";

interface Place {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly key: string;
  readonly tail?: () => { text: string; bad?: boolean } | null;
  readonly shown?: () => boolean;
}

const groups: readonly { name: string; places: readonly Place[] }[] = [
  {
    name: "Work",
    places: [
      { path: "/", name: "Overview", icon: "overview", key: "o" },
      {
        path: "/jobs",
        name: "Jobs",
        icon: "jobs",
        key: "j",
        tail: () => tail(overview.value?.totals.running),
      },
      { path: "/workflows", name: "Workflows", icon: "step", key: "f" },
      { path: "/scheduled", name: "Scheduled", icon: "clock", key: "s", tail: () => capped("scheduled") },
      { path: "/retries", name: "Retries", icon: "retry", key: "r", tail: () => capped("retrying") },
      { path: "/errors", name: "Failures", icon: "dead", key: "d", tail: () => capped("dead", true) },
    ],
  },
  {
    name: "Machine",
    places: [
      {
        path: "/queues",
        name: "Queues",
        icon: "queues",
        key: "q",
        tail: () => tail(overview.value?.queueCount),
      },
      { path: "/schedules", name: "Schedules", icon: "calendar", key: "c" },
      {
        path: "/workers",
        name: "Workers",
        icon: "workers",
        key: "w",
        tail: () => tail(overview.value?.workers),
      },
      {
        path: "/limits",
        name: "Limits",
        icon: "limits",
        key: "l",
        tail: () => tail(overview.value?.holds || undefined),
      },
      { path: "/database", name: "Database", icon: "database", key: "b" },
      { path: "/operations", name: "Operations", icon: "columns", key: "p" },
      { path: "/audit", name: "Audit", icon: "audit", key: "a", shown: () => may("audit:view") },
    ],
  },
];
const places = groups.flatMap((group) => group.places);

function tail(n: number | undefined): { text: string } | null {
  return n === undefined ? null : { text: number(n) };
}

function capped(of: "scheduled" | "retrying" | "dead", bad = false): { text: string; bad?: boolean } | null {
  const total = overview.value?.totals[of];
  if (total === undefined || (total.count === 0 && !total.more)) return null;
  return { text: count(total), bad };
}

function Screen() {
  const [first = "", second] = path.value.slice(1).split("/").map(decodeURIComponent);
  switch (first) {
    case "":
      return <Overview />;
    case "jobs":
      return second === undefined || second === "" ? <Jobs kind="jobs" /> : <Job key={second} id={second} />;
    case "workflows":
      return <Runs />;
    case "scheduled":
      return <Jobs key="scheduled" kind="scheduled" />;
    case "retries":
      return <Jobs key="retries" kind="retries" />;
    case "errors":
      return second === undefined || second === "" ? <Errors /> : <ErrorScreen key={second} group={second} />;
    case "queues":
      return second === undefined || second === "" ? <Queues /> : <QueueScreen key={second} name={second} />;
    case "schedules":
      return <Schedules />;
    case "workers":
      return <Workers />;
    case "limits":
      return <Limits />;
    case "database":
      return <Database />;
    case "operations":
      return <OperationsScreen />;
    case "audit":
      return <Audit />;
    default:
      return <Overview />;
  }
}

function App() {
  const menu = useSignal(false);
  useEffect(() => {
    const offs = places.map((place) =>
      onKey(`g ${place.key}`, () => {
        if (place.shown?.() !== false) go(place.path);
      }),
    );
    offs.push(
      onKey("?", help),
      onKey("t", nextTheme),
      onKey(".", () => (live.value = !live.value)),
    );
    return () => offs.forEach((off) => off());
  }, []);
  useEffect(
    () =>
      path.subscribe(() => {
        menu.value = false;
        const place = placeOf(path.value);
        document.title = [place?.name, page.database, page.label, "Holdfast"]
          .filter((part) => part !== undefined && part !== null)
          .join(" · ");
      }),
    [],
  );
  if (locked.value) return <Gate />;
  return (
    <>
      <a class="skip" href="#main">
        To the content
      </a>
      <div class="shell">
        <aside class={`side ${menu.value ? "open" : ""}`}>
          <a class="brand" href={href("/")}>
            <Logo /> Holdfast
            {page.label !== null && <span class="env">{page.label}</span>}
          </a>
          <DatabaseSwitch />
          <nav class="nav" aria-label="Screens">
            {groups.map((group) => (
              <div key={group.name}>
                <h2>{group.name}</h2>
                <ul>
                  {group.places
                    .filter((place) => place.shown?.() !== false)
                    .map((place) => {
                      const end = place.tail?.() ?? null;
                      return (
                        <li key={place.path}>
                          <a
                            href={href(place.path)}
                            aria-current={placeOf(path.value) === place ? "page" : undefined}
                          >
                            <Icon name={place.icon} />
                            {place.name}
                            {end !== null && (
                              <span class={`tail ${end.bad === true ? "bad" : ""}`}>{end.text}</span>
                            )}
                          </a>
                        </li>
                      );
                    })}
                </ul>
              </div>
            ))}
          </nav>
          <div class="side-foot muted small">
            <span>
              {me.value?.user === "token" ? "Signed in by token" : (me.value?.user ?? "")}{" "}
              {me.value?.readOnly === true && <span class="tag">read-only</span>}
            </span>
            <span>
              v{about.value?.version ?? "…"} on {about.value?.dialect === "postgres" ? "Postgres" : "SQLite"}
            </span>
          </div>
        </aside>
        <div class="main">
          <header class="top">
            <button
              type="button"
              class="button quiet icon menu-button"
              aria-label="Menu"
              aria-expanded={menu.value}
              onClick={() => (menu.value = !menu.value)}
            >
              <Icon name="menu" />
            </button>
            <Crumbs />
            <span class="spring" />
            <button type="button" class="finder" onClick={palette}>
              <Icon name="search" size={14} />
              <span>Go to…</span>
              <span class="hidden-text">Go to a screen, a queue or a job</span>
              <kbd aria-hidden="true">{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl K"}</kbd>
            </button>
            <LiveButton />
            <button
              type="button"
              class="button quiet icon"
              aria-label={`Theme: ${theme.value}. Change`}
              title={`Theme: ${theme.value}`}
              onClick={nextTheme}
            >
              <Icon name={themeIcons[theme.value]} />
            </button>
            <button type="button" class="button quiet icon" aria-label="Keyboard and settings" onClick={help}>
              <Icon name="keyboard" />
            </button>
          </header>
          <main id="main" tabIndex={-1} onClick={() => (menu.value = false)}>
            <Screen />
          </main>
        </div>
      </div>
      <Dialogs />
      <Toasts />
    </>
  );
}

/** Where the dashboard has several databases: the same screen of another. */
function DatabaseSwitch() {
  const known = about.value;
  if (known === null || known.databases.length < 2) return null;
  return (
    <label class="switch">
      <Icon name="database" size={14} />
      <select
        class="input"
        aria-label="Database"
        value={known.database ?? ""}
        onChange={(event) => {
          const { value } = event.currentTarget;
          const to = known.databases.find(({ name }) => name === value);
          // A job or a queue of this database is none of the other's.
          if (to !== undefined) location.assign(`${to.path}/${path.value.split("/")[1] ?? ""}`);
        }}
      >
        {known.databases.map(({ name, label }) => (
          <option key={name} value={name}>
            {label === null || label === name ? name : `${name} (${label})`}
          </option>
        ))}
      </select>
    </label>
  );
}

function placeOf(at: string): Place | undefined {
  const first = `/${at.split("/")[1] ?? ""}`;
  return places.find((place) => place.path === first);
}

function Crumbs() {
  const place = placeOf(path.value);
  const deeper = path.value.split("/")[2];
  return (
    <div class="crumbs">
      {deeper === undefined || deeper === "" ? (
        <span class="hidden-text">{place?.name}</span>
      ) : (
        <>
          <a class="muted" href={href(place?.path ?? "/")}>
            {place?.name}
          </a>
          <span class="sep" aria-hidden="true">
            /
          </span>
          <span class="clip">
            {path.value.startsWith("/jobs/")
              ? decodeURIComponent(deeper).slice(-12)
              : decodeURIComponent(deeper)}
          </span>
        </>
      )}
    </div>
  );
}

const themeIcons = { system: "auto", light: "sun", dark: "moon", contrast: "contrast" } as const;

const liveWords = {
  live: "Live",
  paused: "Paused",
  connecting: "Connecting",
  trouble: "Reconnecting",
} as const;

function LiveButton() {
  const how = connection.value;
  return (
    <button
      type="button"
      class="button quiet"
      aria-pressed={live.value}
      title={live.value ? "Live: press to pause" : "Paused: press to go on"}
      onClick={() => (live.value = !live.value)}
    >
      <span class={`live-dot ${how}`} aria-hidden="true" />
      <span class="medium-only">{liveWords[how]}</span>
      <span class="hidden-text">{liveWords[how]}</span>
    </button>
  );
}

function Gate() {
  const input = useRef<HTMLInputElement>(null);
  return (
    <main class="gate">
      <form
        class="panel"
        onSubmit={(event) => {
          event.preventDefault();
          const value = input.current?.value.trim() ?? "";
          if (value !== "") unlock(/token=([\w-]+)/.exec(value)?.[1] ?? value);
        }}
      >
        <span class="brand">
          <Logo /> Holdfast
        </span>
        <p class="muted">Open the address that the server printed, or put its token in here.</p>
        <label class="field">
          <span>Token</span>
          <input ref={input} class="input mono" type="password" autocomplete="off" autofocus />
        </label>
        <button type="submit" class="button primary">
          Open
        </button>
      </form>
    </main>
  );
}

// Palette

function palette(): void {
  showDialog("Go to", (close) => <Palette close={close} />, "palette");
}

function Palette({ close }: { close: () => void }) {
  const text = useSignal("");
  const at = useSignal(0);
  const wanted = text.value.trim().toLowerCase();
  const options: { name: string; icon: IconName; hint: string; run: () => void }[] = [];
  if (/^[0-9a-f-]{8,36}$/.test(wanted) && wanted.includes("-"))
    options.push({ name: `Job ${wanted}`, icon: "jobs", hint: "open", run: () => go(`/jobs/${wanted}`) });
  for (const place of places)
    if (place.shown?.() !== false && place.name.toLowerCase().includes(wanted))
      options.push({ name: place.name, icon: place.icon, hint: `g ${place.key}`, run: () => go(place.path) });
  for (const { name, to } of views.value)
    if (wanted !== "" && name.toLowerCase().includes(wanted))
      options.push({ name, icon: "star", hint: "saved view", run: () => go(to) });
  for (const queue of overview.value?.queues ?? [])
    if (wanted !== "" && queue.name.toLowerCase().includes(wanted) && options.length < 12)
      options.push({
        name: queue.name,
        icon: "queues",
        hint: "queue",
        run: () => go(`/queues/${queue.name}`),
      });
  if (may("jobs:enqueue") && "new job".includes(wanted))
    options.push({ name: "New job", icon: "plus", hint: "", run: () => enqueueDialog({}) });
  if ("theme".includes(wanted))
    options.push({ name: "Change the theme", icon: "moon", hint: "t", run: nextTheme });
  if (wanted !== "" && may("jobs:search"))
    options.push({
      name: `Find jobs with “${text.value.trim()}”`,
      icon: "search",
      hint: "search",
      // Words mean here what they mean in the search for jobs.
      run: () => go(`/jobs${query(searchParams(text.value, Date.now()))}`),
    });
  const chosen = Math.min(at.value, options.length - 1);
  const choose = (i: number): void => {
    close();
    options[i]?.run();
  };
  return (
    <div class="dialog">
      <input
        class="input"
        role="combobox"
        aria-expanded="true"
        aria-controls="palette-list"
        aria-activedescendant={`palette-${chosen}`}
        aria-label="Go to a screen, a queue or a job"
        placeholder="A screen, a queue, a job's id, or text in a payload"
        autofocus
        spellcheck={false}
        onInput={(event) => {
          text.value = event.currentTarget.value;
          at.value = 0;
        }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") at.value = Math.min(options.length - 1, chosen + 1);
          else if (event.key === "ArrowUp") at.value = Math.max(0, chosen - 1);
          else if (event.key === "Enter") choose(chosen);
          else return;
          event.preventDefault();
        }}
      />
      <ul id="palette-list" role="listbox" aria-label="Where to">
        {options.map((option, i) => (
          <li
            key={option.name}
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

// Help

const keys: readonly [string, string][] = [
  ["Ctrl K", "Go to a screen, a saved view, a queue or a job"],
  [
    "g then o j s r d q c w l b p a",
    "Overview, jobs, scheduled, retries, failures, queues, schedules, workers, limits, database, operations, audit",
  ],
  ["/", "Find jobs"],
  ["j k Enter", "Next, previous, open"],
  ["x X *", "Choose, choose a range, choose all that match"],
  ["r n c e #", "Retry, run now, cancel, edit, delete"],
  ["s i o", "Failures: resolve, ignore, reopen"],
  ["← → Shift Enter", "On a chart: through time, choose a stretch, open it"],
  ["← → Enter Space", "In a graph: along the edges, open, show the steps of a job; + − 0 its size"],
  [".", "Live or paused"],
  ["t", "Theme"],
  ["?", "This"],
  ["Esc", "Close, or choose none"],
];

function help(): void {
  showDialog("Keyboard and settings", (close) => <Help close={close} />);
}

function Help({ close }: { close: () => void }) {
  return (
    <div class="dialog">
      <header>
        <h2>Keyboard and settings</h2>
      </header>
      <div class="content">
        <dl class="keys">
          {keys.map(([key, what]) => (
            <>
              <dt key={`${key} key`}>
                <kbd>{key}</kbd>
              </dt>
              <dd key={key}>{what}</dd>
            </>
          ))}
        </dl>
        <label class="row">
          Theme{" "}
          <select
            class="input"
            aria-label="Theme"
            value={theme.value}
            onChange={(event) => (theme.value = event.currentTarget.value as typeof theme.value)}
          >
            {themes.map(([value, name]) => (
              <option key={value} value={value}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label class="row">
          Rows{" "}
          <select
            class="input"
            aria-label="Rows"
            value={density.value}
            onChange={(event) => (density.value = event.currentTarget.value as typeof density.value)}
          >
            <option value="comfortable">Comfortable</option>
            <option value="compact">Compact</option>
          </select>
        </label>
        <label class="row">
          <input
            type="checkbox"
            checked={shortcuts.value === "on"}
            onChange={(event) => (shortcuts.value = event.currentTarget.checked ? "on" : "off")}
          />{" "}
          Single keys do things
        </label>
        <label class="row">
          <input
            type="checkbox"
            checked={clock.value === "utc"}
            onChange={(event) => (clock.value = event.currentTarget.checked ? "utc" : "local")}
          />{" "}
          Times in UTC
        </label>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </div>
  );
}

startRouter();
startKeys(palette);
connect();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
