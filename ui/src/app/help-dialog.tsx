// The dialog of keys and settings. Loaded when it first opens.
import { InfoDialog } from "../kit/dialogs.tsx";
import { keyTable } from "./key-table.ts";
import {
  clock,
  density,
  refresh,
  refreshes,
  shortcuts,
  theme,
  themes,
  times,
} from "../data/page-settings.ts";

export function HelpDialog({
  close,
  entries,
}: {
  close: () => void;
  entries: readonly { readonly name: string; readonly key: string }[];
}) {
  const keys: readonly (readonly [string, string])[] = [
    ...entries.map(({ key, name }) => [`g ${key}`, name] as const),
    ...keyTable.map(({ keys: of, what }) => [of.join(" ").replace("Escape", "Esc"), what] as const),
  ];
  return (
    <InfoDialog title="Keyboard and settings" close={close}>
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
        Live updates{" "}
        <select
          class="input"
          aria-label="Live updates"
          value={refresh.value}
          onChange={(event) => (refresh.value = event.currentTarget.value as typeof refresh.value)}
        >
          {refreshes.map((seconds) => (
            <option key={seconds} value={seconds}>
              at most every {seconds} s
            </option>
          ))}
        </select>
      </label>
      <label class="row">
        <input
          type="checkbox"
          checked={times.value === "absolute"}
          onChange={(event) => (times.value = event.currentTarget.checked ? "absolute" : "relative")}
        />{" "}
        Show times as dates
      </label>
      <label class="row">
        <input
          type="checkbox"
          checked={shortcuts.value === "on"}
          onChange={(event) => (shortcuts.value = event.currentTarget.checked ? "on" : "off")}
        />{" "}
        Single-key shortcuts
      </label>
      <label class="row">
        <input
          type="checkbox"
          checked={clock.value === "utc"}
          onChange={(event) => (clock.value = event.currentTarget.checked ? "utc" : "local")}
        />{" "}
        Times in UTC
      </label>
    </InfoDialog>
  );
}
