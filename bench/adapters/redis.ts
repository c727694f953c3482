/** The two things that the benchmark itself asks of a Redis server. */

/** Resolves when the server answers. */
export async function ping(url: string): Promise<void> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url, { maxRetriesPerRequest: null });
  redis.on("error", () => {});
  await redis.ping();
  redis.disconnect();
}

/** Empties it. */
export async function flush(url: string): Promise<void> {
  const { Redis } = await import("ioredis");
  const redis = new Redis(url);
  await redis.flushall();
  redis.disconnect();
}
