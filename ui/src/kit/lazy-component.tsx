// Parts that load after the page. The first paint does not need them.
import { signal } from "@preact/signals";
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";

/** A component that loads when it is first rendered. `fallback` is shown until then, and if it does not load. */
export function lazily<P extends object>(
  load: () => Promise<FunctionComponent<P>>,
  standIn: (props: P) => ComponentChildren,
): FunctionComponent<P> {
  const loaded = signal<{ readonly component: FunctionComponent<P> } | null>(null);
  let asked = false;
  return (props) => {
    useEffect(() => {
      if (asked) return;
      asked = true;
      load().then(
        (component) => (loaded.value = { component }),
        (error: unknown) => reportError(error),
      );
    }, []);
    const Loaded = loaded.value?.component;
    return Loaded === undefined ? <>{standIn(props)}</> : <Loaded {...props} />;
  };
}
