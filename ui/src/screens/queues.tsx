import { useRef } from "preact/hooks";
import type { QueueDetail, QueueLine } from "../../../src/dashboard/contract.ts";
import { ApiFailure, get, seg, send } from "../api.ts";
import { startBulk, mayDo } from "../bulk.tsx";
import { duration, instant, number, plural } from "../format.ts";
import { Icon } from "../icons.tsx";
import { may } from "../live.ts";
import { attempt, Count, Empty, Gauge, Head, Loaded, showDialog, State, toast } from "../parts.tsx";
import { href } from "../router.ts";
import { useQuery } from "../use-query.ts";

function toggle(queue: Pick<QueueLine, "name" | "pausedAt">, again: () => void): void {
  const verb = queue.pausedAt === null ? "pause" : "resume";
  void attempt(`${queue.name} is ${verb}d.`, () => send("POST", `/queues/${seg(queue.name)}/${verb}`)).then(
    again,
  );
}

function PauseButton({
  queue,
  again,
  small = false,
}: {
  queue: Pick<QueueLine, "name" | "pausedAt">;
  again: () => void;
  small?: boolean;
}) {
  if (!may("queues:pause")) return null;
  const paused = queue.pausedAt !== null;
  return (
    <button
      type="button"
      class={`button ${small ? "small" : ""}`}
      aria-label={`${paused ? "Resume" : "Pause"} ${queue.name}`}
      onClick={() => toggle(queue, again)}
    >
      <Icon name={paused ? "play" : "pause"} size={13} /> {paused ? "Resume" : "Pause"}
    </button>
  );
}

