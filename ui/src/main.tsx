// The entry point: hooks and stores first, then the shell.
import { render } from "preact";
import { startRowShortcuts } from "./app/row-shortcuts.ts";
import { App, palette } from "./app/shell.tsx";
import { startTruncationTitles } from "./app/truncation-titles.ts";
import { connect } from "./data/live-stream.ts";
import { startRouter } from "./data/router.ts";
import { startShortcuts } from "./kit/shortcuts.ts";
import { startBidi } from "./text/bidi.ts";
import "./style/index.css";

startBidi();
startRouter();
startShortcuts(palette);
startRowShortcuts(palette);
startTruncationTitles();
connect();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
