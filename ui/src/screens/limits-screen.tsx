// Holds, breakers, budgets, lanes: what keeps jobs from running on purpose.
import { useSignal } from "@preact/signals";
import type {
  BreakerLine,
  HoldLine,
  JobLine,
  JobList,
  LaneLine,
  LaneList,
  LimitUse,
  OverrideLine,
} from "../../../src/dashboard/api/contract.ts";
import { Act, type Action, type Actions, Do, doing } from "../kit/actions.tsx";
import { Field, openForm } from "../kit/forms.tsx";
import { get, seg, send } from "../data/api.ts";
import { Bars } from "../charts/bars.tsx";
import { Budgets } from "../limits/budget-panel.tsx";
import { changed, told, WhileField, whileOf } from "../limits/temporary-limit.tsx";
import { clockTime, number, rate, rateOf, rateWords, shortId } from "../kit/format.ts";
import { Ago, Count, Gauge, nameClass, State } from "../kit/labels.tsx";
import { Head, Panel } from "../kit/panels.tsx";
import { showDialog } from "../kit/dialogs.tsx";
import { rich } from "../language/rich-text.ts";
import { href, params } from "../data/router.ts";
import { actionsColumn, Listing, menuColumn, Pager } from "../kit/table.tsx";
import { t } from "../language/translation.ts";
import { useQuery } from "../data/live-query.ts";

export function Limits() {
  return (
    <>
      <Head title={t("Limits")} note={t("What keeps jobs from running on purpose.")} />
      <Overrides />
      <Holds />
      <Breakers />
      <QueueLimits />
      <Budgets />
      <Throttled />
      <Lanes />
    </>
  );
}

type QueueUse = LimitUse["queues"][number];

const none = <span class="muted">—</span>;

/** Limits that go back by themselves. Nothing is shown where there are none. */
function Overrides() {
  const query = useQuery(
    `overrides ${changed.value}`,
    (signal) => get<{ overrides: OverrideLine[] }>("/overrides", {}, signal),
    { topic: "overrides" },
  );
  if (query.data === null || query.data.overrides.length === 0) return null;
  return (
    <Panel title={t("For a while")} note={t("these go back by themselves")}>
      <Listing
        query={query}
        rows={({ overrides }) => overrides}
        rowKey={({ kind, name, lane }: OverrideLine) => `${kind} ${name} ${lane ?? ""}`}
        empty={{ icon: "check", title: "", text: null }}
        columns={[
          {
            head: t("Limit"),
            cell: ({ kind, name, lane }) => (
              <>
                <b>{lane ?? name}</b> <span class="tag">{kindWords[kind]}</span>
                {lane !== null && <span class="sub">{name}</span>}
              </>
            ),
          },
          {
            head: t("Goes back to"),
            class: "mono",
            style: { maxWidth: "420px" },
            cell: ({ back }) => (back === null ? t("not there") : backInWords(back)),
          },
          { head: t("Ends"), num: true, class: "nowrap", cell: ({ untilAt }) => <Ago at={untilAt} /> },
          actionsColumn(({ kind, name, lane }: OverrideLine) => (
            <Do
              verb={t("End now")}
              on={lane ?? name}
              needs={kind === "queue" ? "queues:set" : "limits:set"}
              run={() =>
                send("DELETE", `/overrides/${kind}/${seg(name)}${lane === null ? "" : `/${seg(lane)}`}`)
              }
              done={t("Back to what was there before.")}
              then={told(query.again)}
            />
          )),
        ]}
      />
    </Panel>
  );
}

function backInWords(back: Readonly<Record<string, unknown>>): string {
  return Object.entries(back)
    .filter(([key]) => key !== "tuned" && key !== "perMs")
    .map(([key, value]) => `${key} ${shownLimit(key, value, back)}`)
    .join(", ");
}

function shownLimit(key: string, value: unknown, back: Readonly<Record<string, unknown>>): string {
  if (value === null) return t("none");
  if (typeof value === "object" && "perMs" in value) return rate(value as { limit: number; perMs: number });
  if (key === "limit" && typeof back["perMs"] === "number")
    return rate({ limit: value as number, perMs: back["perMs"] });
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Queues with a limit over the cluster: how far it is used, and who uses it. */
function QueueLimits() {
  const query = useQuery(
    `use ${changed.value}`,
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
              if (queue.rate === null) return none;
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
                press: () => queueForm(queue, told(query.again)),
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
  if (then.every((n) => n === null)) return none;
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
          <WhileField />
        </div>
      </>
    ),
    run: async (fields) => {
      await send("PATCH", `/queues/${seg(queue.name)}`, {
        concurrency: fields.number("concurrency") ?? null,
        rate: rateOf(fields.text("rate")),
        ...whileOf(fields),
      });
      return t("The limits hold in every process.");
    },
  });
}

