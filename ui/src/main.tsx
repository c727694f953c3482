// The shell: menu, live state, palette, and the screen that the address names.
import { render } from "preact";
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import "./style/index.css";
import { isScreen, segmentsOf } from "../../src/dashboard/appearance/screens.ts";
import { denied, locked, unlock } from "./data/api.ts";
import { startBidi } from "./language/bidi.ts";
import { count, duration, number } from "./kit/format.ts";
import { Icon, type IconName, Logo } from "./kit/icons.tsx";
import { onKey, startKeys } from "./kit/shortcuts.ts";
import { about, connect, connection, heardAt, live, may, me, overview } from "./data/live-stream.ts";
import { Dialogs, showDialog } from "./kit/dialogs.tsx";
import { named } from "./jobs/open-job.ts";
import { now, skew } from "./data/page-clock.ts";
import { Toasts } from "./kit/toasts.tsx";
import { go, href, path, startRouter } from "./data/router.ts";
import { tellCutTexts } from "./app/truncation-titles.ts";
import { startRowKeys } from "./app/row-shortcuts.ts";
import {
  Audit,
  Batches,
  Database,
  ErrorScreen,
  Help,
  Jobs,
  Limits,
  Matches,
  Palette,
  QueueScreen,
  Runs,
  Schedules,
  ScheduleScreen,
  Workers,
} from "./app/lazy-screens.tsx";
import { Errors } from "./screens/failures-screen.tsx";
import { Job } from "./screens/job-screen.tsx";
import { OperationsScreen } from "./screens/operations-screen.tsx";
import { Overview } from "./screens/overview-screen.tsx";
import { Queues } from "./screens/queues-screen.tsx";
import { brandName, nextTheme, page, theme } from "./data/page-settings.ts";
import { t } from "./language/translation.ts";

interface Place {
  readonly path: string;
  readonly name: string;
  readonly icon: IconName;
  readonly key: string;
  readonly tail?: () => { text: string; of?: string; bad?: boolean } | null;
  readonly shown?: () => boolean;
}

const groups: readonly { name: string; places: readonly Place[] }[] = [
  {
    name: t("Work"),
    places: [
      { path: "/", name: t("Overview"), icon: "overview", key: "o" },
      {
        path: "/jobs",
        name: t("Jobs"),
        icon: "jobs",
        key: "j",
        tail: () => tail(overview.value?.totals.running, (n) => t("{n} running", { n })),
      },
      { path: "/workflows", name: t("Workflows"), icon: "step", key: "w" },
      { path: "/batches", name: t("Batches"), icon: "layers", key: "b" },
      { path: "/scheduled", name: t("Scheduled"), icon: "clock", key: "u", tail: () => capped("scheduled") },
      { path: "/retries", name: t("Retries"), icon: "retry", key: "r", tail: () => capped("retrying") },
      { path: "/errors", name: t("Failures"), icon: "dead", key: "f", tail: () => capped("dead", true) },
    ],
  },
  {
    name: t("Machine"),
    places: [
      {
        path: "/queues",
        name: t("Queues"),
        icon: "queues",
        key: "q",
        tail: () => tail(overview.value?.queueCount),
      },
      { path: "/schedules", name: t("Schedules"), icon: "calendar", key: "s" },
      {
        path: "/workers",
        name: t("Workers"),
        icon: "workers",
        key: "k",
        tail: () => tail(overview.value?.workers),
      },
      {
        path: "/limits",
        name: t("Limits"),
        icon: "limits",
        key: "l",
        tail: () => tail(overview.value?.holds || undefined),
      },
      { path: "/database", name: t("Database"), icon: "database", key: "d" },
      { path: "/operations", name: t("Operations"), icon: "columns", key: "p" },
      { path: "/audit", name: t("Audit"), icon: "audit", key: "a", shown: () => may("audit:view") },
    ],
  },
];
const places = groups.flatMap((group) => group.places);

/** `of`: the number with what is counted, where that is not what the place is called by. */
function tail(n: number | undefined, of?: (n: string) => string): { text: string; of?: string } | null {
  if (n === undefined) return null;
  return of === undefined ? { text: number(n) } : { text: number(n), of: of(number(n)) };
}

function capped(of: "scheduled" | "retrying" | "dead", bad = false): { text: string; bad?: boolean } | null {
  const total = overview.value?.totals[of];
  if (total === undefined || (total.count === 0 && !total.more)) return null;
  return { text: count(total), bad };
}

