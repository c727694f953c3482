// Exports matching jobs. The token goes in a header, so the file is fetched and then offered as a download.
import { Choice, openForm } from "../kit/forms.tsx";
import { call, type Params, query } from "../data/api.ts";
import { download } from "../data/download.ts";

export function exportDialog(asked: Params, total: string | null, words: string): void {
  openForm({
    title: "Export",
    verb: "Export",
    body: (
      <>
        <p>
          {total === null ? (
            <>
              All <b>{words}</b>, newest first, with their input. Redacted values stay redacted in the file.
            </>
          ) : (
            <>
              All {total} <b>{words}</b>, newest first, with their input. Redacted values stay redacted in the
              file.
            </>
          )}
        </p>
        <Choice label="Format" name="format" value="ndjson" options={["ndjson", "csv"]} />
      </>
    ),
    run: async (fields) => {
      const format = fields.text("format") ?? "ndjson";
      const response = await call(`/jobs/export${query({ ...asked, order: null, format })}`);
      download(
        await response.blob(),
        `jobs-${new Date().toISOString().slice(0, 19).replaceAll(/[:T]/g, "-")}.${format}`,
      );
      return "File saved";
    },
  });
}
