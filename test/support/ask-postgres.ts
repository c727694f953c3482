// A test process's side of postgres-servers.ts.
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import type { ProvidedServer } from "./postgres-servers.ts";

const urls = new Map<string, Promise<string>>();

/** The server's address. The first test of a run that asks for it waits for its start, of about 2 s. */
export function urlOf(server: ProvidedServer): Promise<string> {
  if (!server.ours) return Promise.resolve(server.url);
  let url = urls.get(server.name);
  if (url === undefined) urls.set(server.name, (url = ask(server)));
  return url;
}

async function ask({ major, port, name }: Extract<ProvidedServer, { ours: true }>): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  socket.write(String(major));
  const { url, error } = JSON.parse(await text(socket)) as { url?: string; error?: string };
  if (url === undefined)
    throw new Error(
      `${name} did not start: ${error}\nSet DATABASE_URL to a server for tests, or HOLDFAST_TEST_POSTGRES=none to skip its tests.`,
    );
  return url;
}
