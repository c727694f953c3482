// Bidirectional control characters: they would make a name or an input read as something else. Pure.

const turning = /[\u200e\u200f\u202a-\u202e\u2066-\u2069]/;
const allTurning = new RegExp(turning, "g");

/** The text with escapes. In JSON it stays the same value. */
export function visible(text: string): string {
  if (!turning.test(text)) return text;
  return text.replace(allTurning, (one) => `\\u${one.charCodeAt(0).toString(16)}`);
}
