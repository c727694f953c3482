// Holds: named stops for some or all queues.
import type { HoldLine } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { href } from "../data/router.ts";
import { Act, Do } from "../kit/actions.tsx";
import { Field, openForm } from "../kit/forms.tsx";
import { Ago } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { actionsColumn, Listing } from "../kit/table.tsx";

export function HoldsPanel() {
  const query = useQuery("holds", (signal) => get<{ holds: HoldLine[] }>("/holds", {}, signal), {
    topic: "holds",
  });
  return (
    <Panel
      title="Holds"
      note="a named stop for some or all queues"
      tools={
        <Act
          verb="New hold"
          on=""
          needs="limits:set"
          icon="plus"
          press={() => newHold(query.data?.holds ?? [], query.again)}
        />
      }
    >
      <Listing
        query={query}
        rows={({ holds }) => holds}
        rowKey={({ name }: HoldLine) => name}
        sort="sort-holds"
        empty={{
          icon: "check",
          title: "No holds",
          brief: true,
          text: <p>Set a hold while an external system is down. Jobs wait without using attempts.</p>,
        }}
        columns={[
          {
            head: "Hold",
            by: ({ name }) => name,
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
          {
            head: "Set",
            by: ({ setAt }) => setAt,
            num: true,
            class: "muted",
            cell: ({ setAt }) => <Ago at={setAt} />,
          },
          actionsColumn(({ name, queues, reason }: HoldLine) => (
            <Do
              verb="Clear"
              on={name}
              needs="limits:set"
              run={() => send("DELETE", `/holds/${seg(name)}`)}
              undo={() => setHold(name, queues ?? undefined, reason ?? undefined)}
              done="Hold cleared"
              then={query.again}
            />
          )),
        ]}
      />
    </Panel>
  );
}

function setHold(name: string, queues: readonly string[] | undefined, reason: string | undefined) {
  return send("PUT", `/holds/${seg(name)}`, { queues, reason });
}

function newHold(holds: readonly HoldLine[], again: () => void): void {
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
      await setHold(fields.text("name") ?? "", queues, fields.text("reason"));
      return "Hold set";
    },
    undo: (fields) => {
      const name = fields.text("name") ?? "";
      const before = holds.find((one) => one.name === name);
      if (before === undefined) return () => send("DELETE", `/holds/${seg(name)}`);
      return () => setHold(name, before.queues ?? undefined, before.reason ?? undefined);
    },
  });
}
