// Parts that come after the page: the first paint needs none of them, and where one does not load, everything else is there.
import { signal } from "@preact/signals";
import type { ComponentChildren, FunctionComponent } from "preact";
import { useEffect } from "preact/hooks";

/** A component that is fetched when it is first drawn; until then, and where it does not load, what stands in for it. */
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
