// What can be done to a queue, in its row and on its own page.
import type { QueueDetail, QueueLine } from "../../src/dashboard/contract.ts";
import { Act, Do } from "./actions.tsx";
import { get, seg, send } from "./api.ts";
import { startBulk } from "./bulk.tsx";
import { may } from "./live.ts";
import { showDialog, toast } from "./parts.tsx";
import { t } from "./text.ts";

interface Pausable {
  queue: Pick<QueueLine, "name" | "pausedAt" | "drainingAt">;
  again: () => void;
  large?: boolean;
}

/** One that drains can go on, or be paused at once. */
export function PauseButtons({ queue, again, large = false }: Pausable) {
  const { name, pausedAt, drainingAt } = queue;
  const button = (action: "pause" | "resume", icon: "pause" | "play") => (
    <Do
      verb={action === "pause" ? t("Pause") : t("Resume")}
      on={name}
      needs="queues:pause"
      icon={icon}
      large={large}
      // In a row there is no room for three words.
      bare={!large}
      run={() => send("POST", `/queues/${seg(name)}/${action}`)}
      done={action === "pause" ? t("{name} is paused.", { name }) : t("{name} is resumed.", { name })}
      then={again}
    />
  );
  return (
    <>
      {pausedAt === null && drainingAt === null && <DrainButton queue={queue} again={again} large={large} />}
      {(pausedAt !== null || drainingAt !== null) && button("resume", "play")}
      {pausedAt === null && button("pause", "pause")}
    </>
  );
}

function DrainButton({ queue: { name }, again, large = false }: Pausable) {
  return (
    <Do
      verb={t("Drain")}
      on={name}
      needs="queues:pause"
      icon="drain"
      large={large}
      quiet={!large}
      bare={!large}
      title={t("Finish what is there, then pause")}
      ask={
        <p>
          {t(
            "It goes on until nothing in it is due and nothing of it runs; then it is paused by itself. What is due later (scheduled jobs, retries in their wait, runs that sleep or wait) stays where it is, and what comes in meanwhile still runs. Resume ends it.",
          )}
        </p>
      }
      run={() => send("POST", `/queues/${seg(name)}/drain`)}
      done={t("{name} is draining.", { name })}
      then={again}
    />
  );
}

export function PurgeButton({
  queue,
  again,
  large = false,
  before,
}: {
  queue: QueueLine;
  again: () => void;
  large?: boolean;
  before?: () => void;
}) {
  const some = [queue.ready, queue.scheduled, queue.waiting].some(({ count, more }) => count > 0 || more);
  if (!some) return null;
  return (
    <Act
      verb={t("Purge")}
      on={queue.name}
      needs="jobs:delete"
      danger
      large={large}
      quiet={!large}
      bare={!large}
      icon="trash"
      title={t("Delete what has not started")}
      press={() => {
        before?.();
        startBulk("purge", { state: ["ready", "scheduled", "waiting"], queue: [queue.name] }, again);
      }}
    />
  );
}

export function retryDead(queue: string, again: () => void): void {
  startBulk("retry", { state: ["dead"], queue: [queue] }, again);
}

/** The form comes with the page of the queue, or when it is first asked for. */
export function editSettings(queue: string, again: () => void): void {
  Promise.all([import("./queue-form.tsx"), get<QueueDetail>(`/queues/${seg(queue)}`)]).then(
    ([{ settingsForm }, detail]) => settingsForm(detail, again),
    (error: unknown) => toast(error instanceof Error ? error.message : String(error), "bad"),
  );
}

/** What has no room in a row. */
export function MoreButton({ queue, again }: { queue: QueueLine; again: () => void }) {
  if (!may("queues:set") && !may("jobs:retry") && !may("queues:pause")) return null;
  return (
    <Act
      verb={t("More for")}
      on={queue.name}
      needs="view"
      icon="menu"
      quiet
      bare
      title={t("Settings, pause, retry dead, purge")}
      press={() =>
        showDialog(t("More for {name}", { name: queue.name }), (close) => (
          <More queue={queue} again={again} close={close} />
        ))
      }
    />
  );
}

function More({ queue, again, close }: { queue: QueueLine; again: () => void; close: () => void }) {
  const first = (act: () => void) => () => {
    close();
    act();
  };
  return (
    <>
      <header>
        <h2>{queue.name}</h2>
      </header>
      <div class="content">
        <div class="row">
          <PauseButtons queue={queue} again={first(again)} large />
        </div>
        <Act
          verb={t("Settings")}
          on=""
          needs="queues:set"
          icon="gear"
          large
          title={t("Concurrency, rate, slots and more")}
          press={first(() => editSettings(queue.name, again))}
        />
        <Act
          verb={t("Retry dead")}
          on=""
          needs="jobs:retry"
          icon="retry"
          large
          press={first(() => retryDead(queue.name, again))}
        />
        <PurgeButton queue={queue} again={again} large before={close} />
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          {t("Not now")}
        </button>
      </footer>
    </>
  );
}