const wholeId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

function Screen() {
  const below = path.value.slice(1);
  if (!isScreen(below)) return <Nothing />;
  const [first = "", second] = segmentsOf(below) ?? [];
  switch (first) {
    case "":
      return <Overview />;
    case "jobs":
      if (second === undefined || second === "") return <Jobs kind="jobs" />;
      return wholeId.test(second) ? <Job key={second} id={second} /> : <Matches key={second} part={second} />;
    case "workflows":
      return <Runs />;
    case "batches":
      return <Batches />;
    case "scheduled":
      return <Jobs key="scheduled" kind="scheduled" />;
    case "retries":
      return <Jobs key="retries" kind="retries" />;
    case "errors":
      return second === undefined || second === "" ? <Errors /> : <ErrorScreen key={second} group={second} />;
    case "queues":
      return second === undefined || second === "" ? <Queues /> : <QueueScreen key={second} name={second} />;
    case "schedules":
      return second === undefined || second === "" ? (
        <Schedules />
      ) : (
        <ScheduleScreen key={second} name={second} />
      );
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
      return <Nothing />;
  }
}

/** For an address that no screen has. */
function Nothing() {
  return (
    <section class="panel">
      <div class="empty">
        <h1>{t("There is no such page")}</h1>
        <p>{t("The address may be cut or mistyped.")}</p>
        <a class="button" href={href("/")}>
          {t("To the overview")}
        </a>
      </div>
    </section>
  );
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
      }),
    [],
  );
  useSignalEffect(() => {
    document.title = [deeperName(), placeOf(path.value)?.name, page.database, page.label, brandName]
      .filter((part) => part !== undefined && part !== null)
      .join(" · ");
  });
  if (locked.value) return <Gate />;
  return (
    <>
      <a class="skip" href="#main">
        {t("To the content")}
      </a>
      <div class="shell">
        <aside class={`side ${menu.value ? "open" : ""}`}>
          <a class="brand" href={href("/")}>
            <Logo /> <span class="clip">{brandName}</span>
          </a>
          <DatabaseSwitch />
          <nav class="nav" aria-label={t("Screens")}>
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
                              <span class={`tail ${end.bad === true ? "bad" : ""}`} title={end.of}>
                                <span aria-hidden={end.of !== undefined}>{end.text}</span>
                                {end.of !== undefined && <span class="hidden-text">{end.of}</span>}
                              </span>
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
              {me.value?.user === "token" ? t("Signed in by token") : (me.value?.user ?? "")}{" "}
              {me.value?.readOnly === true && <span class="tag">{t("read-only")}</span>}
            </span>
            <span>
              {about.value?.dialect === "postgres"
                ? t("v{version} on Postgres", { version: about.value?.version ?? "…" })
                : t("v{version} on SQLite", { version: about.value?.version ?? "…" })}
            </span>
          </div>
        </aside>
        <div class="main">
          <header class="top">
            <button
              type="button"
              class="button quiet icon menu-button"
              aria-label={t("Menu")}
              aria-expanded={menu.value}
              onClick={() => (menu.value = !menu.value)}
            >
              <Icon name="menu" />
            </button>
            <Environment />
            <Crumbs />
            <span class="spring" />
            <button type="button" class="finder" onClick={palette}>
              <Icon name="search" size={14} />
              <span>{t("Go to…")}</span>
              <span class="hidden-text">{t("Go to a screen, a queue or a job")}</span>
              <kbd aria-hidden="true">{navigator.platform.startsWith("Mac") ? "⌘K" : "Ctrl K"}</kbd>
            </button>
            <LiveButton />
            <button
              type="button"
              class="button quiet icon roomy-only"
              aria-label={t("Theme: {theme}. Change", { theme: theme.value })}
              title={t("Theme: {theme}", { theme: theme.value })}
              onClick={nextTheme}
            >
              <Icon name={themeIcons[theme.value]} />
            </button>
            <button
              type="button"
              class="button quiet icon"
              aria-label={t("Keyboard and settings")}
              onClick={help}
            >
              <Icon name="keyboard" />
            </button>
          </header>
          <main id="main" tabIndex={-1} onClick={() => (menu.value = false)}>
            <Banners />
            <Screen />
          </main>
        </div>
      </div>
      <Dialogs />
      <Toasts />
    </>
  );
}

