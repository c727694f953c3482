// Budgets: remaining tokens, next refill, waiting jobs.
import type { BudgetLine, LimitUse } from "../../../src/dashboard/api/contract.ts";
import { Act, type Actions, doing } from "../kit/actions.tsx";
import { Field, openForm } from "../kit/forms.tsx";
import { get, seg, send } from "../data/api.ts";
import { Bars } from "../charts/bars.tsx";
import { temporaryLimitChanges, refreshingLimits, DurationField, durationOf } from "./temporary-limit.tsx";
import { clockTime, duration, number, rate, written } from "../kit/format.ts";
import { Count, Gauge } from "../kit/labels.tsx";
import { now } from "../data/page-clock.ts";
import { refillOf, tokensAt } from "./budget-refill.ts";
import { Listing, menuColumn } from "../kit/table.tsx";
import { Panel } from "../kit/panels.tsx";
import { useQuery } from "../data/live-query.ts";

const none = <span class="muted">—</span>;

export function BudgetsPanel() {
  const use = useQuery("budget use", (signal) => get<LimitUse>("/limits/use", { minutes: 15 }, signal), {
    topic: "limits",
  });
  const query = useQuery(
    `budgets ${temporaryLimitChanges.value}`,
    (signal) => get<{ budgets: BudgetLine[] }>("/budgets", {}, signal),
    {
      topic: "budgets",
    },
  );
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
        sort="sort-budgets"
        empty={{
          icon: "limits",
          title: "No budgets",
          text: (
            <>
              <p>A budget limits a rate over all processes. Jobs take tokens while they run:</p>
              <pre class="code">{`await hf.budgets.set("slack", { limit: 50, per: "1m" });\nawait ctx.budget("slack");`}</pre>
            </>
          ),
        }}
        columns={[
          {
            head: "Budget",
            by: ({ name }) => name,
            cell: ({ name, tuned }) => (
              <>
                <b>{name}</b> {tuned && <span class="tag">set by hand</span>}
              </>
            ),
          },
          {
            head: "Left",
            by: (budget) => tokensAt(budget, now.value),
            num: true,
            class: "nowrap",
            cell: (budget) => {
              const left = tokensAt(budget, now.value);
              return (
                <>
                  {number(Math.floor(left))} <Gauge used={left} of={budget.burst} label="Left" left />
                  <span class="sub">{refillWords(budget, now.value)}</span>
                </>
              );
            },
          },
          {
            head: "Waiting",
            by: ({ waiting }) => waiting,
            num: true,
            from: "medium",
            cell: ({ waiting }) => (waiting === null ? none : <Count of={waiting} />),
          },
          {
            head: "Limit",
            by: ({ limit, perMs }) => limit / perMs,
            num: true,
            class: "nowrap",
            cell: (budget) => rate(budget),
          },
          {
            head: "Burst",
            by: ({ burst }) => burst,
            num: true,
            from: "medium",
            cell: ({ burst }) => number(burst),
          },
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
          menuColumn(
            ({ name }: BudgetLine) => name,
            (budget) => budgetActions(budget, query.again),
          ),
        ]}
      />
    </Panel>
  );
}

function budgetActions(budget: BudgetLine, again: () => void): Actions {
  const { name, tuned } = budget;
  const change = { on: name, needs: "limits:set" } as const;
  return [
    {
      verb: "Change",
      needs: "limits:set",
      icon: "gear",
      press: () => budgetForm(budget, refreshingLimits(again)),
    },
    tuned &&
      doing({
        ...change,
        verb: "Reset",
        icon: "retry",
        title: "Restore the limit set in code",
        run: () => send("POST", `/budgets/${seg(name)}/reset`),
        done: "Budget reset",
        then: refreshingLimits(again),
      }),
    doing({
      ...change,
      verb: "Drain",
      danger: true,
      icon: "drain",
      ask: "Removes all tokens. Nothing is granted until the budget refills.",
      run: () => send("POST", `/budgets/${seg(name)}/drain`),
      done: "Budget drained",
      then: again,
    }),
    doing({
      ...change,
      verb: "Remove",
      danger: true,
      icon: "trash",
      ask: "Jobs that use this budget get nothing until it is set again.",
      run: () => send("DELETE", `/budgets/${seg(name)}`),
      done: "Removed",
      then: refreshingLimits(again),
    }),
  ];
}

/** Updated every second, also between two answers. */
function refillWords(budget: BudgetLine, at: number): string {
  const { nextMs, fullMs } = refillOf(budget, at);
  if (fullMs === 0) return "full";
  // Whole seconds, because the page's clock ticks by seconds.
  const seconds = (ms: number): string => {
    const whole = Math.ceil(ms / 1_000);
    return whole < 60 ? `${whole} s` : duration(whole * 1_000);
  };
  return nextMs === null
    ? `full in ${seconds(fullMs)}`
    : `next in ${seconds(nextMs)}, full in ${seconds(fullMs)}`;
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
          defaultValue={budget === null ? "" : written(budget.perMs)}
        />
        <Field
          label="Burst"
          name="burst"
          inputMode="decimal"
          placeholder="the limit"
          defaultValue={budget?.burst ?? ""}
        />
        {budget !== null && <DurationField />}
      </div>
    ),
    run: async (fields) => {
      const burst = fields.number("burst");
      await send("PUT", `/budgets/${seg(budget?.name ?? fields.text("name") ?? "")}`, {
        limit: fields.number("limit"),
        per: fields.text("per"),
        ...(burst === undefined ? {} : { burst }),
        ...durationOf(fields),
      });
      return "Budget saved";
    },
  });
}
