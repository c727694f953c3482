// Holds: named stops over some queues, or all.
import type { HoldLine } from "../../../src/dashboard/api/contract.ts";
import { get, seg, send } from "../data/api.ts";
import { useQuery } from "../data/live-query.ts";
import { href } from "../data/router.ts";
import { Act, Do } from "../kit/actions.tsx";
import { Field, openForm } from "../kit/forms.tsx";
import { Ago } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";
import { actionsColumn, Listing } from "../kit/table.tsx";
import { t } from "../language/translation.ts";

export function HoldsPanel() {
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
