// The database: size, connections, oldest transaction, tables, doctor, and resources over time.
import type { DatabaseHealth } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { DoctorPanel } from "../database/doctor-panel.tsx";
import { bytes, duration, number } from "../kit/format.ts";
import { Ago } from "../kit/labels.tsx";
import { Head, Loaded, Panel, Tile } from "../kit/panels.tsx";
import { DatabaseCharts } from "../charts/resource-charts.tsx";
import { type Column, Table } from "../kit/table.tsx";
import { useQuery } from "../data/live-query.ts";

const longTransactionMs = 60_000;

const columns: Column<DatabaseHealth["tables"][number]>[] = [
  { head: "Table", class: "mono", cell: ({ name }) => name },
  { head: "Size", num: true, cell: ({ bytes: size }) => bytes(size) },
  { head: "Rows", num: true, cell: ({ rows }) => (rows === null ? "—" : number(rows)) },
  { head: "Dead rows", num: true, cell: ({ deadRows }) => (deadRows === null ? "—" : number(deadRows)) },
  { head: "Vacuumed", num: true, class: "muted", cell: ({ vacuumedAt }) => <Ago at={vacuumedAt} /> },
];

export function DatabaseScreen() {
  const query = useQuery("database", (signal) => get<DatabaseHealth>("/database", {}, signal), {
    topic: "database",
  });
  return (
    <>
      <Head title="Database" note="Health of the database." />
      <Loaded query={query}>
        {(health) => (
          <>
            {(health.oldestTransactionMs ?? 0) > longTransactionMs && (
              <div class="banner" role="status">
                A transaction has been open for {duration(health.oldestTransactionMs)}. Vacuum cannot remove
                newer dead rows.
              </div>
            )}
            <div class="tiles">
              <Tile
                name={health.dialect === "sqlite" ? "SQLite" : "Postgres"}
                value={health.version.split(" ")[0] ?? ""}
                note="version"
              />
              <Tile
                name="Size"
                value={bytes(health.sizeBytes)}
                note={health.freeBytes === null ? "database" : `${bytes(health.freeBytes)} free inside`}
              />
              <Tile name="Round trip" value={duration(health.roundTripMs)} note="of a small read" />
              <Tile
                name="WAL"
                value={bytes(health.walBytes)}
                note={
                  health.walBytes !== null
                    ? "not yet checkpointed"
                    : health.dialect === "sqlite"
                      ? "in memory"
                      : "unknown"
                }
              />
              <Tile
                name="Connections"
                value={health.connections === null ? "—" : number(health.connections)}
                note={
                  health.maxConnections === null
                    ? "one file, no server"
                    : `of ${number(health.maxConnections)}`
                }
              />
              <Tile
                name="Wake-ups"
                value={health.listening ? "Live" : "Polling"}
                note={health.listening ? "from other processes" : "unverified"}
              />
            </div>
            <DoctorPanel />
            <DatabaseCharts />
            {health.tables.some(({ bytes: size }) => size !== null) && (
              <Panel
                title="Tables"
                note={health.dialect === "postgres" ? "rows estimated by the server" : undefined}
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
