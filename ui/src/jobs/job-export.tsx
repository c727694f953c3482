// A file of the jobs that match. The token goes in a header, so the answer is fetched and then handed to the browser.
import { Choice, openForm } from "../kit/forms.tsx";
import { call, type Params, query } from "../data/api.ts";
import { download } from "../data/download.ts";
import { rich } from "../language/rich-text.ts";
import { t } from "../language/translation.ts";

export function exportDialog(asked: Params, total: string | null, words: string): void {
  openForm({
    title: t("Export"),
    verb: t("Export"),
    body: (
      <>
        <p>
          {total === null
            ? rich(
                "All {words}, newest first, with their input. What is redacted here is redacted in the file.",
                { words: <b>{words}</b> },
              )
            : rich(
                "All {total} {words}, newest first, with their input. What is redacted here is redacted in the file.",
                { total, words: <b>{words}</b> },
              )}
        </p>
        <Choice label={t("Format")} name="format" value="ndjson" options={["ndjson", "csv"]} />
      </>
    ),
    run: async (fields) => {
      const format = fields.text("format") ?? "ndjson";
      const response = await call(`/jobs/export${query({ ...asked, order: null, format })}`);
      download(
        await response.blob(),
        `jobs-${new Date().toISOString().slice(0, 19).replaceAll(/[:T]/g, "-")}.${format}`,
      );
      return t("The file is yours.");
    },
  });
}
