// Dead and retrying jobs by what they failed of: one line a cause, however many jobs.
import type { ErrorGroup, ErrorGroups } from "../../../src/dashboard/contract.ts";
import { Act } from "../actions.tsx";
import { get, send } from "../api.ts";
import { startBulk } from "../bulk.tsx";
import { number } from "../format.ts";
import { Ago, attempt, Head } from "../parts.tsx";
import { go, href } from "../router.ts";
import { actionsColumn, type Column, Listing } from "../table.tsx";
import { useQuery } from "../use-query.ts";

export function Errors() {
  const query = useQuery("errors", (signal) => get<ErrorGroups>("/errors", {}, signal), { live: true });
  return (
    <>
      <Head title="Dead jobs" note="Grouped by what they failed of. Try one, then retry the rest." />
      <section class="panel" aria-label="Errors">
        <Listing
          query={query}
          rows={({ groups }) => groups}
          rowKey={({ group, queue }: ErrorGroup) => group + queue}
          empty={{
            icon: "check",
            title: "Nothing is dead",
            text: (
              <p>
                Jobs that used up their attempts come here, grouped by error, until their retention passes.
              </p>
            ),
          }}
          columns={columnsOf(query.again)}
          foot={({ cut, searched }) =>
            cut && (
              <footer>
                Counted among the newest {number(searched)} jobs that ended unhappily. Open a group to see
                them all.
              </footer>
            )
          }
        />
      </section>
    </>
  );
}

function columnsOf(again: () => void): Column<ErrorGroup>[] {
  return [
    {
      head: "Error",
      style: { maxWidth: "460px" },
      cell: (group) => (
        <>
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
        </>
      ),
    },
    { head: "Dead", num: true, cell: ({ dead }) => <b>{number(dead)}</b> },
    { head: "Retrying", num: true, from: "medium", class: "muted", cell: ({ retrying }) => number(retrying) },
    { head: "1 h", num: true, from: "wide", class: "muted", cell: ({ lastHour }) => number(lastHour) },
    { head: "24 h", num: true, from: "wide", class: "muted", cell: ({ lastDay }) => number(lastDay) },
    { head: "First", num: true, from: "medium", class: "muted", cell: ({ firstAt }) => <Ago at={firstAt} /> },
    { head: "Last", num: true, from: "medium", class: "muted", cell: ({ lastAt }) => <Ago at={lastAt} /> },
    actionsColumn((group) => group.dead > 0 && <Actions group={group} again={again} />),
  ];
}

function Actions({ group, again }: { group: ErrorGroup; again: () => void }) {
  const filter = {
    state: ["dead" as const],
    queue: [group.queue],
    name: [group.name],
    errorGroup: group.group,
  };
  return (
    <>
      <Act
        verb="Try one"
        on={group.name}
        needs="jobs:retry"
        quiet
        press={() =>
          void attempt("One of them runs again: see what becomes of it.", () =>
            send("POST", `/jobs/${group.sample}/retry`),
          ).then((ok) => ok && go(`/jobs/${group.sample}`))
        }
      />
      <Act
        verb="Retry all"
        on={group.name}
        needs="jobs:retry"
        press={() => startBulk("retry", filter, again)}
      />
      <Act
        verb="Delete"
        on={group.name}
        needs="jobs:delete"
        danger
        press={() => startBulk("delete", filter, again)}
      />
    </>
  );
}