export function Queues() {
  const query = useQuery("queues", (signal) => get<{ queues: QueueLine[] }>("/queues", {}, signal), {
    live: true,
  });
  return (
    <>
      <Head title="Queues" note="Every queue that has jobs or settings." />
      <Loaded query={query}>
        {({ queues }) => (
          <section class="panel" aria-label="Queues">
            {queues.length === 0 ? (
              <Empty icon="queues" title="No queue yet">
                <p>A queue needs no creation: it is here as soon as a job or a setting names it.</p>
              </Empty>
            ) : (
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Queue</th>
                      <th scope="col">State</th>
                      <th scope="col" class="num">
                        Ready
                      </th>
                      <th scope="col" class="num medium-only">
                        Oldest
                      </th>
                      <th scope="col" class="num">
                        Running
                      </th>
                      <th scope="col" class="num medium-only">
                        Scheduled
                      </th>
                      <th scope="col" class="num wide-only">
                        Waiting
                      </th>
                      <th scope="col" class="num wide-only">
                        Workers
                      </th>
                      <th scope="col">
                        <span class="hidden-text">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {queues.map((queue) => (
                      <tr key={queue.name}>
                        <td>
                          <a class="main-link" href={href(`/queues/${queue.name}`)}>
                            {queue.name}
                          </a>
                        </td>
                        <td>
                          <QueueState queue={queue} />
                        </td>
                        <td class="num">
                          <Count of={queue.ready} />
                        </td>
                        <td class="num muted nowrap medium-only">{duration(queue.oldestMs)}</td>
                        <td class="num nowrap">
                          {number(queue.running)}{" "}
                          <Gauge used={queue.running} of={queue.slots} label="Slots" />
                        </td>
                        <td class="num medium-only">
                          <Count of={queue.scheduled} />
                        </td>
                        <td class="num wide-only">
                          <Count of={queue.waiting} />
                        </td>
                        <td class="num wide-only">
                          <Count of={queue.workers} />
                        </td>
                        <td class="right">
                          <PauseButton queue={queue} again={query.again} small />
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
          </section>
        )}
      </Loaded>
    </>
  );
}

function QueueState({ queue }: { queue: QueueLine }) {
  if (queue.pausedAt !== null) return <State state="paused" />;
  if (queue.holds.length > 0) return <span class="tag warn">held by {queue.holds.join(", ")}</span>;
  if (queue.coolUntil !== null) return <span class="tag warn">cooling down</span>;
  if (queue.unserved.length > 0)
    return <span class="tag bad">no worker for {queue.unserved.slice(0, 2).join(", ")}</span>;
  return <span class="muted">{queue.workers === 0 ? "no worker" : "open"}</span>;
}

export function QueueScreen({ name }: { name: string }) {
  const query = useQuery(`queue ${name}`, (signal) => get<QueueDetail>(`/queues/${seg(name)}`, {}, signal), {
    live: true,
  });
  if (query.data === null && query.error instanceof ApiFailure && query.error.status === 404)
    return (
      <section class="panel">
        <Empty icon="queues" title="No such queue">
          <p>No job and no setting names it.</p>
          <a class="button" href={href("/queues")}>
            All queues
          </a>
        </Empty>
      </section>
    );
  return (
    <Loaded query={query}>
      {(queue) => (
        <>
          <Head title={queue.name}>
            <a class="button" href={href(`/jobs?queue=${queue.name}`)}>
              <Icon name="jobs" size={14} /> Jobs
            </a>
            {mayDo("retry") && (
              <button
                type="button"
                class="button"
                onClick={() => startBulk("retry", { state: ["dead"], queue: [queue.name] }, query.again)}
              >
                <Icon name="retry" size={14} /> Retry dead
              </button>
            )}
            {may("queues:set") && (
              <button type="button" class="button" onClick={() => settingsDialog(queue, query.again)}>
                <Icon name="gear" size={14} /> Settings
              </button>
            )}
            <PauseButton queue={queue} again={query.again} />
          </Head>
          {queue.obstacles.length > 0 && (
            <div class={`banner ${queue.ready.count > 0 ? "" : "info"}`} role="status">
              <Icon name="dead" />
              <span>{queue.obstacles.join(" ")}</span>
            </div>
          )}
          <div class="tiles">
            <Tile
              name="Ready"
              value={<Count of={queue.ready} quiet={false} />}
              note={`oldest ${duration(queue.oldestMs)}`}
            />
            <Tile name="Running" value={number(queue.running)} note={`of ${plural(queue.slots, "slot")}`} />
            <Tile name="Scheduled" value={<Count of={queue.scheduled} quiet={false} />} note="due later" />
            <Tile
              name="Waiting"
              value={<Count of={queue.waiting} quiet={false} />}
              note="for jobs or signals"
            />
            <Tile name="Workers" value={number(queue.workers)} note="serve it" />
            <Tile
              name="State"
              value={queue.pausedAt === null ? "Open" : "Paused"}
              note={queue.pausedAt === null ? "may be claimed from" : `since ${instant(queue.pausedAt)}`}
            />
          </div>
          <div class="grid aside">
            <section class="panel" aria-label="Kinds">
              <header>
                <h2>Kinds</h2>
              </header>
              {queue.kinds.length === 0 ? (
                <Empty icon="jobs" title="No job has come here yet" />
              ) : (
                <div class="scroll">
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Name</th>
                        <th scope="col" class="num">
                          Ready
                        </th>
                        <th scope="col" class="num">
                          Running
                        </th>
                        <th scope="col" class="num">
                          Scheduled
                        </th>
                        <th scope="col" class="num">
                          Oldest
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {queue.kinds.map((kind) => (
                        <tr key={kind.name}>
                          <td>
                            <a class="main-link" href={href(`/jobs?queue=${queue.name}&name=${kind.name}`)}>
                              {kind.name}
                            </a>{" "}
                            {!kind.served && (
                              <span class={`tag ${kind.ready.count > 0 ? "bad" : ""}`}>no worker</span>
                            )}
                          </td>
                          <td class="num">
                            <Count of={kind.ready} />
                          </td>
                          <td class="num">
                            <Count of={kind.running} />
                          </td>
                          <td class="num">
                            <Count of={kind.scheduled} />
                          </td>
                          <td class="num muted nowrap">{duration(kind.oldestMs)}</td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              )}
            </section>
            <div class="stack">
              <section class="panel" aria-label="Settings">
                <header>
                  <h2>Settings</h2>
                  <span class="muted small">over the whole cluster</span>
                </header>
                <dl class="facts">
                  <dt>Slots of each worker</dt>
                  <dd>{queue.settings.slots ?? "as started"}</dd>
                  <dt>Concurrency</dt>
                  <dd>{queue.settings.concurrency ?? "unlimited"}</dd>
                  <dt>Rate</dt>
                  <dd>
                    {queue.settings.rate === null
                      ? "unlimited"
                      : `${queue.settings.rate.limit} per ${duration(queue.settings.rate.perMs)}`}
                  </dd>
                  <dt>Done kept</dt>
                  <dd>{kept(queue.settings.retention?.doneMs)}</dd>
                  <dt>Dead kept</dt>
                  <dd>{kept(queue.settings.retention?.deadMs)}</dd>
                  <dt>Cool-down</dt>
                  <dd>
                    {queue.settings.cooldown === null
                      ? "off"
                      : `${duration(queue.settings.cooldown.baseMs)} to ${duration(queue.settings.cooldown.maxMs)}`}
                  </dd>
                </dl>
              </section>
              <section class="panel" aria-label="Workers of this queue">
                <header>
                  <h2>Workers</h2>
                </header>
                {queue.workersHere.length === 0 ? (
                  <Empty icon="workers" title="No live worker serves it" />
                ) : (
                  <dl class="facts">
                    {queue.workersHere.map((worker) => (
                      <>
                        <dt key={`${worker.id} name`} class="clip">
                          {worker.name}
                        </dt>
                        <dd key={worker.id}>{plural(worker.slots, "slot")}</dd>
                      </>
                    ))}
                  </dl>
                )}
              </section>
            </div>
          </div>
        </>
      )}
    </Loaded>
  );
}

function kept(ms: number | undefined): string {
  if (ms === undefined) return "default";
  return ms === 0 ? "for ever" : duration(ms);
}

function Tile({ name, value, note }: { name: string; value: preact.ComponentChildren; note: string }) {
  return (
    <div class="tile">
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      <span class="note">{note}</span>
    </div>
  );
}

function settingsDialog(queue: QueueDetail, again: () => void): void {
  showDialog(`Settings of ${queue.name}`, (close) => <Settings queue={queue} close={close} again={again} />);
}

function Settings({ queue, close, again }: { queue: QueueDetail; close: () => void; again: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  const { settings } = queue;
  const submit = async (): Promise<void> => {
    const data = new FormData(form.current ?? undefined);
    const text = (name: string): string => String(data.get(name) ?? "").trim();
    const whole = (name: string): number | null => (text(name) === "" ? null : Number(text(name)));
    const rate = /^(\d+)\s*(?:per|\/)\s*(\w+)$/.exec(text("rate"));
    const done = text("done");
    const dead = text("dead");
    try {
      await send("PATCH", `/queues/${seg(queue.name)}`, {
        slots: whole("slots"),
        concurrency: whole("concurrency"),
        rate:
          text("rate") === ""
            ? null
            : rate === null
              ? { limit: -1, per: "1s" }
              : { limit: Number(rate[1]), per: rate[2] },
        retention:
          done === "" && dead === ""
            ? null
            : { ...(done === "" ? {} : { done }), ...(dead === "" ? {} : { dead }) },
      });
      toast("The settings hold in every process.");
      close();
      again();
    } catch (error) {
      toast((error as Error).message, "bad");
    }
  };
  const ms = (value: number | undefined): string =>
    value === undefined ? "" : value === 0 ? "0" : `${value / 1_000}s`;
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        void submit();
      }}
    >
      <header>
        <h2>Settings of {queue.name}</h2>
      </header>
      <div class="content">
        <p class="muted">Empty is the default. They take effect in every process within seconds.</p>
        <div class="grid two">
          <label class="field">
            <span>Slots of each worker</span>
            <input
              class="input"
              name="slots"
              inputMode="numeric"
              defaultValue={settings.slots ?? ""}
              placeholder="as started"
            />
          </label>
          <label class="field">
            <span>Concurrency over the cluster</span>
            <input
              class="input"
              name="concurrency"
              inputMode="numeric"
              defaultValue={settings.concurrency ?? ""}
              placeholder="unlimited"
            />
          </label>
          <label class="field">
            <span>Rate</span>
            <input
              class="input"
              name="rate"
              defaultValue={
                settings.rate === null ? "" : `${settings.rate.limit} per ${settings.rate.perMs / 1_000}s`
              }
              placeholder="100 per 1m"
            />
          </label>
          <span />
          <label class="field">
            <span>Keep done jobs</span>
            <input class="input" name="done" defaultValue={ms(settings.retention?.doneMs)} placeholder="7d" />
          </label>
          <label class="field">
            <span>Keep dead jobs</span>
            <input
              class="input"
              name="dead"
              defaultValue={ms(settings.retention?.deadMs)}
              placeholder="30d"
            />
          </label>
        </div>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Not now
        </button>
        <button type="submit" class="button primary">
          Save
        </button>
      </footer>
    </form>
  );
}
