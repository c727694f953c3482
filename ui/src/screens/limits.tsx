// Holds, breakers, budgets, lanes: what keeps jobs from running on purpose.
import { signal, useSignal } from "@preact/signals";
import type {
  BreakerLine,
  BudgetLine,
  HoldLine,
  JobLine,
  JobList,
  LaneLine,
  LaneList,
  LimitUse,
  OverrideLine,
} from "../../../src/dashboard/contract.ts";
import { Act, Do, Field, type Fields, openForm } from "../actions.tsx";
import { get, seg, send } from "../api.ts";
import { Bars } from "../bars.tsx";
import { clockTime, number, rate, rateOf, shortId } from "../format.ts";
import { Ago, Count, Gauge, Head, now, showDialog, State } from "../parts.tsx";
import { href } from "../router.ts";
import { actionsColumn, Listing, Panel, Pager } from "../table.tsx";
import { useQuery } from "../use-query.ts";

export function Limits() {
  return (
    <>
      <Head title="Limits" note="What keeps jobs from running on purpose." />
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

/** What holds for a while is asked for by several panels: one question, and all are told. */
const changed = signal(0);

function told(again: () => void): () => void {
  return () => {
    changed.value += 1;
    again();
  };
}

/** Limits that go back by themselves. Nothing is shown where there are none. */
function Overrides() {
  const query = useQuery(
    `overrides ${changed.value}`,
    (signal) => get<{ overrides: OverrideLine[] }>("/overrides", {}, signal),
    { live: true },
  );
  if (query.data === null || query.data.overrides.length === 0) return null;
  return (
    <Panel title="For a while" note="these go back by themselves">
      <Listing
        query={query}
        rows={({ overrides }) => overrides}
        rowKey={({ kind, name, lane }: OverrideLine) => `${kind} ${name} ${lane ?? ""}`}
        empty={{ icon: "check", title: "", text: null }}
        columns={[
          {
            head: "Limit",
            cell: ({ kind, name, lane }) => (
              <>
                <b>{lane ?? name}</b> <span class="tag">{kind}</span>
                {lane !== null && <span class="sub">{name}</span>}
              </>
            ),
          },
          {
            head: "Goes back to",
            class: "mono",
            style: { maxWidth: "420px" },
            cell: ({ back }) => (back === null ? "not there" : backInWords(back)),
          },
          { head: "Ends", num: true, class: "nowrap", cell: ({ untilAt }) => <Ago at={untilAt} /> },
          actionsColumn(({ kind, name, lane }: OverrideLine) => (
            <Do
              verb="End now"
              on={lane ?? name}
              needs={kind === "queue" ? "queues:set" : "limits:set"}
              run={() =>
                send("DELETE", `/overrides/${kind}/${seg(name)}${lane === null ? "" : `/${seg(lane)}`}`)
              }
              done="Back to what was there before."
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
  if (value === null) return "none";
  if (typeof value === "object" && "perMs" in value) return rate(value as { limit: number; perMs: number });
  if (key === "limit" && typeof back["perMs"] === "number")
    return rate({ limit: value as number, perMs: back["perMs"] });
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** The fields that say how long a change holds. */
function WhileField() {
  return <Field label="For how long" name="for" placeholder="for good; or 30m, 4h, 2d" />;
}

function whileOf(fields: Fields): { for?: string } {
  const delay = fields.text("for");
  return delay === undefined ? {} : { for: delay };
}

/** Queues with a limit over the cluster: how far it is used, and who uses it. */
function QueueLimits() {
  const query = useQuery(
    `use ${changed.value}`,
    (signal) => get<LimitUse>("/limits/use", { minutes: 15 }, signal),
    { live: true },
  );
  return (
    <Panel title="Queue limits" note="over the whole cluster; the last 15 minutes by the minute">
      <Listing
        query={query}
        rows={({ queues }) => queues}
        rowKey={({ name }: QueueUse) => name}
        empty={{
          icon: "limits",
          title: "No queue has a limit",
          text: <p>Give one a concurrency or a rate in its settings: it holds over all processes.</p>,
        }}
        columns={[
          {
            head: "Queue",
            cell: ({ name }) => (
              <a class="main-link" href={href(`/queues/${name}`)}>
                {name}
              </a>
            ),
          },
          {
            head: "Running",
            num: true,
            class: "nowrap",
            cell: ({ running, concurrency }) =>
              concurrency === null ? (
                number(running)
              ) : (
                <>
                  {number(running)} of {number(concurrency)}{" "}
                  <Gauge used={running} of={concurrency} label="Concurrency" />
                </>
              ),
          },
          {
            head: "Rate",
            num: true,
            class: "nowrap",
            cell: (queue) => {
              if (queue.rate === null) return none;
              return (
                <>
                  {number(queue.started ?? 0)} of {rate(queue.rate)}
                  {queue.opensAt !== null && (
                    <span class="sub">
                      next <Ago at={queue.opensAt} />
                    </span>
                  )}
                </>
              );
            },
          },
          {
            head: "Used",
            from: "medium",
            cell: (queue) => <UseBars queue={queue} at={query.data?.at ?? []} />,
          },
          actionsColumn((queue: QueueUse) => (
            <>
              {queue.running > 0 && (
                <button
                  type="button"
                  class="button small"
                  aria-label={`Holders of ${queue.name}`}
                  onClick={() => showHolders(queue.name, null)}
                >
                  Holders
                </button>
              )}{" "}
              <Act
                verb="Change"
                on={queue.name}
                needs="queues:set"
                press={() => queueForm(queue, told(query.again))}
              />
            </>
          )),
        ]}
      />
    </Panel>
  );
}

/** By the minute, of what there was to be used; a minute that nobody measured is empty. */
function UseBars({ queue, at }: { queue: QueueUse; at: readonly number[] }) {
  const [then, of, label] =
    queue.concurrency === null
      ? [queue.startedThen, queue.rate?.limit ?? 1, "Starts in the window"]
      : [queue.runningThen, queue.concurrency, "Running"];
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
    title: `Limits of ${queue.name}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <p class="muted">Empty is no limit. It takes effect in every process within seconds.</p>
        <div class="grid two">
          <Field
            label="Concurrency over the cluster"
            name="concurrency"
            inputMode="numeric"
            defaultValue={queue.concurrency ?? ""}
            placeholder="unlimited"
          />
          <Field
            label="Rate"
            name="rate"
            defaultValue={queue.rate === null ? "" : `${queue.rate.limit} per ${queue.rate.perMs / 1_000}s`}
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
      return "The limits hold in every process.";
    },
  });
}

/** The jobs that run under a limit now. */
function showHolders(queue: string, lane: string | null): void {
  showDialog(`Holders of ${lane ?? queue}`, (close) => <Holders queue={queue} lane={lane} close={close} />);
}

function Holders({ queue, lane, close }: { queue: string; lane: string | null; close: () => void }) {
  const query = useQuery(
    `holders ${queue} ${lane ?? ""}`,
    (signal) => get<JobList>("/jobs", { state: "running", queue, lane, limit: 100 }, signal),
    { live: true },
  );
  return (
    <>
      <header>
        <h2>Holders of {lane ?? queue}</h2>
      </header>
      <div class="content">
        <Listing
          query={query}
          rows={({ jobs }) => jobs}
          rowKey={({ id }: JobLine) => id}
          empty={{ icon: "check", title: "Nobody holds it", text: <p>No job of it runs now.</p> }}
          columns={[
            {
              head: "Job",
              cell: ({ id, name }) => (
                <a class="main-link" href={href(`/jobs/${id}`)} onClick={close}>
                  {name} <span class="mono muted">{shortId(id)}</span>
                </a>
              ),
            },
            { head: "Lane", from: "medium", cell: ({ lane: of }) => of ?? none },
            {
              head: "Worker",
              class: "mono muted",
              from: "medium",
              cell: ({ workerId }) => shortId(workerId ?? "—"),
            },
            { head: "Running for", num: true, cell: ({ startedAt }) => <Ago at={startedAt} /> },
          ]}
        />
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Close
        </button>
      </footer>
    </>
  );
}

function Holds() {
  const query = useQuery("holds", (signal) => get<{ holds: HoldLine[] }>("/holds", {}, signal), {
    live: true,
  });
  return (
    <Panel
      title="Holds"
      note="a named stop over some queues, or all"
      tools={<Act verb="New hold" on="" needs="limits:set" icon="plus" press={() => newHold(query.again)} />}
    >
      <Listing
        query={query}
        rows={({ holds }) => holds}
        rowKey={({ name }: HoldLine) => name}
        empty={{
          icon: "check",
          title: "Nothing is held",
          text: (
            <p>
              Set a hold when something outside is broken (“session expired”): jobs wait, and keep their
              attempts.
            </p>
          ),
        }}
        columns={[
          {
            head: "Hold",
            cell: (hold) => (
              <>
                <b>{hold.name}</b>
                {hold.reason !== null && <span class="sub">{hold.reason}</span>}
              </>
            ),
          },
          {
            head: "Queues",
            cell: ({ queues }) =>
              queues === null ? (
                <span class="tag warn">every queue</span>
              ) : (
                queues.map((queue) => (
                  <a key={queue} class="tag" href={href(`/queues/${queue}`)}>
                    {queue}
                  </a>
                ))
              ),
          },
          { head: "Set", num: true, class: "muted", cell: ({ setAt }) => <Ago at={setAt} /> },
          actionsColumn(({ name }: HoldLine) => (
            <Do
              verb="Clear"
              on={name}
              needs="limits:set"
              run={() => send("DELETE", `/holds/${seg(name)}`)}
              done="Cleared."
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
    title: "New hold",
    verb: "Hold",
    danger: true,
    then: again,
    body: (
      <>
        <Field label="Name" name="name" required placeholder="session-expired" />
        <Field label="Queues" name="queues" placeholder="every queue; or mail, crawl" />
        <Field label="Reason" name="reason" placeholder="shown to whoever asks why" />
      </>
    ),
    run: async (fields) => {
      const queues = fields.text("queues")?.split(/[\s,]+/);
      const reason = fields.text("reason");
      await send("PUT", `/holds/${seg(fields.text("name") ?? "")}`, {
        ...(queues === undefined ? {} : { queues }),
        ...(reason === undefined ? {} : { reason }),
      });
      return "The hold is set.";
    },
  });
}

function Breakers() {
  const query = useQuery("breakers", (signal) => get<{ breakers: BreakerLine[] }>("/breakers", {}, signal), {
    live: true,
  });
  return (
    <Panel title="Breakers" note="open after failures in a row; one probe at a time closes them">
      <Listing
        query={query}
        rows={({ breakers }) => breakers}
        rowKey={({ key }: BreakerLine) => key}
        empty={{
          icon: "check",
          title: "No breaker has tripped",
          text: (
            <p>
              Give a queue one in its settings, or a job in its definition: after so many failures in a row
              its jobs wait, and keep their attempts.
            </p>
          ),
        }}
        columns={[
          {
            head: "Breaker",
            style: { maxWidth: "460px" },
            cell: (breaker) => (
              <>
                <b>{breaker.key}</b>
                {breaker.error !== null && <span class="sub clip">{breaker.error}</span>}
              </>
            ),
          },
          { head: "State", cell: ({ state }) => <State state={state} /> },
          { head: "Failures in a row", num: true, from: "medium", cell: ({ failures }) => number(failures) },
          {
            head: "Next probe",
            num: true,
            class: "muted",
            cell: ({ probing, openUntil }) => (probing ? "running" : <Ago at={openUntil} />),
          },
          actionsColumn(
            ({ key, state }: BreakerLine) =>
              state !== "closed" && (
                <Do
                  verb="Reset"
                  on={key}
                  needs="limits:set"
                  run={() => send("POST", `/breakers/${seg(key)}/reset`)}
                  done="Closed."
                  then={query.again}
                />
              ),
          ),
        ]}
      />
    </Panel>
  );
}

function Budgets() {
  const tick = Math.floor(now.value / 30_000);
  const use = useQuery(`budget use ${tick}`, (signal) =>
    get<LimitUse>("/limits/use", { minutes: 15 }, signal),
  );
  const query = useQuery("budgets", (signal) => get<{ budgets: BudgetLine[] }>("/budgets", {}, signal), {
    live: true,
  });
  return (
    <Panel
      title="Budgets"
      note="rates over the whole cluster"
      tools={
        <Act
          verb="New budget"
          on=""
          needs="limits:set"
          icon="plus"
          press={() => budgetForm(null, query.again)}
        />
      }
    >
      <Listing
        query={query}
        rows={({ budgets }) => budgets}
        rowKey={({ name }: BudgetLine) => name}
        empty={{
          icon: "limits",
          title: "No budget is set",
          text: (
            <>
              <p>A budget is a rate that all processes share. Jobs take from it as they run:</p>
              <pre class="code">{`await hf.budgets.set("slack", { limit: 50, per: "1m" });\nawait ctx.budget("slack");`}</pre>
            </>
          ),
        }}
        columns={[
          {
            head: "Budget",
            cell: ({ name, tuned }) => (
              <>
                <b>{name}</b> {tuned && <span class="tag">set by hand</span>}
              </>
            ),
          },
          {
            head: "Left",
            num: true,
            class: "nowrap",
            cell: ({ tokens, burst }) => (
              <>
                {number(Math.floor(tokens))} <Gauge used={tokens} of={burst} label="Left" left />
              </>
            ),
          },
          {
            head: "Limit",
            num: true,
            class: "nowrap",
            cell: (budget) => rate(budget),
          },
          { head: "Burst", num: true, from: "medium", cell: ({ burst }) => number(burst) },
          {
            head: "Last 15 min",
            from: "medium",
            cell: ({ name, burst }) => {
              const then = use.data?.budgets[name];
              if (then === undefined || then.every((n) => n === null)) return none;
              const used = then.map((n) => (n === null ? 0 : Math.max(0, burst - n)));
              return (
                <Bars
                  of={used}
                  most={burst}
                  label="Used of the burst"
                  height={20}
                  looks="spark"
                  name={(i) => clockTime(use.data?.at[i] ?? 0)}
                  bad={used.map((n) => (n >= burst - 1 ? n : 0))}
                />
              );
            },
          },
          actionsColumn((budget: BudgetLine) => (
            <>
              <Act
                verb="Change"
                on={budget.name}
                needs="limits:set"
                press={() => budgetForm(budget, told(query.again))}
              />
              <Do
                verb="Drain"
                on={budget.name}
                needs="limits:set"
                danger
                ask="Nothing is granted until it refills."
                run={() => send("POST", `/budgets/${seg(budget.name)}/drain`)}
                done="Drained."
                then={query.again}
              />
            </>
          )),
        ]}
      />
    </Panel>
  );
}

function budgetForm(budget: BudgetLine | null, again: () => void): void {
  openForm({
    title: budget === null ? "New budget" : `Budget ${budget.name}`,
    verb: "Save",
    then: again,
    body: (
      <div class="grid two">
        {budget === null && <Field label="Name" name="name" required placeholder="slack" />}
        <Field label="Limit" name="limit" inputMode="decimal" required defaultValue={budget?.limit ?? ""} />
        <Field
          label="Per"
          name="per"
          required
          placeholder="1m"
          defaultValue={budget === null ? "" : `${budget.perMs / 1_000}s`}
        />
        <Field
          label="Burst"
          name="burst"
          inputMode="decimal"
          placeholder="the limit"
          defaultValue={budget?.burst ?? ""}
        />
        {budget !== null && <WhileField />}
      </div>
    ),
    run: async (fields) => {
      const burst = fields.number("burst");
      await send("PUT", `/budgets/${seg(budget?.name ?? fields.text("name") ?? "")}`, {
        limit: fields.number("limit"),
        per: fields.text("per"),
        ...(burst === undefined ? {} : { burst }),
        ...whileOf(fields),
      });
      return "The budget holds in every process.";
    },
  });
}

function LaneActions({ lane: line, again }: { lane: LaneLine; again: () => void }) {
  const { queue, lane, paused, running } = line;
  return (
    <>
      {running > 0 && (
        <button
          type="button"
          class="button small"
          aria-label={`Holders of ${lane}`}
          onClick={() => showHolders(queue, lane)}
        >
          Holders
        </button>
      )}{" "}
      <Act verb="Change" on={lane} needs="limits:set" press={() => laneForm(line, told(again))} />
      <Do
        verb={paused ? "Resume" : "Pause"}
        on={lane}
        needs="limits:set"
        icon={paused ? "play" : "pause"}
        run={() => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, { paused: !paused })}
        done={`${lane} is ${paused ? "resumed" : "paused"}.`}
        then={again}
      />
    </>
  );
}

function laneForm(lane: LaneLine, again: () => void): void {
  openForm({
    title: `Limits of ${lane.lane}`,
    verb: "Save",
    then: again,
    body: (
      <>
        <p class="muted">Empty is no limit. They hold for this lane of {lane.queue}, in every process.</p>
        <div class="grid two">
          <Field
            label="Concurrency"
            name="concurrency"
            inputMode="numeric"
            defaultValue={lane.concurrency ?? ""}
            placeholder="unlimited"
          />
          <Field
            label="Rate"
            name="rate"
            defaultValue={lane.rate === null ? "" : `${lane.rate.limit} per ${lane.rate.perMs / 1_000}s`}
            placeholder="100 per 1m"
          />
          <Field label="Weight" name="weight" inputMode="numeric" defaultValue={lane.weight} />
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
      return "The limits hold in every process.";
    },
  });
}

/** Who waits because of a limit. */
function Throttled() {
  const query = useQuery(
    "throttled",
    (signal) => get<{ lanes: LaneLine[] }>("/lanes/throttled", {}, signal),
    { live: true },
  );
  if (query.data === null || query.data.lanes.length === 0) return null;
  return (
    <Panel title="Most throttled lanes" note="they have jobs, and may start none now">
      <Listing
        query={query}
        rows={({ lanes }) => lanes}
        rowKey={({ queue, lane }: LaneLine) => `${queue} ${lane}`}
        empty={{ icon: "check", title: "", text: null }}
        columns={[
          {
            head: "Lane",
            cell: ({ queue, lane }) => (
              <>
                <a class="main-link" href={href(`/jobs?queue=${queue}&lane=${seg(lane)}`)}>
                  {lane}
                </a>
                <span class="sub">{queue}</span>
              </>
            ),
          },
          { head: "Waiting", num: true, cell: ({ waiting }) => <Count of={waiting} /> },
          { head: "Why", cell: (lane) => whyThrottled(lane) },
          actionsColumn((lane: LaneLine) => <LaneActions lane={lane} again={query.again} />),
        ]}
      />
    </Panel>
  );
}

function whyThrottled({ paused, running, concurrency, rate: limit, rateOpensAt }: LaneLine) {
  if (paused) return <State state="paused" />;
  if (concurrency !== null && running >= concurrency) return `${running} of ${concurrency} run`;
  if (limit === null || rateOpensAt === null) return none;
  return (
    <>
      {rate(limit)} is used; next <Ago at={rateOpensAt} />
    </>
  );
}

function Lanes() {
  const cursor = useSignal<string | null>(null);
  const query = useQuery(
    `lanes ${cursor.value}`,
    (signal) => get<LaneList>("/lanes", { limit: 50, cursor: cursor.value }, signal),
    { live: true },
  );
  return (
    <Panel title="Lanes" note="jobs of one queue that share a key and its limits">
      <Listing
        query={query}
        rows={({ lanes }) => lanes}
        rowKey={({ queue, lane }: LaneLine) => `${queue} ${lane}`}
        empty={{
          icon: "limits",
          title: "No lane is in use",
          text: (
            <>
              <p>Give a job a lane, and no tenant waits behind another:</p>
              <pre class="code">{`defineJob({ name: "sync", lane: (input) => input.tenant,\n  lanes: { concurrency: 2 }, … });`}</pre>
            </>
          ),
        }}
        columns={[
          {
            head: "Lane",
            cell: (lane) => (
              <>
                <a class="main-link" href={href(`/jobs?queue=${lane.queue}&lane=${seg(lane.lane)}`)}>
                  {lane.lane}
                </a>{" "}
                {lane.paused && <State state="paused" />}
                <span class="sub">{lane.queue}</span>
              </>
            ),
          },
          { head: "Waiting", num: true, cell: ({ waiting }) => <Count of={waiting} /> },
          {
            head: "Running",
            num: true,
            class: "nowrap",
            cell: ({ running, concurrency }) => (
              <>
                {running}{" "}
                {concurrency !== null && <Gauge used={running} of={concurrency} label="Concurrency" />}
              </>
            ),
          },
          { head: "Concurrency", num: true, from: "medium", cell: ({ concurrency }) => concurrency ?? none },
          {
            head: "Rate",
            num: true,
            from: "medium",
            class: "nowrap",
            cell: (lane) => (lane.rate === null ? none : rate(lane.rate)),
          },
          { head: "Weight", num: true, from: "medium", cell: ({ weight }) => weight },
          actionsColumn((lane: LaneLine) => <LaneActions lane={lane} again={query.again} />),
        ]}
        foot={({ cursor: next }) => <Pager cursor={cursor} next={next} />}
      />
    </Panel>
  );
}
