// Holds, breakers, budgets, lanes.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { BreakerLine, BudgetLine, HoldLine, LaneList } from "../../../src/dashboard/contract.ts";
import { get, seg, send } from "../api.ts";
import { duration, number } from "../format.ts";
import { Icon } from "../icons.tsx";
import { may } from "../live.ts";
import { Ago, attempt, confirm, Count, Empty, Gauge, Head, Loaded, showDialog, State } from "../parts.tsx";
import { href } from "../router.ts";
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

function Holds() {
  const query = useQuery("holds", (signal) => get<{ holds: HoldLine[] }>("/holds", {}, signal), {
    live: true,
  });
  return (
    <section class="panel" aria-label="Holds">
      <header>
        <h2>Holds</h2>
        <span class="muted small">a named stop over some queues, or all</span>
        <span class="spring" />
        {may("limits:set") && (
          <button
            type="button"
            class="button small"
            onClick={() => showDialog("New hold", (close) => <NewHold close={close} again={query.again} />)}
          >
            <Icon name="plus" size={13} /> New hold
          </button>
        )}
      </header>
      <Loaded query={query}>
        {({ holds }) =>
          holds.length === 0 ? (
            <Empty icon="check" title="Nothing is held">
              <p>
                Set a hold when something outside is broken (“session expired”): jobs wait, and keep their
                attempts.
              </p>
            </Empty>
          ) : (
            <div class="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Hold</th>
                    <th scope="col">Queues</th>
                    <th scope="col" class="num">
                      Set
                    </th>
                    <th scope="col">
                      <span class="hidden-text">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {holds.map((hold) => (
                    <tr key={hold.name}>
                      <td>
                        <b>{hold.name}</b>
                        {hold.reason !== null && <span class="sub">{hold.reason}</span>}
                      </td>
                      <td>
                        {hold.queues === null ? (
                          <span class="tag warn">every queue</span>
                        ) : (
                          hold.queues.map((queue) => (
                            <a key={queue} class="tag" href={href(`/queues/${queue}`)}>
                              {queue}
                            </a>
                          ))
                        )}
                      </td>
                      <td class="num muted">
                        <Ago at={hold.setAt} />
                      </td>
                      <td class="right">
                        {may("limits:set") && (
                          <button
                            type="button"
                            class="button small"
                            aria-label={`Clear ${hold.name}`}
                            onClick={() =>
                              void attempt("Cleared.", () => send("DELETE", `/holds/${seg(hold.name)}`)).then(
                                query.again,
                              )
                            }
                          >
                            Clear
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}

function NewHold({ close, again }: { close: () => void; again: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(form.current ?? undefined);
        const text = (name: string): string => String(data.get(name) ?? "").trim();
        const queues = text("queues")
          .split(/[\s,]+/)
          .filter((one) => one !== "");
        void attempt("The hold is set.", () =>
          send("PUT", `/holds/${seg(text("name"))}`, {
            ...(queues.length === 0 ? {} : { queues }),
            ...(text("reason") === "" ? {} : { reason: text("reason") }),
          }),
        ).then((ok) => {
          if (!ok) return;
          close();
          again();
        });
      }}
    >
      <header>
        <h2>New hold</h2>
      </header>
      <div class="content">
        <label class="field">
          <span>Name</span>
          <input
            class="input"
            name="name"
            required
            placeholder="session-expired"
            spellcheck={false}
            autocomplete="off"
          />
        </label>
        <label class="field">
          <span>Queues</span>
          <input class="input" name="queues" placeholder="every queue; or mail, crawl" spellcheck={false} />
        </label>
        <label class="field">
          <span>Reason</span>
          <input class="input" name="reason" placeholder="shown to whoever asks why" />
        </label>
      </div>
      <footer>
        <button type="button" class="button" onClick={close}>
          Not now
        </button>
        <button type="submit" class="button danger fill">
          Hold
        </button>
      </footer>
    </form>
  );
}

function Breakers() {
  const query = useQuery("breakers", (signal) => get<{ breakers: BreakerLine[] }>("/breakers", {}, signal), {
    live: true,
  });
  return (
    <section class="panel" aria-label="Breakers">
      <header>
        <h2>Breakers</h2>
        <span class="muted small">open after failures in a row; one probe at a time closes them</span>
      </header>
      <Loaded query={query}>
        {({ breakers }) =>
          breakers.length === 0 ? (
            <Empty icon="check" title="No breaker has tripped" />
          ) : (
            <div class="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Breaker</th>
                    <th scope="col">State</th>
                    <th scope="col" class="num">
                      Failures in a row
                    </th>
                    <th scope="col" class="num">
                      Next probe
                    </th>
                    <th scope="col">
                      <span class="hidden-text">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {breakers.map((breaker) => (
                    <tr key={breaker.key}>
                      <td>
                        <b>{breaker.key}</b>
                        {breaker.error !== null && <span class="sub clip">{breaker.error}</span>}
                      </td>
                      <td>
                        <State state={breaker.state} />
                      </td>
                      <td class="num">{number(breaker.failures)}</td>
                      <td class="num muted">
                        {breaker.probing ? "running" : <Ago at={breaker.openUntil} />}
                      </td>
                      <td class="right">
                        {breaker.state !== "closed" && may("limits:set") && (
                          <button
                            type="button"
                            class="button small"
                            aria-label={`Reset ${breaker.key}`}
                            onClick={() =>
                              void attempt("Closed.", () =>
                                send("POST", `/breakers/${seg(breaker.key)}/reset`),
                              ).then(query.again)
                            }
                          >
                            Reset
                          </button>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}

function Budgets() {
  const query = useQuery("budgets", (signal) => get<{ budgets: BudgetLine[] }>("/budgets", {}, signal), {
    live: true,
  });
  return (
    <section class="panel" aria-label="Budgets">
      <header>
        <h2>Budgets</h2>
        <span class="muted small">rates over the whole cluster</span>
      </header>
      <Loaded query={query}>
        {({ budgets }) =>
          budgets.length === 0 ? (
            <Empty icon="limits" title="No budget is set" />
          ) : (
            <div class="scroll">
              <table>
                <thead>
                  <tr>
                    <th scope="col">Budget</th>
                    <th scope="col" class="num">
                      Left
                    </th>
                    <th scope="col" class="num">
                      Limit
                    </th>
                    <th scope="col" class="num">
                      Burst
                    </th>
                    <th scope="col">
                      <span class="hidden-text">Actions</span>
                    </th>
                  </tr>
                </thead>
                <tbody>
                  {budgets.map((budget) => (
                    <tr key={budget.name}>
                      <td>
                        <b>{budget.name}</b> {budget.tuned && <span class="tag">set by hand</span>}
                      </td>
                      <td class="num nowrap">
                        {number(Math.floor(budget.tokens))}{" "}
                        <Gauge used={budget.tokens} of={budget.burst} label="Left" />
                      </td>
                      <td class="num nowrap">
                        {number(budget.limit)} per {duration(budget.perMs)}
                      </td>
                      <td class="num">{number(budget.burst)}</td>
                      <td class="right nowrap">
                        {may("limits:set") && (
                          <>
                            <button
                              type="button"
                              class="button small"
                              aria-label={`Change ${budget.name}`}
                              onClick={() =>
                                showDialog(`Budget ${budget.name}`, (close) => (
                                  <EditBudget budget={budget} close={close} again={query.again} />
                                ))
                              }
                            >
                              Change
                            </button>{" "}
                            <button
                              type="button"
                              class="button small danger"
                              aria-label={`Drain ${budget.name}`}
                              onClick={() =>
                                confirm({
                                  title: `Drain ${budget.name}?`,
                                  text: "Nothing is granted until it refills.",
                                  verb: "Drain",
                                  danger: true,
                                  run: () =>
                                    send("POST", `/budgets/${seg(budget.name)}/drain`).then(query.again),
                                  done: "Drained.",
                                })
                              }
                            >
                              Drain
                            </button>
                          </>
                        )}
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          )
        }
      </Loaded>
    </section>
  );
}

function EditBudget({ budget, close, again }: { budget: BudgetLine; close: () => void; again: () => void }) {
  const form = useRef<HTMLFormElement>(null);
  return (
    <form
      ref={form}
      method="dialog"
      onSubmit={(event) => {
        event.preventDefault();
        const data = new FormData(form.current ?? undefined);
        void attempt("The budget holds in every process.", () =>
          send("PUT", `/budgets/${seg(budget.name)}`, {
            limit: Number(data.get("limit")),
            per: String(data.get("per")),
            burst: Number(data.get("burst")),
          }),
        ).then((ok) => {
          if (!ok) return;
          close();
          again();
        });
      }}
    >
      <header>
        <h2>Budget {budget.name}</h2>
      </header>
      <div class="content grid two">
        <label class="field">
          <span>Limit</span>
          <input class="input" name="limit" inputMode="decimal" defaultValue={budget.limit} />
        </label>
        <label class="field">
          <span>Per</span>
          <input class="input" name="per" defaultValue={`${budget.perMs / 1_000}s`} />
        </label>
        <label class="field">
          <span>Burst</span>
          <input class="input" name="burst" inputMode="decimal" defaultValue={budget.burst} />
        </label>
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

function Lanes() {
  const cursor = useSignal<string | null>(null);
  const query = useQuery(
    `lanes ${cursor.value}`,
    (signal) => get<LaneList>("/lanes", { limit: 50, cursor: cursor.value }, signal),
    { live: true },
  );
  const set = (queue: string, lane: string, change: object, done: string): void => {
    void attempt(done, () => send("PATCH", `/lanes/${seg(queue)}/${seg(lane)}`, change)).then(query.again);
  };
  return (
    <section class="panel" aria-label="Lanes">
      <header>
        <h2>Lanes</h2>
        <span class="muted small">jobs of one queue that share a key and its limits</span>
      </header>
      <Loaded query={query}>
        {({ lanes, cursor: next }) =>
          lanes.length === 0 ? (
            <Empty icon="limits" title="No lane is in use" />
          ) : (
            <>
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Lane</th>
                      <th scope="col" class="num">
                        Waiting
                      </th>
                      <th scope="col" class="num">
                        Running
                      </th>
                      <th scope="col" class="num">
                        Concurrency
                      </th>
                      <th scope="col" class="num">
                        Rate
                      </th>
                      <th scope="col" class="num">
                        Weight
                      </th>
                      <th scope="col">
                        <span class="hidden-text">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {lanes.map((lane) => (
                      <tr key={`${lane.queue} ${lane.lane}`}>
                        <td>
                          <a
                            class="main-link"
                            href={href(`/jobs?queue=${lane.queue}&lane=${seg(lane.lane)}`)}
                          >
                            {lane.lane}
                          </a>{" "}
                          {lane.paused && <State state="paused" />}
                          <span class="sub">{lane.queue}</span>
                        </td>
                        <td class="num">
                          <Count of={lane.waiting} />
                        </td>
                        <td class="num nowrap">
                          {lane.running}{" "}
                          {lane.concurrency !== null && (
                            <Gauge used={lane.running} of={lane.concurrency} label="Concurrency" />
                          )}
                        </td>
                        <td class="num">{lane.concurrency ?? <span class="muted">—</span>}</td>
                        <td class="num nowrap">
                          {lane.rate === null ? (
                            <span class="muted">—</span>
                          ) : (
                            `${number(lane.rate.limit)} per ${duration(lane.rate.perMs)}`
                          )}
                        </td>
                        <td class="num">{lane.weight}</td>
                        <td class="right">
                          {may("limits:set") && (
                            <button
                              type="button"
                              class="button small"
                              aria-label={`${lane.paused ? "Resume" : "Pause"} ${lane.lane}`}
                              onClick={() =>
                                set(
                                  lane.queue,
                                  lane.lane,
                                  { paused: !lane.paused },
                                  `${lane.lane} is ${lane.paused ? "resumed" : "paused"}.`,
                                )
                              }
                            >
                              {lane.paused ? "Resume" : "Pause"}
                            </button>
                          )}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
              {(next !== null || cursor.value !== null) && (
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
              )}
            </>
          )
        }
      </Loaded>
    </section>
  );
}