/** Which environment this is. Its colours are set by CSSOM: the policy allows no style in the page's text. */
function Environment() {
  if (page.label === null) return null;
  const { paper, ink } = page.badge ?? {};
  return (
    <span class="env" title={page.label} style={{ background: paper, color: ink }}>
      <span class="hidden-text">{t("Environment:")} </span>
      {page.label}
    </span>
  );
}

/** Off by so much, somebody's clock is wrong. */
const skewedMs = 30_000;

/** What must be seen on every screen. The overview says the first in its own words. */
function Banners() {
  const { verdict } = overview.value ?? {};
  const off = Math.abs(skew.value);
  return (
    <>
      {verdict?.level === "bad" && path.value !== "/" && (
        <a class="banner bad" href={href("/")}>
          {verdict.text}
        </a>
      )}
      {off > skewedMs && (
        <div class="banner" role="status">
          {skew.value > 0
            ? t(
                "This machine's clock is {off} behind the database's. Ages are told by the database's, dates by this one's zone.",
                { off: duration(off) },
              )
            : t(
                "This machine's clock is {off} ahead of the database's. Ages are told by the database's, dates by this one's zone.",
                { off: duration(off) },
              )}
        </div>
      )}
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
        aria-label={t("Database")}
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

/** What the address names below its screen: a queue by its name, a job by that of its definition once it is read. */
function deeperName(): string | null {
  const deeper = segmentsOf(path.value)?.[2];
  if (deeper === undefined || deeper === "") return null;
  if (named.value?.id === deeper) return named.value.name;
  return path.value.startsWith("/jobs/") ? deeper.slice(-12) : deeper;
}

function Crumbs() {
  const place = placeOf(path.value);
  const deeper = deeperName();
  return (
    <div class="crumbs">
      {deeper === null ? (
        <span class="hidden-text">{place?.name}</span>
      ) : (
        <>
          <a class="muted" href={href(place?.path ?? "/")}>
            {place?.name}
          </a>
          <span class="sep" aria-hidden="true">
            /
          </span>
          <span class="clip">{deeper}</span>
        </>
      )}
    </div>
  );
}

const themeIcons = { system: "auto", light: "sun", dark: "moon", contrast: "contrast" } as const;

const liveWords = {
  live: t("Live"),
  paused: t("Paused"),
  connecting: t("Connecting"),
  trouble: t("Reconnecting"),
} as const;

/** The server sends a byte at least every 5 s: without one for so long the page is stale. */
const staleMs = 10_000;

function LiveButton() {
  const silent = now.value - skew.value - heardAt.value;
  const stale = connection.value !== "paused" && silent > staleMs;
  const how = stale ? "trouble" : connection.value;
  const words = stale ? t("Last update {ago} ago", { ago: duration(silent) }) : liveWords[how];
  return (
    <button
      type="button"
      class="button quiet"
      aria-pressed={live.value}
      title={live.value ? t("Live: press to pause") : t("Paused: press to go on")}
      onClick={() => (live.value = !live.value)}
    >
      <span class={`live-dot ${how}`} aria-hidden="true" />
      <span class="medium-only">{words}</span>
      {stale && (
        <span class="narrow-only" aria-hidden="true">
          {duration(silent)}
        </span>
      )}
      <span class="hidden-text">{words}</span>
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
          if (value !== "") void unlock(/token=([\w-]+)/.exec(value)?.[1] ?? value);
        }}
      >
        <span class="brand">
          <Logo /> <span class="clip">{brandName}</span>
        </span>
        <h1 class="hidden-text">{t("Sign in")}</h1>
        <p class="muted">{t("Open the address that the server printed, or put its token in here.")}</p>
        <label class="field">
          <span>{t("Token")}</span>
          <input ref={input} class="input mono" type="password" autocomplete="off" autofocus />
        </label>
        {denied.value !== null && (
          <div class="banner bad" role="alert">
            {denied.value}
          </div>
        )}
        <button type="submit" class="button primary">
          {t("Open##verb")}
        </button>
      </form>
    </main>
  );
}

// Palette

function palette(): void {
  const shown = places.filter((place) => place.shown?.() !== false);
  showDialog(t("Go to"), (close) => <Palette close={close} places={shown} help={help} />, "palette");
}

function help(): void {
  showDialog(t("Keyboard and settings"), (close) => <Help close={close} places={places} />);
}

startBidi();
startRouter();
startKeys(palette);
startRowKeys(palette);
tellCutTexts();
connect();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
