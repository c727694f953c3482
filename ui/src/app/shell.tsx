// The frame of every screen: menu, top bar, banners, dialogs, toasts.
import { useSignal, useSignalEffect } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { locked } from "../data/api.ts";
import { about, live, me, overview } from "../data/live-stream.ts";
import { skew } from "../data/page-clock.ts";
import { nextTheme, page, theme } from "../data/page-settings.ts";
import { go, href, path } from "../data/router.ts";
import { Dialogs, showDialog } from "../kit/dialogs.tsx";
import { duration } from "../kit/format.ts";
import { Icon, Logo } from "../kit/icons.tsx";
import { onKey } from "../kit/shortcuts.ts";
import { Toasts } from "../kit/toasts.tsx";
import { CurrentScreen } from "./current-screen.tsx";
import { HelpDialog, Palette } from "./lazy-screens.tsx";
import { groups, menuEntryOf, entries } from "./navigation.ts";
import { SignIn } from "./sign-in.tsx";
import { Crumbs, deeperName, Environment, LiveButton, themeIcons } from "./top-bar.tsx";

export function App() {
  const menu = useSignal(false);
  useEffect(() => {
    const offs = entries.map((entry) =>
      onKey(`g ${entry.key}`, () => {
        if (entry.shown?.() !== false) go(entry.path);
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
    document.title = [deeperName(), menuEntryOf(path.value)?.name, page.database, page.label, "Holdfast"]
      .filter((part) => part !== undefined && part !== null)
      .join(" · ");
  });
  if (locked.value) return <SignIn />;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <div class="shell">
        <aside class={`side ${menu.value ? "open" : ""}`}>
          <a class="brand" href={href("/")}>
            <Logo /> Holdfast
          </a>
          <DatabaseSwitch />
          <nav class="nav" aria-label="Screens">
            {groups.map((group) => (
              <div key={group.name}>
                <h2>{group.name}</h2>
                <ul>
                  {group.entries
                    .filter((entry) => entry.shown?.() !== false)
                    .map((entry) => {
                      const end = entry.tail?.() ?? null;
                      return (
                        <li key={entry.path}>
                          <a
                            href={href(entry.path)}
                            aria-current={menuEntryOf(path.value) === entry ? "page" : undefined}
                          >
                            <Icon name={entry.icon} />
                            {entry.name}
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
              {me.value?.user === "token" ? "Signed in by token" : (me.value?.user ?? "")}{" "}
              {me.value?.readOnly === true && <span class="tag">read-only</span>}
            </span>
            <span>
              {about.value?.dialect === "postgres"
                ? `v${about.value?.version ?? "…"} on Postgres`
                : `v${about.value?.version ?? "…"} on SQLite`}
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
            <Environment />
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
              class="button quiet icon roomy-only"
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
            <Banners />
            <CurrentScreen />
          </main>
        </div>
      </div>
      <Dialogs />
      <Toasts />
    </>
  );
}

/** A larger difference means that a clock is wrong. */
const skewedMs = 30_000;

/** Banners of every screen. The overview shows the verdict itself. */
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
            ? `This machine's clock is ${duration(off)} behind the database's. Ages use the database's clock.`
            : `This machine's clock is ${duration(off)} ahead of the database's. Ages use the database's clock.`}
        </div>
      )}
    </>
  );
}

/** Opens the same screen of another database. */
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
          // A job or queue of this database does not exist in another.
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

export function palette(): void {
  const shown = entries.filter((entry) => entry.shown?.() !== false);
  showDialog("Go to", (close) => <Palette close={close} entries={shown} help={help} />, "palette");
}

function help(): void {
  showDialog("Keyboard and settings", (close) => <HelpDialog close={close} entries={entries} />);
}
