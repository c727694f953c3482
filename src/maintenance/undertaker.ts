/**
 * Forgets sessions of workers that died and hold nothing any more, so that the list of workers shows living ones.
 *
 * Not here: what they held (reaper.ts takes that over first).
 */
import type { Store } from "../store.ts";

export interface UndertakerDeps {
  readonly store: Pick<Store, "burySessions">;
}

/**
 * Buries once.
 *
 * @example
 * const gone = await buryOnce({ store });
 */
export async function buryOnce(deps: UndertakerDeps): Promise<number> {
  return deps.store.burySessions();
}
