// Saved views: a name and an address, kept in this browser. The address shows the same list to everyone.
import { Field, openForm } from "../kit/forms.tsx";
import { Icon } from "../kit/icons.tsx";
import { href, params, path } from "../data/router.ts";
import { keptList } from "../data/page-settings.ts";

interface View {
  readonly name: string;
  /** Below the base path, such as /jobs?state=dead. */
  readonly to: string;
}

const most = 50;

export const views = keptList<View>("views", isView);

function isView(value: unknown): value is View {
  const { name, to } = (value ?? {}) as Partial<Record<keyof View, unknown>>;
  return typeof name === "string" && name !== "" && typeof to === "string" && /^\/(?![/\\])/.test(to);
}

function here(): string {
  const search = params.value.toString();
  return path.value + (search === "" ? "" : `?${search}`);
}

export function SavedViews() {
  const current = here();
  const known = views.value.some(({ to }) => to === current);
  if (views.value.length === 0 && params.value.toString() === "") return null;
  return (
    <div class="row tight views" role="group" aria-label="Saved views">
      {views.value.map(({ name, to }) => (
        <span class={`chip ${to === current ? "on" : ""}`} key={name}>
          <a href={href(to)} aria-current={to === current ? "page" : undefined}>
            <Icon name="star" size={12} /> {name}
          </a>
          <button
            type="button"
            aria-label={`Delete the view ${name}`}
            onClick={() => (views.value = views.value.filter((one) => one.name !== name))}
          >
            <Icon name="close" size={12} />
          </button>
        </span>
      ))}
      {!known && (
        <button type="button" class="button quiet small" onClick={() => save(current)}>
          <Icon name="star" size={13} /> Save view
        </button>
      )}
    </div>
  );
}

function save(to: string): void {
  openForm({
    title: "Save view",
    verb: "Save",
    body: (
      <>
        <p class="muted">
          Saved in this browser: <span class="mono">{to}</span>
        </p>
        <Field label="Name" name="name" required placeholder="Dead mail today" />
      </>
    ),
    run: async (fields) => {
      const name = fields.text("name")?.slice(0, 60) ?? "";
      views.value = [...views.value.filter((one) => one.name !== name), { name, to }].slice(-most);
      return "Saved";
    },
  });
}