/** The jobs that run under a limit now. */
function holdersOf(queue: string, lane: string | null): Action {
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
            { head: t("Lane"), from: "medium", cell: ({ lane: of }) => of ?? none },
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

function Holds() {
  const query = useQuery("holds", (signal) => get<{ holds: HoldLine[] }>("/holds", {}, signal), {
    topic: "holds",
  });
  return (
    <Panel
      title={t("Holds")}
      note={t("a named stop over some queues, or all")}
      tools={
        <Act verb={t("New hold")} on="" needs="limits:set" icon="plus" press={() => newHold(query.again)} />
      }
    >
      <Listing
        query={query}
        rows={({ holds }) => holds}
        rowKey={({ name }: HoldLine) => name}
        sort="sort-holds"
        empty={{
          icon: "check",
          title: t("Nothing is held"),
          brief: true,
          text: (
            <p>
              {t(
                "Set a hold when something outside is broken (“session expired”): jobs wait, and keep their attempts.",
              )}
            </p>
          ),
        }}
        columns={[
          {
            head: t("Hold"),
            by: ({ name }) => name,
            cell: (hold) => (
              <>
                <b>{hold.name}</b>
                {hold.reason !== null && <span class="sub">{hold.reason}</span>}
              </>
            ),
          },
          {
            head: t("Queues"),
            cell: ({ queues }) =>
              queues === null ? (
                <span class="tag warn">{t("every queue")}</span>
              ) : (
                queues.map((queue) => (
                  <a key={queue} class="tag" href={href(`/queues/${queue}`)}>
                    {queue}
                  </a>
                ))
              ),
          },
          {
            head: t("Set"),
            by: ({ setAt }) => setAt,
            num: true,
            class: "muted",
            cell: ({ setAt }) => <Ago at={setAt} />,
          },
          actionsColumn(({ name }: HoldLine) => (
            <Do
              verb={t("Clear")}
              on={name}
              needs="limits:set"
              run={() => send("DELETE", `/holds/${seg(name)}`)}
              done={t("Cleared.")}
              then={query.again}
            />
          )),
        ]}
      />
    </Panel>
  );
}

function newHold(again: () => void): void {
  openForm({
    title: t("New hold"),
    verb: t("Hold"),
    danger: true,
    then: again,
    body: (
      <>
        <Field label={t("Name")} name="name" required placeholder="session-expired" />
        <Field label={t("Queues")} name="queues" placeholder={t("every queue; or mail, crawl")} />
        <Field label={t("Reason")} name="reason" placeholder={t("shown to whoever asks why")} />
      </>
    ),
    run: async (fields) => {
      const queues = fields.text("queues")?.split(/[\s,]+/);
      const reason = fields.text("reason");
      await send("PUT", `/holds/${seg(fields.text("name") ?? "")}`, {
        ...(queues === undefined ? {} : { queues }),
        ...(reason === undefined ? {} : { reason }),
      });
      return t("The hold is set.");
    },
  });
}

function Breakers() {
  const query = useQuery("breakers", (signal) => get<{ breakers: BreakerLine[] }>("/breakers", {}, signal), {
    topic: "breakers",
  });
  return (
    <Panel title={t("Breakers")} note={t("open after failures in a row; one probe at a time closes them")}>
      <Listing
        query={query}
        rows={({ breakers }) => breakers}
        rowKey={({ key }: BreakerLine) => key}
        sort="sort-breakers"
        empty={{
          icon: "check",
          title: t("No breaker has tripped"),
          brief: true,
          text: (
            <p>
              {t(
                "Give a queue one in its settings, or a job in its definition: after so many failures in a row its jobs wait, and keep their attempts.",
              )}
            </p>
          ),
        }}
        columns={[
          {
            head: t("Breaker"),
            by: ({ key }) => key,
            style: { maxWidth: "460px" },
            cell: (breaker) => (
              <>
                <b>{breaker.key}</b>
                {breaker.error !== null && <span class="sub clip">{breaker.error}</span>}
              </>
            ),
          },
          { head: t("State"), by: ({ state }) => state, cell: ({ state }) => <State state={state} /> },
          {
            head: t("Failures in a row"),
            by: ({ failures }) => failures,
            num: true,
            from: "medium",
            cell: ({ failures }) => number(failures),
          },
          {
            head: t("Next probe"),
            by: ({ openUntil }) => openUntil,
            num: true,
            class: "muted",
            cell: ({ probing, openUntil }) => (probing ? t("running") : <Ago at={openUntil} />),
          },
          actionsColumn(
            ({ key, state }: BreakerLine) =>
              state !== "closed" && (
                <Do
                  verb={t("Reset")}
                  on={key}
                  needs="limits:set"
                  run={() => send("POST", `/breakers/${seg(key)}/reset`)}
                  done={t("Closed.")}
                  then={query.again}
                />
              ),
          ),
        ]}
      />
    </Panel>
  );
}

function laneActions(line: LaneLine, again: () => void): Actions {
  const { queue, lane, paused, running, tuned, rate } = line;
  const change = { on: lane, needs: "limits:set", then: again } as const;
  return [
    {
      verb: t("Change"),
      needs: "limits:set",
      icon: "gear",
      press: () => laneForm(line, told(again)),
    },
    doing({
      ...change,
      verb: paused ? t("Resume") : t("Pause"),
      icon: paused ? "play" : "pause",
      run: () => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, { paused: !paused }),
      done: paused ? t("{lane} is resumed.", { lane }) : t("{lane} is paused.", { lane }),
    }),
    running > 0 && holdersOf(queue, lane),
    (tuned || rate !== null) &&
      doing({
        ...change,
        verb: t("Reset"),
        icon: "retry",
        run: () => send("POST", `/lanes/${seg(queue)}/${seg(lane)}/reset`),
        done: t("{lane} has the code's limits, and its rate begins anew.", { lane }),
        ask: t(
          "Its limits and weight are those of the code again, and its rate begins anew, as if nothing had started lately. What runs stays counted, and a pause stays.",
        ),
      }),
    (tuned || paused) &&
      doing({
        ...change,
        verb: t("Drop"),
        danger: true,
        icon: "trash",
        run: () => send("DELETE", `/lanes/${seg(queue)}/${seg(lane)}`),
        done: t("What was set of {lane} is removed.", { lane }),
        ask: t(
          "Everything that was set of this key is removed, its pause too. It is forgotten after a day in which no job comes; one that comes has the limits of the code.",
        ),
      }),
  ];
}

