// The screen that the address names.
import { isScreen, segmentsOf } from "../../../src/dashboard/appearance/screens.ts";
import { href, path } from "../data/router.ts";
import { t } from "../language/translation.ts";
import { Errors } from "../screens/failures-screen.tsx";
import { Job } from "../screens/job-screen.tsx";
import { OperationsScreen } from "../screens/operations-screen.tsx";
import { Overview } from "../screens/overview-screen.tsx";
import { Queues } from "../screens/queues-screen.tsx";
import {
  Audit,
  Batches,
  Database,
  ErrorScreen,
  Jobs,
  Limits,
  Matches,
  QueueScreen,
  Runs,
  Schedules,
  ScheduleScreen,
  Workers,
} from "./lazy-screens.tsx";

const wholeId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function Screen() {
  const below = path.value.slice(1);
  if (!isScreen(below)) return <Nothing />;
  const [first = "", second] = segmentsOf(below) ?? [];
  switch (first) {
    case "":
      return <Overview />;
    case "jobs":
      if (second === undefined || second === "") return <Jobs kind="jobs" />;
      return wholeId.test(second) ? <Job key={second} id={second} /> : <Matches key={second} part={second} />;
    case "workflows":
      return <Runs />;
    case "batches":
      return <Batches />;
    case "scheduled":
      return <Jobs key="scheduled" kind="scheduled" />;
    case "retries":
      return <Jobs key="retries" kind="retries" />;
    case "errors":
      return second === undefined || second === "" ? <Errors /> : <ErrorScreen key={second} group={second} />;
    case "queues":
      return second === undefined || second === "" ? <Queues /> : <QueueScreen key={second} name={second} />;
    case "schedules":
      return second === undefined || second === "" ? (
        <Schedules />
      ) : (
        <ScheduleScreen key={second} name={second} />
      );
    case "workers":
      return <Workers />;
    case "limits":
      return <Limits />;
    case "database":
      return <Database />;
    case "operations":
      return <OperationsScreen />;
    case "audit":
      return <Audit />;
    default:
      return <Nothing />;
  }
}

/** For an address that no screen has. */
function Nothing() {
  return (
    <section class="panel">
      <div class="empty">
        <h1>{t("There is no such page")}</h1>
        <p>{t("The address may be cut or mistyped.")}</p>
        <a class="button" href={href("/")}>
          {t("To the overview")}
        </a>
      </div>
    </section>
  );
}
