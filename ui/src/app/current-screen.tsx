// The screen that the address names.
import { isScreen, segmentsOf } from "../../../src/dashboard/appearance/screens.ts";
import { href, path } from "../data/router.ts";
import { FailuresScreen } from "../screens/failures-screen.tsx";
import { JobScreen } from "../screens/job-screen.tsx";
import { OperationsScreen } from "../screens/operations-screen.tsx";
import { OverviewScreen } from "../screens/overview-screen.tsx";
import { QueuesScreen } from "../screens/queues-screen.tsx";
import {
  AuditScreen,
  BatchesScreen,
  DatabaseScreen,
  FailureScreen,
  JobsScreen,
  LimitsScreen,
  JobMatchesScreen,
  QueueScreen,
  WorkflowsScreen,
  SchedulesScreen,
  ScheduleScreen,
  WorkersScreen,
} from "./lazy-screens.tsx";

const wholeId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export function CurrentScreen() {
  const below = path.value.slice(1);
  if (!isScreen(below)) return <NoSuchScreen />;
  const [first = "", second] = segmentsOf(below) ?? [];
  switch (first) {
    case "":
      return <OverviewScreen />;
    case "jobs":
      if (second === undefined || second === "") return <JobsScreen kind="jobs" />;
      return wholeId.test(second) ? (
        <JobScreen key={second} id={second} />
      ) : (
        <JobMatchesScreen key={second} part={second} />
      );
    case "workflows":
      return <WorkflowsScreen />;
    case "batches":
      return <BatchesScreen />;
    case "scheduled":
      return <JobsScreen key="scheduled" kind="scheduled" />;
    case "retries":
      return <JobsScreen key="retries" kind="retries" />;
    case "errors":
      return second === undefined || second === "" ? (
        <FailuresScreen />
      ) : (
        <FailureScreen key={second} group={second} />
      );
    case "queues":
      return second === undefined || second === "" ? (
        <QueuesScreen />
      ) : (
        <QueueScreen key={second} name={second} />
      );
    case "schedules":
      return second === undefined || second === "" ? (
        <SchedulesScreen />
      ) : (
        <ScheduleScreen key={second} name={second} />
      );
    case "workers":
      return <WorkersScreen />;
    case "limits":
      return <LimitsScreen />;
    case "database":
      return <DatabaseScreen />;
    case "operations":
      return <OperationsScreen />;
    case "audit":
      return <AuditScreen />;
    default:
      return <NoSuchScreen />;
  }
}

/** Shown for an address without a screen. */
function NoSuchScreen() {
  return (
    <section class="panel">
      <div class="empty">
        <h1>Page not found</h1>
        <p>Check the address.</p>
        <a class="button" href={href("/")}>
          Go to overview
        </a>
      </div>
    </section>
  );
}
