// A job's log: pages newest first, lines oldest first. The server filters by level and text.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { LogList } from "../../../src/dashboard/api/contract.ts";
import { get } from "../data/api.ts";
import { clockSecond, instant, number, plural } from "../kit/format.ts";
import { Empty, Loaded, Panel } from "../kit/panels.tsx";
import { params, setParams } from "../data/router.ts";
import { useQuery } from "../data/live-query.ts";

const levels = ["trace", "debug", "info", "warn", "error"] as const;

export function JobLog({ id }: { id: string }) {
  const level = params.value.get("level") ?? "trace";
  const search = params.value.get("find") ?? "";
  const older = useSignal<{ of: string; lines: LogList["lines"]; earlier: string | null } | null>(null);
  const asked = { level: level === "trace" ? null : level, search };
  const key = JSON.stringify([id, asked]);
  const query = useQuery(`log ${key}`, (signal) => get<LogList>(`/jobs/${id}/log`, asked, signal), {
    sign: `log:${id}`,
  });
  const typed = useRef<ReturnType<typeof setTimeout> | null>(null);
  useEffect(
    () => () => {
      if (typed.current !== null) clearTimeout(typed.current);
    },
    [],
  );
  const before = older.value?.of === key ? older.value : null;
  const filtered = level !== "trace" || search !== "";
  return (
    <Panel
      title="Log"
      note={
        query.data === null
          ? ""
          : filtered
            ? `${number(query.data.matched)} of ${plural(query.data.kept, "line")}`
            : plural(query.data.kept, "line")
      }
      tools={
        <>
          <label class="row tight small">
            <span class="hidden-text">Level</span>
            <select
              class="input"
              value={level}
              onChange={(event) =>
                setParams({ level: event.currentTarget.value === "trace" ? null : event.currentTarget.value })
              }
            >
              {levels.map((one) => (
                <option key={one} value={one}>
                  {one === "trace" ? "all levels" : `${one} and louder`}
                </option>
              ))}
            </select>
          </label>
          <input
            class="input log-find"
            type="search"
            aria-label="Text in the log"
            placeholder="Find in the log"
            defaultValue={search}
            spellcheck={false}
            onInput={(event) => {
              const { value } = event.currentTarget;
              if (typed.current !== null) clearTimeout(typed.current);
              typed.current = setTimeout(() => setParams({ find: value }, { replace: true }), 200);
            }}
          />
        </>
      }
    >
      <Loaded query={query}>
        {(log) => {
          if (log.kept === 0) return <NoLog />;
          if (log.matched === 0)
            return (
              <Empty icon="search" title="No matching lines">
                <p>{plural(log.kept, "line")} of this job are kept.</p>
              </Empty>
            );
          const lines = before === null ? log.lines : merged(before.lines, log.lines);
          const earlier = before === null ? log.earlier : before.earlier;
          return (
            <>
              {earlier !== null && (
                <div class="more">
                  <button
                    type="button"
                    class="button small"
                    onClick={() =>
                      void get<LogList>(`/jobs/${id}/log`, { ...asked, before: earlier }).then((page) => {
                        older.value = { of: key, lines: merged(page.lines, lines), earlier: page.earlier };
                      })
                    }
                  >
                    Earlier lines
                  </button>
                </div>
              )}
              <Lines lines={lines} />
            </>
          );
        }}
      </Loaded>
    </Panel>
  );
}

function Lines({ lines }: { lines: LogList["lines"] }) {
  return (
    <div class="scroll log" tabIndex={0} role="region" aria-label="Log lines">
      <table>
        <thead class="hidden-text">
          <tr>
            <th scope="col">Time</th>
            <th scope="col">Level</th>
            <th scope="col">Attempt</th>
            <th scope="col">Message</th>
          </tr>
        </thead>
        <tbody>
          {lines.map((line) => (
            <tr key={line.id} class={line.level}>
              <td class="muted nowrap" title={instant(line.at)}>
                {clockSecond(line.at)}.{String(line.at % 1_000).padStart(3, "0")}
              </td>
              <td class="level">{line.level}</td>
              <td class="muted nowrap medium-only" title="Attempt">
                #{line.attempt}
              </td>
              <td class="said">
                {line.message}
                {line.details !== null && <span class="muted"> {line.details}</span>}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function NoLog() {
  return (
    <Empty icon="audit" title="No log lines">
      <p>The handler has not called ctx.log, or its worker does not store job logs. To store them:</p>
      <pre class="code">{`const hf = await open(url, { jobLog: true });`}</pre>
    </Empty>
  );
}

/** Joins two pages without duplicates. */
function merged(older: LogList["lines"], newer: LogList["lines"]): LogList["lines"] {
  const known = new Set(newer.map(({ id }) => id));
  return [...older.filter(({ id }) => !known.has(id)), ...newer];
}
