// How the database is: size, connections, the oldest transaction, tables; what the doctor says;
// and how it was, as far as workers have measured.
import type { DatabaseHealth } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { DoctorPanel } from "../database/doctor-panel.tsx";
import { bytes, duration, number } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { Head, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { DatabaseCharts } from "../charts/resource-charts.tsx";
import { type Column, Table } from "../kit/table.tsx";
import { t } from "../language/translation.ts";
import { useQuery } from "../data/live-query.ts";

const longTransactionMs = 60_000;

const columns: Column<DatabaseHealth["tables"][number]>[] = [
  { head: t("Table"), class: "mono", cell: ({ name }) => name },
  { head: t("Size"), num: true, cell: ({ bytes: size }) => bytes(size) },
  { head: t("Rows"), num: true, cell: ({ rows }) => (rows === null ? "—" : number(rows)) },
  { head: t("Dead rows"), num: true, cell: ({ deadRows }) => (deadRows === null ? "—" : number(deadRows)) },
  { head: t("Vacuumed"), num: true, class: "muted", cell: ({ vacuumedAt }) => <Ago at={vacuumedAt} /> },
];

export function DatabaseScreen() {
  const query = useQuery("database", (signal) => get<DatabaseHealth>("/database", {}, signal), {
    topic: "database",
  });
  return (
    <>
      <Head title={t("Database")} note={t("How the store is doing.")} />
      <Loaded query={query}>
        {(health) => (
          <>
            {(health.oldestTransactionMs ?? 0) > longTransactionMs && (
              <div class="banner" role="status">
                {t(
                  "A transaction has been open for {oldestTransactionMs}: Postgres cannot clean up behind it.",
                  { oldestTransactionMs: duration(health.oldestTransactionMs) },
                )}
              </div>
            )}
            <div class="tiles">
              <Tile
                name={health.dialect === "sqlite" ? "SQLite" : "Postgres"}
                value={health.version.split(" ")[0] ?? ""}
                note={t("version")}
              />
              <Tile
                name={t("Size")}
                value={bytes(health.sizeBytes)}
                note={
                  health.freeBytes === null
                    ? t("database")
                    : t("{freeBytes} free inside", { freeBytes: bytes(health.freeBytes) })
                }
              />
              <Tile
                name={t("Round trip")}
                value={duration(health.roundTripMs)}
                note={t("of a small read, just now")}
              />
              <Tile
                name={t("WAL")}
                value={bytes(health.walBytes)}
                note={
                  health.walBytes !== null
                    ? t("not yet checkpointed")
                    : health.dialect === "sqlite"
                      ? t("in memory")
                      : t("not told by the server")
                }
              />
              <Tile
                name={t("Connections")}
                value={health.connections === null ? "—" : number(health.connections)}
                note={
                  health.maxConnections === null
                    ? t("one file, no server")
                    : t("of {maxConnections}", { maxConnections: number(health.maxConnections) })
                }
              />
              <Tile
                name={t("Wake-ups")}
                value={health.listening ? t("Live") : t("Polling")}
                note={health.listening ? t("from other processes") : t("not proven now")}
              />
            </div>
            <DoctorPanel />
            <DatabaseCharts />
            {health.tables.some(({ bytes: size }) => size !== null) && (
              <Panel
                title={t("Tables")}
                note={health.dialect === "postgres" ? t("rows as the server last counted them") : undefined}
              >
                <Table rows={health.tables} rowKey={({ name }) => name} columns={columns} />
              </Panel>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}
