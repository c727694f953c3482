/**
 * `holdfast/testing`: what tests of programs that use Holdfast need.
 */
import "../supported-node.ts"; // first

/** A clock that moves only when a test says so. */
export { FakeClock } from "./fake-clock.ts";
