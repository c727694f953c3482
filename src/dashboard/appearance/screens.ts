/**
 * Which addresses are screens of the page: the server answers any other with 404, and the page says that there is nothing.
 *
 * Pure, and read by both, so that they cannot disagree.
 */

const screens =
  /^(?:|jobs(?:\/[0-9A-Fa-f-]{1,64})?|errors(?:\/[0-9a-f]{1,64})?|queues(?:\/[A-Za-z0-9._:-]{1,128})?|workflows|batches|scheduled|retries|schedules(?:\/[A-Za-z0-9._:-]{1,128})?|workers|limits|database|operations|audit)$/;

/** The parts of an address below the base path, decoded; null: a % in it is no encoding. */
export function segmentsOf(below: string): readonly string[] | null {
  try {
    return below.split("/").map(decodeURIComponent);
  } catch {
    return null;
  }
}

/** `below`: what follows the base path and its slash, undecoded. A link encodes the colon of a queue's name. */
export function isScreen(below: string): boolean {
  const segments = segmentsOf(below);
  return segments !== null && !segments.some((one) => one.includes("/")) && screens.test(segments.join("/"));
}