function laneForm(lane: LaneLine, again: () => void): void {
  openForm({
    title: t("Limits of {lane}", { lane: lane.lane }),
    verb: t("Save"),
    then: again,
    body: (
      <>
        <p class="muted">
          {t("Empty is no limit. They hold for this lane of {queue}, in every process.", {
            queue: lane.queue,
          })}
        </p>
        <div class="grid two">
          <Field
            label={t("Concurrency")}
            name="concurrency"
            inputMode="numeric"
            defaultValue={lane.concurrency ?? ""}
            placeholder={t("unlimited")}
          />
          <Field
            label={t("Rate")}
            name="rate"
            defaultValue={lane.rate === null ? "" : rateWords(lane.rate)}
            placeholder="100 per 1m"
          />
          <Field label={t("Weight")} name="weight" inputMode="numeric" defaultValue={lane.weight} />
          <WhileField />
        </div>
      </>
    ),
    run: async (fields) => {
      await send("PATCH", `/lanes/${seg(lane.queue)}/${seg(lane.lane)}`, {
        concurrency: fields.number("concurrency") ?? null,
        rate: rateOf(fields.text("rate")),
        weight: fields.number("weight") ?? null,
        ...whileOf(fields),
      });
      return t("The limits hold in every process.");
    },
  });
}

/** Who waits because of a limit. */
function Throttled() {
  const query = useQuery(
    "throttled",
    (signal) => get<{ lanes: LaneLine[] }>("/lanes/throttled", {}, signal),
    { topic: "throttled" },
  );
  if (query.data === null || query.data.lanes.length === 0) return null;
  return (
    <Panel title={t("Most throttled lanes")} note={t("they have jobs, and may start none now")}>
      <Listing
        query={query}
        rows={({ lanes }) => lanes}
        rowKey={({ queue, lane }: LaneLine) => `${queue} ${lane}`}
        sort="sort-throttled"
        empty={{ icon: "check", title: "", text: null }}
        columns={[
          {
            head: t("Lane"),
            by: ({ lane }) => lane,
            cell: ({ queue, lane }) => (
              <>
                <a class={nameClass(lane)} href={href(`/jobs?queue=${queue}&lane=${seg(lane)}`)}>
                  {lane}
                </a>
                <span class={nameClass(queue, "sub")}>{queue}</span>
              </>
            ),
          },
          {
            head: t("Waiting"),
            by: ({ waiting }) => waiting,
            num: true,
            cell: ({ waiting }) => <Count of={waiting} />,
          },
          { head: t("Why"), cell: (lane) => whyThrottled(lane) },
          menuColumn(
            ({ lane }: LaneLine) => lane,
            (lane) => laneActions(lane, query.again),
          ),
        ]}
      />
    </Panel>
  );
}

