// How much of its limits each queue uses, and who holds them.
import type { JobLine, JobList, LimitUse } from "../../../src/dashboard/api/contract.ts";
import { Bars } from "../charts/bars.tsx";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { href } from "../data/router.ts";
import type { Action } from "../kit/actions.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import { clockTime, number, rate, rateOf, rateWords, shortId } from "../kit/format.ts";
import { Field, openForm } from "../kit/forms.tsx";
import { Ago, Count, dash, Gauge, nameClass } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { Listing, menuColumn } from "../kit/table.tsx";
import { rich } from "../language/rich-text.ts";
import { t } from "../language/translation.ts";
import { temporaryLimitChanges, refreshingLimits, DurationField, durationOf } from "./temporary-limit.tsx";

type QueueUse = LimitUse["queues"][number];

/** Queues with a limit over the cluster: how far it is used, and who uses it. */
export function QueueLimitsPanel() {
  const query = useQuery(
    `use ${temporaryLimitChanges.value}`,
    (signal) => get<LimitUse>("/limits/use", { minutes: 15 }, signal),
    { topic: "limits" },
  );
  return (
    <Panel title={t("Queue limits")} note={t("over the whole cluster; the last 15 minutes by the minute")}>
      <Listing
        query={query}
        rows={({ queues }) => queues}
        rowKey={({ name }: QueueUse) => name}
        sort="sort-queues"
        empty={{
          icon: "limits",
          title: t("No queue has a limit"),
          brief: true,
          text: <p>{t("Give one a concurrency or a rate in its settings: it holds over all processes.")}</p>,
        }}
        columns={[
          {
            head: t("Queue"),
            by: ({ name }) => name,
            cell: ({ name }) => (
              <a class={nameClass(name)} href={href(`/queues/${name}`)}>
                {name}
              </a>
            ),
          },
          {
            head: t("Waiting"),
            by: ({ waiting }) => waiting,
            num: true,
            from: "medium",
            cell: ({ name, waiting }) => (
              <a class="link" href={href(`/jobs?state=ready&queue=${seg(name)}`)}>
                <Count of={waiting} />
              </a>
            ),
          },
          {
            head: t("Running"),
            by: ({ running }) => running,
            num: true,
            class: "nowrap",
            cell: ({ running, concurrency }) =>
              concurrency === null ? (
                number(running)
              ) : (
                <>
                  {t("{running} of {concurrency}", {
                    running: number(running),
                    concurrency: number(concurrency),
                  })}{" "}
                  <Gauge used={running} of={concurrency} label={t("Concurrency")} />
                </>
              ),
          },
          {
            head: t("Rate"),
            by: ({ rate: known, started }) => (known === null ? null : (started ?? 0) / known.limit),
            num: true,
            class: "nowrap",
            cell: (queue) => {
              if (queue.rate === null) return dash;
              return (
                <>
                  {t("{started} of {rate}", { started: number(queue.started ?? 0), rate: rate(queue.rate) })}{" "}
                  <Gauge used={queue.started ?? 0} of={queue.rate.limit} label={t("Starts in the window")} />
                  {queue.opensAt !== null && (
                    <span class="sub">{rich("next {when}", { when: <Ago at={queue.opensAt} /> })}</span>
                  )}
                </>
              );
            },
          },
          {
            head: t("Used"),
            from: "medium",
            cell: (queue) => <UseBars queue={queue} at={query.data?.at ?? []} />,
          },
          menuColumn(
            ({ name }: QueueUse) => name,
            (queue) => [
              {
                verb: t("Change"),
                needs: "queues:set",
                icon: "gear",
                press: () => queueForm(queue, refreshingLimits(query.again)),
              },
              queue.running > 0 && holdersOf(queue.name, null),
            ],
          ),
        ]}
      />
    </Panel>
  );
}

/** By the minute, of what there was to be used; a minute that nobody measured is empty. */
function UseBars({ queue, at }: { queue: QueueUse; at: readonly number[] }) {
  const [then, of, label] =
    queue.concurrency === null
      ? [queue.startedThen, queue.rate?.limit ?? 1, t("Starts in the window")]
      : [queue.runningThen, queue.concurrency, t("Running")];
  if (then.every((n) => n === null)) return dash;
  return (
    <Bars
      of={then.map((n) => n ?? 0)}
      most={of}
      label={label}
      height={20}
      looks="spark"
      name={(i) => clockTime(at[i] ?? 0)}
      bad={then.map((n) => (n !== null && n >= of ? n : 0))}
    />
  );
}

function queueForm(queue: QueueUse, again: () => void): void {
  openForm({
    title: t("Limits of {name}", { name: queue.name }),
    verb: t("Save"),
    then: again,
    body: (
      <>
        <p class="muted">{t("Empty is no limit. It takes effect in every process within seconds.")}</p>
        <div class="grid two">
          <Field
            label={t("Concurrency over the cluster")}
            name="concurrency"
            inputMode="numeric"
            defaultValue={queue.concurrency ?? ""}
            placeholder={t("unlimited")}
          />
          <Field
            label={t("Rate")}
            name="rate"
            defaultValue={queue.rate === null ? "" : rateWords(queue.rate)}
            placeholder="100 per 1m"
          />
          <DurationField />
        </div>
      </>
    ),
    run: async (fields) => {
      await send("PATCH", `/queues/${seg(queue.name)}`, {
        concurrency: fields.number("concurrency") ?? null,
        rate: rateOf(fields.text("rate")),
        ...durationOf(fields),
      });
      return t("The limits hold in every process.");
    },
  });
}

/** The jobs that run under a limit now. */
export function holdersOf(queue: string, lane: string | null): Action {
  return {
    verb: t("Holders"),
    needs: "view",
    icon: "jobs",
    press: () =>
      showDialog(t("Holders of {lane}", { lane: lane ?? queue }), (close) => (
        <Holders queue={queue} lane={lane} close={close} />
      )),
  };
}

function Holders({ queue, lane, close }: { queue: string; lane: string | null; close: () => void }) {
  const query = useQuery(
    `holders ${queue} ${lane ?? ""}`,
    (signal) => get<JobList>("/jobs", { state: "running", queue, lane, limit: 100 }, signal),
    { sign: "overview" },
  );
  return (
    <>
      <header>
        <h2>{t("Holders of {lane}", { lane: lane ?? queue })}</h2>
      </header>
      <div class="content">
        <Listing
          query={query}
          rows={({ jobs }) => jobs}
          rowKey={({ id }: JobLine) => id}
          empty={{ icon: "check", title: t("Nobody holds it"), text: <p>{t("No job of it runs now.")}</p> }}
          columns={[
            {
              head: t("Job"),
              cell: ({ id, name }) => (
                <a class="main-link" href={href(`/jobs/${id}`)} onClick={close}>
                  {name} <span class="mono muted">{shortId(id)}</span>
                </a>
              ),
            },
            { head: t("Lane"), from: "medium", cell: ({ lane: of }) => of ?? dash },
            {
              head: t("Worker"),
              class: "mono muted",
              from: "medium",
              cell: ({ workerId }) => shortId(workerId ?? "—"),
            },
            { head: t("Running for"), num: true, cell: ({ startedAt }) => <Ago at={startedAt} /> },
          ]}
        />
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          {t("Close")}
        </button>
      </footer>
    </>
  );
}
