// Errors of a job's attempts, newest first, with the differences between two attempts.
import { useSignal } from "@preact/signals";
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { DiffView } from "../code/diff-view.tsx";
import { duration, number, plural } from "../kit/format.ts";
import { Ago, State } from "../kit/labels.tsx";
import { href } from "../data/router.ts";
import { StackView } from "../code/stack-view.tsx";
import { Panel } from "../kit/panels.tsx";

/** When the attempt failed, and how long it ran, if known. */
function ranWords({ at, ranMs, lost }: JobDetail["errors"][number]) {
  const when = <Ago at={at} />;
  if (ranMs === null) return when;
  const time = duration(ranMs);
  return lost ? (
    <>
      {when}, worker lost: held for {time}, until its lease expired
    </>
  ) : (
    <>
      {when}, ran {time}
    </>
  );
}

export function AttemptErrors({ job }: { job: JobDetail }) {
  const newest = [...job.errors].reverse();
  const open = useSignal(0);
  const compared = useSignal(-1);
  const shown = (i: number) => {
    const failure = newest[i];
    if (failure === undefined) return null;
    return (
      <div key={failure.at + failure.attempt} class="stack" style={{ gap: "8px" }}>
        <div class="row">
          <State state={failure.lost ? "lost" : "failed"} />
          <b>Attempt {failure.attempt}</b>
          <span class="muted small">{ranWords(failure)}</span>
          {i > 0 && failure.message === newest[i - 1]?.message && <span class="tag">same error</span>}
          <span style={{ flex: 1 }} />
          {differs(failure, newest[i + 1]) && (
            <button
              type="button"
              class="button quiet small"
              aria-expanded={compared.value === i}
              onClick={() => (compared.value = compared.value === i ? -1 : i)}
            >
              {compared.value === i ? "Hide differences" : `Compare with attempt ${newest[i + 1]?.attempt}`}
            </button>
          )}
          {failure.stack !== null && (
            <button
              type="button"
              class="button quiet small"
              aria-expanded={open.value === i}
              onClick={() => (open.value = open.value === i ? -1 : i)}
            >
              {open.value === i ? "Hide stack" : "Stack"}
            </button>
          )}
        </div>
        {compared.value === i && newest[i + 1] !== undefined ? (
          <DiffView
            before={wholeOf(newest[i + 1]!)}
            after={wholeOf(failure)}
            label={`Error of attempt ${newest[i + 1]?.attempt} and of attempt ${failure.attempt}`}
          />
        ) : open.value === i && failure.stack !== null ? (
          <StackView text={failure.stack} />
        ) : (
          <pre class="code" tabIndex={0} role="group" aria-label="Error">
            {failure.message}
          </pre>
        )}
      </div>
    );
  };
  return (
    <Panel
      title="Failures"
      note={`${number(newest.length)}, newest first`}
      tools={
        job.failureGroup !== null && (
          <a class="link small" href={href(`/errors/${job.failureGroup}`)}>
            All with this error
          </a>
        )
      }
    >
      <div class="body stack">
        {shown(0)}
        {newest.length > 1 && (
          <details class="folded">
            <summary>{plural(newest.length - 1, "earlier failure")}</summary>
            <div class="stack">{newest.slice(1).map((_, i) => shown(i + 1))}</div>
          </details>
        )}
      </div>
    </Panel>
  );
}

type Failed = JobDetail["errors"][number];

/** The stack contains the message. */
function wholeOf({ message, stack }: Failed): string {
  if (stack === null) return message;
  return stack.includes(message) ? stack : `${message}\n${stack}`;
}

function differs(one: Failed, before: Failed | undefined): boolean {
  return before !== undefined && wholeOf(one) !== wholeOf(before);
}
