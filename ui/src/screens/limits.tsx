// Holds, breakers, budgets, lanes: what keeps jobs from running on purpose.
import { useSignal } from "@preact/signals";
import type {
  BreakerLine,
  BudgetLine,
  HoldLine,
  LaneLine,
  LaneList,
} from "../../../src/dashboard/contract.ts";
import { Act, Do, Field, openForm } from "../actions.tsx";
import { get, seg, send } from "../api.ts";
import { number, rate } from "../format.ts";
import { Ago, Count, Gauge, Head, State } from "../parts.tsx";
import { href } from "../router.ts";
import { actionsColumn, Listing, Panel } from "../table.tsx";
import { useQuery } from "../use-query.ts";

export function Limits() {
  return (
    <>
      <Head title="Limits" note="What keeps jobs from running on purpose." />
      <Holds />
      <Breakers />
      <Budgets />
      <Lanes />
    </>
  );
}

const none = <span class="muted">—</span>;

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
          { head: "Burst", num: true, cell: ({ burst }) => number(burst) },
          actionsColumn((budget: BudgetLine) => (
            <>
              <Act
                verb="Change"
                on={budget.name}
                needs="limits:set"
                press={() => budgetForm(budget, query.again)}
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
      </div>
    ),
    run: async (fields) => {
      const burst = fields.number("burst");
      await send("PUT", `/budgets/${seg(budget?.name ?? fields.text("name") ?? "")}`, {
        limit: fields.number("limit"),
        per: fields.text("per"),
        ...(burst === undefined ? {} : { burst }),
      });
      return "The budget holds in every process.";
    },
  });
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
          actionsColumn(({ queue, lane, paused }: LaneLine) => (
            <Do
              verb={paused ? "Resume" : "Pause"}
              on={lane}
              needs="limits:set"
              run={() => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, { paused: !paused })}
              done={`${lane} is ${paused ? "resumed" : "paused"}.`}
              then={query.again}
            />
          )),
        ]}
        foot={({ cursor: next }) =>
          (next !== null || cursor.value !== null) && (
            <footer>
              <span class="spring" />
              <button
                type="button"
                class="button small"
                disabled={cursor.value === null}
                onClick={() => (cursor.value = null)}
              >
                First
              </button>
              <button
                type="button"
                class="button small"
                disabled={next === null}
                onClick={() => (cursor.value = next)}
              >
                Next
              </button>
            </footer>
          )
        }
      />
    </Panel>
  );
}
