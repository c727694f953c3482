/**
 * Holdfast's version, as it is written into the registry of workers. A test holds it against package.json.
 */
export const VERSION = "0.1.0";