const kindWords: Readonly<Record<OverrideLine["kind"], string>> = {
  queue: t("queue"),
  lane: t("lane"),
  budget: t("budget"),
};

function whyThrottled({ paused, running, concurrency, rate: limit, rateOpensAt }: LaneLine) {
  if (paused) return <State state="paused" />;
  if (concurrency !== null && running >= concurrency)
    return t("{running} of {concurrency} run", { running, concurrency });
  if (limit === null || rateOpensAt === null) return none;
  return <>{rich("{limit} is used; next {when}", { limit: rate(limit), when: <Ago at={rateOpensAt} /> })}</>;
}

function Lanes() {
  const cursor = useSignal<string | null>(null);
  const queue = params.value.get("queue");
  const query = useQuery(
    `lanes ${queue} ${cursor.value}`,
    (signal) => get<LaneList>("/lanes", { limit: 50, cursor: cursor.value, queue }, signal),
    { sign: "throttled" },
  );
  return (
    <Panel
      title={t("Lanes")}
      note={
        queue === null
          ? t("jobs of one queue that share a key and its limits")
          : t("of {queue} alone", { queue })
      }
      tools={
        queue !== null && (
          <a class="button small" href={href("/limits")} aria-label={t("Lanes of all queues")}>
            {t("All queues")}
          </a>
        )
      }
    >
      <Listing
        query={query}
        rows={({ lanes }) => lanes}
        rowKey={({ queue, lane }: LaneLine) => `${queue} ${lane}`}
        // Of several pages one alone would be in order.
        sort={({ cursor: next }) => (next === null && cursor.value === null ? "sort-lanes" : undefined)}
        empty={{
          icon: "limits",
          title: t("No lane is in use"),
          text: (
            <>
              <p>{t("Give a job a lane, and no tenant waits behind another:")}</p>
              <pre class="code">{`defineJob({ name: "sync", lane: (input) => input.tenant,\n  lanes: { concurrency: 2 }, … });`}</pre>
            </>
          ),
        }}
        columns={[
          {
            head: t("Lane"),
            by: ({ lane }) => lane,
            cell: (lane) => (
              <>
                <a
                  class={nameClass(lane.lane)}
                  href={href(`/jobs?queue=${lane.queue}&lane=${seg(lane.lane)}`)}
                >
                  {lane.lane}
                </a>{" "}
                {lane.paused && <State state="paused" />}
                <span class={nameClass(lane.queue, "sub")}>{lane.queue}</span>
              </>
            ),
          },
          {
            head: t("Waiting"),
            by: ({ waiting }) => waiting,
            num: true,
            cell: ({ waiting }) => <Count of={waiting} />,
          },
          {
            head: t("Running"),
            by: ({ running }) => running,
            num: true,
            class: "nowrap",
            cell: ({ running, concurrency }) => (
              <>
                {running}{" "}
                {concurrency !== null && <Gauge used={running} of={concurrency} label={t("Concurrency")} />}
              </>
            ),
          },
          {
            head: t("Concurrency"),
            by: ({ concurrency }) => concurrency,
            num: true,
            from: "medium",
            cell: ({ concurrency }) => concurrency ?? none,
          },
          {
            head: t("Rate"),
            num: true,
            from: "medium",
            class: "nowrap",
            cell: (lane) => (lane.rate === null ? none : rate(lane.rate)),
          },
          {
            head: t("Weight"),
            by: ({ weight }) => weight,
            num: true,
            from: "medium",
            cell: ({ weight }) => weight,
          },
          menuColumn(
            ({ lane }: LaneLine) => lane,
            (lane) => laneActions(lane, query.again),
          ),
        ]}
        foot={({ cursor: next }) => <Pager cursor={cursor} next={next} />}
      />
    </Panel>
  );
}
