// Dead and retrying jobs by what they failed of: one line a cause, however many jobs.
import type { ErrorGroupLine, ErrorGroups } from "../../../src/dashboard/contract.ts";
import { get, send } from "../api.ts";
import { mayDo, startBulk } from "../bulk.tsx";
import { number } from "../format.ts";
import { Ago, attempt, Empty, Head, Loaded } from "../parts.tsx";
import { go, href } from "../router.ts";
import { useQuery } from "../use-query.ts";

export function Errors() {
  const query = useQuery("errors", (signal) => get<ErrorGroups>("/errors", {}, signal), { live: true });
  const filterOf = (group: ErrorGroupLine) => ({
    state: ["dead" as const],
    queue: [group.queue],
    name: [group.name],
    errorGroup: group.group,
  });
  return (
    <>
      <Head title="Dead jobs" note="Grouped by what they failed of. Try one, then retry the rest." />
      <Loaded query={query}>
        {({ groups, cut, searched }) => (
          <section class="panel" aria-label="Errors">
            {groups.length === 0 ? (
              <Empty icon="check" title="Nothing is dead">
                <p>
                  Jobs that used up their attempts come here, grouped by error, until their retention passes.
                </p>
              </Empty>
            ) : (
              <div class="scroll">
                <table>
                  <thead>
                    <tr>
                      <th scope="col">Error</th>
                      <th scope="col" class="num">
                        Dead
                      </th>
                      <th scope="col" class="num medium-only">
                        Retrying
                      </th>
                      <th scope="col" class="num wide-only">
                        1 h
                      </th>
                      <th scope="col" class="num wide-only">
                        24 h
                      </th>
                      <th scope="col" class="num medium-only">
                        First
                      </th>
                      <th scope="col" class="num medium-only">
                        Last
                      </th>
                      <th scope="col">
                        <span class="hidden-text">Actions</span>
                      </th>
                    </tr>
                  </thead>
                  <tbody>
                    {groups.map((group) => (
                      <tr key={group.group + group.queue}>
                        <td style={{ maxWidth: "460px" }}>
                          <a
                            class="main-link clip"
                            style={{ display: "block" }}
                            href={href(`/jobs?errorGroup=${group.group}&queue=${group.queue}`)}
                          >
                            {group.message ?? "(hidden)"}
                          </a>
                          <span class="sub">
                            {group.name} in {group.queue}
                          </span>
                        </td>
                        <td class="num">
                          <b>{number(group.dead)}</b>
                        </td>
                        <td class="num muted medium-only">{number(group.retrying)}</td>
                        <td class="num muted wide-only">{number(group.lastHour)}</td>
                        <td class="num muted wide-only">{number(group.lastDay)}</td>
                        <td class="num muted medium-only">
                          <Ago at={group.firstAt} />
                        </td>
                        <td class="num muted medium-only">
                          <Ago at={group.lastAt} />
                        </td>
                        <td class="right nowrap">
                          {group.dead > 0 && mayDo("retry") && (
                            <>
                              <button
                                type="button"
                                class="button small quiet wide-only"
                                onClick={() =>
                                  void attempt("One of them runs again: see what becomes of it.", () =>
                                    send("POST", `/jobs/${group.sample}/retry`),
                                  ).then((ok) => ok && go(`/jobs/${group.sample}`))
                                }
                              >
                                Try one
                              </button>{" "}
                              <button
                                type="button"
                                class="button small"
                                onClick={() => startBulk("retry", filterOf(group), query.again)}
                              >
                                Retry all
                              </button>{" "}
                            </>
                          )}
                          {group.dead > 0 && mayDo("delete") && (
                            <button
                              type="button"
                              class="button small danger"
                              onClick={() => startBulk("delete", filterOf(group), query.again)}
                            >
                              Delete
                            </button>
                          )}
                        </td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </div>
            )}
            {cut && (
              <footer>
                Counted among the newest {number(searched)} jobs that ended unhappily. Open a group to see
                them all.
              </footer>
            )}
          </section>
        )}
      </Loaded>
    </>
  );
}
