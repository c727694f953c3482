import type { DatabaseHealth } from "../../../src/dashboard/contract.ts";
import { get } from "../api.ts";
import { bytes, duration, number } from "../format.ts";
import { Ago, Head, Loaded } from "../parts.tsx";
import { useQuery } from "../use-query.ts";

const longTransactionMs = 60_000;

export function Database() {
  const query = useQuery("database", (signal) => get<DatabaseHealth>("/database", {}, signal), {
    live: true,
  });
  return (
    <>
      <Head title="Database" note="How the store is doing." />
      <Loaded query={query}>
        {(health) => (
          <>
            {(health.oldestTransactionMs ?? 0) > longTransactionMs && (
              <div class="banner" role="status">
                A transaction has been open for {duration(health.oldestTransactionMs)}: Postgres cannot clean
                up behind it.
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
              <Tile name="Round trip" value={duration(health.roundTripMs)} note="of a small read, just now" />
              <Tile
                name="WAL"
                value={bytes(health.walBytes)}
                note={health.walBytes === null ? "not told by the server" : "not yet checkpointed"}
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
                note={health.listening ? "from other processes" : "not proven now"}
              />
            </div>
            {health.tables.some(({ bytes: size }) => size !== null) && (
              <section class="panel" aria-label="Tables">
                <header>
                  <h2>Tables</h2>
                  {health.dialect === "postgres" && (
                    <span class="muted small">rows as the server last counted them</span>
                  )}
                </header>
                <div class="scroll">
                  <table>
                    <thead>
                      <tr>
                        <th scope="col">Table</th>
                        <th scope="col" class="num">
                          Size
                        </th>
                        <th scope="col" class="num">
                          Rows
                        </th>
                        <th scope="col" class="num">
                          Dead rows
                        </th>
                        <th scope="col" class="num">
                          Vacuumed
                        </th>
                      </tr>
                    </thead>
                    <tbody>
                      {health.tables.map((table) => (
                        <tr key={table.name}>
                          <td class="mono">{table.name}</td>
                          <td class="num">{bytes(table.bytes)}</td>
                          <td class="num">{table.rows === null ? "—" : number(table.rows)}</td>
                          <td class="num">{table.deadRows === null ? "—" : number(table.deadRows)}</td>
                          <td class="num muted">
                            <Ago at={table.vacuumedAt} />
                          </td>
                        </tr>
                      ))}
                    </tbody>
                  </table>
                </div>
              </section>
            )}
          </>
        )}
      </Loaded>
    </>
  );
}

function Tile({ name, value, note }: { name: string; value: string; note: string }) {
  return (
    <div class="tile">
      <span class="name">{name}</span>
      <span class="value">{value}</span>
      <span class="note">{note}</span>
    </div>
  );
}
