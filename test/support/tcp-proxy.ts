// A TCP proxy in front of Postgres that can fail as networks do.
//
//   blackhole()        the connections of this moment swallow all bytes, both ways, without an error;
//                      later connections pass (a NAT or firewall that forgot a workflow)
//   loseAnswers()      likewise, but only on the way back: the server receives everything and goes on
//   reset()            RST on every connection
//   pause(), resume()  nothing moves, nothing is lost; new connections wait too
//   refuse(), accept() new connections are reset at once; existing ones stay
//   lead(target)       every connection is reset; new ones lead to another server: a failover
//   delay(ms)          every byte comes that much later: a server that is far away
import { createServer, connect, type Server, type Socket } from "node:net";

interface Pair {
  client: Socket;
  upstream: Socket;
  /** Which bytes vanish. */
  silent: "none" | "answers" | "all";
}

export class TcpProxy implements AsyncDisposable {
  readonly port: number;
  #server: Server;
  #pairs = new Set<Pair>();
  #paused = false;
  #refusing = false;
  #delayMs = 0;
  #target: { host: string; port: number };

  private constructor(server: Server, port: number, target: { host: string; port: number }) {
    this.#server = server;
    this.port = port;
    this.#target = target;
  }

  /** In front of the server that `target`, a Postgres URL, names. */
  static async to(target: string): Promise<TcpProxy> {
    const { hostname, port } = new URL(target);
    const server = createServer({ allowHalfOpen: true, pauseOnConnect: true });
    await new Promise<void>((resolve, reject) =>
      server.once("error", reject).listen(0, "127.0.0.1", resolve),
    );
    const address = server.address();
    if (address === null || typeof address === "string") throw new Error("The proxy has no port");
    const proxy = new TcpProxy(server, address.port, { host: hostname, port: Number(port || 5432) });
    server.on("connection", (client) => proxy.#connect(client));
    server.unref();
    return proxy;
  }

  /** The URL `target` by way of this proxy. */
  url(target: string): string {
    const url = new URL(target);
    url.hostname = "127.0.0.1";
    url.port = String(this.port);
    return url.href;
  }

  get connections(): number {
    return this.#pairs.size;
  }

  blackhole(): void {
    for (const pair of this.#pairs) pair.silent = "all";
  }

  loseAnswers(): void {
    for (const pair of this.#pairs) pair.silent = "answers";
  }

  reset(): void {
    for (const { client, upstream } of this.#pairs) {
      client.resetAndDestroy();
      upstream.resetAndDestroy();
    }
  }

  pause(): void {
    this.#paused = true;
    for (const { client, upstream } of this.#pairs) {
      client.pause();
      upstream.pause();
    }
  }

  resume(): void {
    this.#paused = false;
    for (const { client, upstream } of this.#pairs) {
      client.resume();
      upstream.resume();
    }
  }

  refuse(): void {
    this.#refusing = true;
  }

  accept(): void {
    this.#refusing = false;
  }

  delay(ms: number): void {
    this.#delayMs = ms;
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const { client, upstream } of this.#pairs) {
      client.destroy();
      upstream.destroy();
    }
    await closed;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  /** Every connection is reset; new ones lead to the server that `target` names, as after a failover. */
  lead(target: string): void {
    const { hostname, port } = new URL(target);
    this.#target = { host: hostname, port: Number(port || 5432) };
    this.reset();
  }

  #connect(client: Socket): void {
    if (this.#refusing) {
      client.resetAndDestroy();
      return;
    }
    const upstream = connect({ ...this.#target, allowHalfOpen: true });
    const pair: Pair = { client, upstream, silent: "none" };
    this.#pairs.add(pair);
    this.#pass(pair, client, upstream);
    this.#pass(pair, upstream, client);
    if (this.#paused) upstream.pause();
    else client.resume();
  }

  #pass(pair: Pair, from: Socket, to: Socket): void {
    from.setNoDelay(true);
    const lost = (): boolean => pair.silent === "all" || (pair.silent === "answers" && to === pair.client);
    const send = (chunk: Buffer): void => {
      if (lost() || to.destroyed) return;
      if (!to.write(chunk)) {
        from.pause();
        to.once("drain", () => {
          if (!this.#paused) from.resume();
        });
      }
    };
    from.on("data", (chunk) => {
      if (this.#delayMs === 0) send(chunk);
      else setTimeout(send, this.#delayMs, chunk); // timers of one length fire in order
    });
    from.on("end", () => {
      if (!lost()) to.end();
    });
    from.on("error", () => {});
    from.on("close", (hadError) => {
      // In a black hole the other side learns nothing, not even that this one has gone.
      if (!lost() && !to.destroyed) {
        if (hadError) to.resetAndDestroy();
        else to.end();
      }
      if (pair.client.destroyed && pair.upstream.destroyed) this.#pairs.delete(pair);
    });
  }
}
