// A job's life as one bar: delay, waiting, attempts, and the time between attempts.
import type { JobDetail } from "../../../src/dashboard/api/contract.ts";
import { duration } from "../kit/format.ts";
import { now } from "../data/page-clock.ts";
import { bandWords, Bar } from "../workflows/waterfall-view.tsx";
import { type Band, lifeOf, rangeOf } from "../workflows/waterfall.ts";

export function LifeBar({ job, firstStepAt }: { job: JobDetail; firstStepAt: number | null }) {
  const life = lifeOf(job, firstStepAt, job.endedAt === null ? now.value : 0);
  if (life.bands.length === 0) return null;
  const { from, to } = rangeOf([life]);
  const kinds = [...new Set(life.bands.map(({ kind }) => kind))];
  return (
    <div class="life">
      <span class="bands" role="img" aria-label={`From enqueue on: ${life.bands.map(words).join(", ")}.`}>
        {life.bands.map((band, i) => (
          <Bar key={i} band={band} x={(ms) => ((ms - from) / (to - from)) * 100} />
        ))}
      </span>
      <div class="legend" aria-hidden="true">
        {kinds.map((kind) => (
          <span key={kind}>
            <i class={`band ${kind}`} />
            {bandWords[kind]}{" "}
            <b>
              {duration(
                life.bands
                  .filter((band) => band.kind === kind)
                  .reduce((sum, band) => sum + band.to - band.from, 0),
              )}
            </b>
          </span>
        ))}
        <span class="spring" />
        <span>{duration(to - from)} in total</span>
      </div>
      {life.skewed && (
        <p class="small">
          <span class="tag warn">clock skew</span>{" "}
          <span class="muted">
            Machine clocks differ: something ended before it began. It has no duration here.
          </span>
        </p>
      )}
    </div>
  );
}

function words({ kind, from, to, open }: Band): string {
  const [what, time] = [bandWords[kind], duration(to - from)];
  return open ? `${what} ${time} so far` : `${what} ${time}`;
}
