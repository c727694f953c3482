// A job's timeline: a bar and the list of events.
import { useSignal } from "@preact/signals";
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { duration, instant, number } from "../kit/format.ts";
import { Icon } from "../kit/icons.tsx";
import { LifeBar } from "./life-bar.tsx";
import { foldOf, momentsOf } from "./timeline-moments.ts";
import { LongText } from "../kit/labels.tsx";
import { Panel } from "../kit/panels.tsx";

export function JobTimeline({
  job,
  firstStepAt,
  stepped,
}: {
  job: JobDetail;
  firstStepAt: number | null;
  stepped: boolean;
}) {
  const whole = useSignal(false);
  const moments = momentsOf(job, stepped, firstStepAt);
  const folded = whole.value ? null : foldOf(moments.length);
  return (
    <Panel title="Timeline">
      <LifeBar job={job} firstStepAt={firstStepAt} />
      <ol class="timeline">
        {moments.map((moment, i) => {
          if (folded !== null && i > folded.from && i < folded.to) return null;
          return folded !== null && i === folded.from ? (
            <li key="folded">
              <span class="dot">
                <Icon name="dot" size={11} />
              </span>
              <button type="button" class="text-button" onClick={() => (whole.value = true)}>
                Show {number(folded.to - folded.from)} more events
              </button>
            </li>
          ) : (
            <li key={i}>
              <span class={`dot ${moment.kind}`}>
                <Icon name={moment.icon} size={11} />
              </span>
              <span class="what">
                {moment.what}
                {moment.skewed && (
                  <span class="tag warn" title="By its own clock, this happened before the event it follows">
                    clock skew
                  </span>
                )}
              </span>
              <span class="muted small nowrap" title={instant(moment.at)}>
                {moment.at === null ? "" : instant(moment.at)}
              </span>
              {moment.why.map((line, n) => (
                <span key={n} class="why">
                  {typeof line === "string" ? (
                    <LongText of={line} />
                  ) : (
                    `${line.before ?? ""} ${duration(line.ms)} ${line.after ?? ""}`.trim()
                  )}
                </span>
              ))}
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}
