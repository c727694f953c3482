/**
 * Job ids: UUIDs of version 7, made by the client, so that an insert whose answer was lost can be sent again.
 *
 *   tttttttt-tttt-7ccc-Vccc-crrrrrrrrrrr    t 48 bits of milliseconds, 7 the version, V the variant (2 bits),
 *                                           c a counter of 32 bits from c to V to c, r 42 random bits
 *
 * Invariants: ids of one factory strictly increase as text and as bytes, also within one millisecond and when the
 * clock goes back (first in, first out in one process: promise A14; the built-in generators do not promise it).
 * The counter starts at a random 31-bit value in each millisecond, so it cannot run over in practice, and if it
 * does the millisecond is advanced. Between processes, 73 random bits per millisecond keep ids apart.
 * Not here: the order between processes, which nobody promises.
 */

const hex: readonly string[] = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
const latestMs = 2 ** 48 - 1;
const poolBytes = 8_192; // ten random bytes cost 2 µs when asked for by themselves, and 4 ns out of a pool
const idPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * A function that makes a new id at each call.
 *
 * @example
 * const newId = idFactory(clock.now);
 * newId() < newId(); // true
 */
export function idFactory(
  now: () => number,
  random: (bytes: Uint8Array<ArrayBuffer>) => void = (bytes) => void crypto.getRandomValues(bytes),
): () => string {
  const pool = new Uint8Array(poolBytes);
  let used = poolBytes;
  let lastMs = -1;
  let counter = 0;
  let prefix = "";

  const byte = (): number => pool[used++] ?? 0;
  const start = (ms: number): void => {
    lastMs = ms;
    counter = ((byte() << 24) | (byte() << 16) | (byte() << 8) | byte()) & 0x7fff_ffff;
    prefix = timeText(lastMs);
  };

  return () => {
    if (used > poolBytes - 10) {
      random(pool);
      used = 0;
    }
    const ms = Math.min(Math.floor(now()), latestMs);
    if (ms > lastMs) start(ms);
    // Also for a first call under a clock before 1970, or one that gives no number.
    else if (lastMs < 0 || counter === 0xffff_ffff) start(lastMs + 1);
    else counter += 1;
    return (
      `${prefix}-${text(0x70 | (counter >>> 28))}${text(counter >>> 20)}` +
      `-${text(0x80 | ((counter >>> 14) & 0x3f))}${text(counter >>> 6)}` +
      `-${text((counter << 2) | (byte() & 3))}${text(byte())}${text(byte())}${text(byte())}${text(byte())}${text(byte())}`
    );
  };
}

/**
 * A new id for a worker's session: a random integer of 31 bits. Random, because a sequence goes back after a failover to a
 * replica that lagged, and a session that was lost with the old primary must not pass for one of the new. No longer, because
 * SQLite writes it with each claimed and each ended job: 53 bits made the WAL of a drain 3 % larger. Who opens a session
 * takes another id where this one is taken.
 *
 * @example
 * const session = newSessionId();
 */
export function newSessionId(): number {
  const [bits = 0] = crypto.getRandomValues(new Uint32Array(1));
  return bits >>> 1;
}

/** Behind every id. */
export const HIGHEST_ID = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/**
 * The smallest id of a millisecond: jobs made at or after an instant are those with `id >= idAt(instant)`.
 *
 * @example
 * idAt(0); // "00000000-0000-7000-8000-000000000000"
 */
export function idAt(ms: number): string {
  // Not a number becomes 0.
  const within = Math.min(ms > 0 ? Math.floor(ms) : 0, latestMs);
  return `${timeText(within)}-7000-8000-000000000000`;
}

/**
 * The millisecond in which an id was made (of a UUID of version 7; others give a number without meaning).
 *
 * @example
 * new Date(idTime(job.id));
 */
export function idTime(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/**
 * Whether text has the form of an id: a UUID in lower case. Of any version, because a row that was inserted with
 * SQL may have another than 7.
 *
 * @example
 * isId("0199c1d8-7c00-7000-8000-000000000000"); // true
 */
export function isId(value: string): boolean {
  return typeof value === "string" && idPattern.test(value);
}

/** The lowest byte as two hexadecimal digits. */
function text(byte: number): string {
  return hex[byte & 0xff] ?? "";
}

function timeText(ms: number): string {
  const digits = ms.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
}
