// Budgets: what is left of each, when it gives again, and who waits for it.
import type { BudgetLine, LimitUse } from "../../../src/dashboard/api/contract.ts";
import { Act, type Actions, doing } from "../kit/actions.tsx";
import { Field, openForm } from "../kit/forms.tsx";
import { get, seg, send } from "../data/api.ts";
import { Bars } from "../charts/bars.tsx";
import { temporaryLimitChanges, refreshingLimits, DurationField, durationOf } from "./temporary-limit.tsx";
import { amount, clockTime, duration, number, rate, written } from "../kit/format.ts";
import { Count, Gauge } from "../kit/labels.tsx";
import { now } from "../data/page-clock.ts";
import { refillOf, tokensAt } from "./budget-refill.ts";
import { Listing, menuColumn } from "../kit/table.tsx";
import { Panel } from "../kit/panels.tsx";
import { t } from "../language/translation.ts";
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
      title={t("Budgets")}
      note={t("rates over the whole cluster")}
      tools={
        <Act
          verb={t("New budget")}
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
          title: t("No budget is set"),
          text: (
            <>
              <p>{t("A budget is a rate that all processes share. Jobs take from it as they run:")}</p>
              <pre class="code">{`await hf.budgets.set("slack", { limit: 50, per: "1m" });\nawait ctx.budget("slack");`}</pre>
            </>
          ),
        }}
        columns={[
          {
            head: t("Budget"),
            by: ({ name }) => name,
            cell: ({ name, tuned }) => (
              <>
                <b>{name}</b> {tuned && <span class="tag">{t("set by hand")}</span>}
              </>
            ),
          },
          {
            head: t("Left"),
            by: (budget) => tokensAt(budget, now.value),
            num: true,
            class: "nowrap",
            cell: (budget) => {
              const left = tokensAt(budget, now.value);
              return (
                <>
                  {number(Math.floor(left))} <Gauge used={left} of={budget.burst} label={t("Left")} left />
                  <span class="sub">{refillWords(budget, now.value)}</span>
                </>
              );
            },
          },
          {
            head: t("Waiting"),
            by: ({ waiting }) => waiting,
            num: true,
            from: "medium",
            cell: ({ waiting }) => (waiting === null ? none : <Count of={waiting} />),
          },
          {
            head: t("Limit"),
            by: ({ limit, perMs }) => limit / perMs,
            num: true,
            class: "nowrap",
            cell: (budget) => rate(budget),
          },
          {
            head: t("Burst"),
            by: ({ burst }) => burst,
            num: true,
            from: "medium",
            cell: ({ burst }) => number(burst),
          },
          {
            head: t("Last 15 min"),
            from: "medium",
            cell: ({ name, burst }) => {
              const then = use.data?.budgets[name];
              if (then === undefined || then.every((n) => n === null)) return none;
              const used = then.map((n) => (n === null ? 0 : Math.max(0, burst - n)));
              return (
                <Bars
                  of={used}
                  most={burst}
                  label={t("Used of the burst")}
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
      verb: t("Change"),
      needs: "limits:set",
      icon: "gear",
      press: () => budgetForm(budget, refreshingLimits(again)),
    },
    tuned &&
      doing({
        ...change,
        verb: t("Reset"),
        icon: "retry",
        title: t("Back to the code's numbers"),
        run: () => send("POST", `/budgets/${seg(name)}/reset`),
        done: t("The code's numbers count again."),
        then: refreshingLimits(again),
      }),
    doing({
      ...change,
      verb: t("Drain"),
      danger: true,
      icon: "drain",
      ask: t("Nothing is granted until it refills."),
      run: () => send("POST", `/budgets/${seg(name)}/drain`),
      done: t("Drained."),
      then: again,
    }),
    doing({
      ...change,
      verb: t("Remove"),
      danger: true,
      icon: "trash",
      ask: t("What takes from it gets nothing until somebody sets it again."),
      run: () => send("DELETE", `/budgets/${seg(name)}`),
      done: t("Removed."),
      then: refreshingLimits(again),
    }),
  ];
}

/** Ticks with the page's clock, between two looks as well. */
function refillWords(budget: BudgetLine, at: number): string {
  const { nextMs, fullMs } = refillOf(budget, at);
  if (fullMs === 0) return t("full");
  // Whole seconds: the page ticks by them.
  const seconds = (ms: number): string => {
    const whole = Math.ceil(ms / 1_000);
    return whole < 60 ? amount(whole, "second") : duration(whole * 1_000);
  };
  return nextMs === null
    ? t("full in {fullMs}", { fullMs: seconds(fullMs) })
    : t("next in {nextMs}, full in {fullMs}", { nextMs: seconds(nextMs), fullMs: seconds(fullMs) });
}

function budgetForm(budget: BudgetLine | null, again: () => void): void {
  openForm({
    title: budget === null ? t("New budget") : t("Budget {name}", { name: budget.name }),
    verb: t("Save"),
    then: again,
    body: (
      <div class="grid two">
        {budget === null && <Field label={t("Name")} name="name" required placeholder="slack" />}
        <Field
          label={t("Limit")}
          name="limit"
          inputMode="decimal"
          required
          defaultValue={budget?.limit ?? ""}
        />
        <Field
          label={t("Per")}
          name="per"
          required
          placeholder="1m"
          defaultValue={budget === null ? "" : written(budget.perMs)}
        />
        <Field
          label={t("Burst")}
          name="burst"
          inputMode="decimal"
          placeholder={t("the limit")}
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
      return t("The budget holds in every process.");
    },
  });
}
