// Hostile text, and a dashboard that answers with it: in every field of every answer that is free text by the API's own
// description, whatever the client's checks would let in. As if somebody had written to the tables.
import type { DashboardHandler } from "../../src/dashboard/handler.ts";
import { Stream } from "../../src/dashboard/api/contract.ts";
import type { Schema } from "../../src/dashboard/api/schema.ts";
import type { Delta } from "../../src/dashboard/live/delta.ts";
import { match, routes } from "../../src/dashboard/routes/table.ts";
import { TOPICS } from "../../src/dashboard/live/topics.ts";
import { misfits } from "../dashboard/misfits.ts";

export const corpus = [
  `<script>window.hacked=1</script>`,
  `<img src=x onerror="window.hacked=1">`,
  `"><svg onload=window.hacked=1>`,
  `javascript:window.hacked=1`,
  `<iframe srcdoc="<script>parent.hacked=1</script>">`,
  `</script><script>window.hacked=1</script>`,
  `{{constructor.constructor('window.hacked=1')()}}`,
  `<a href="javascript:window.hacked=1">x</a>`,
  `<style>*{background:url(http://evil.example/x)}</style>`,
  `<math><mtext><table><mglyph><style><img src=x onerror=window.hacked=1>`,
  `\u2028alert(1)\u2029<!--`,
  `<base href="http://evil.example/">`,
  `&lt;script&gt;window.hacked=1&lt;/script&gt;`,
  `\u0000<b>\ud800</b>`,
] as const;
export const all = corpus.join("\n");

/** What the page goes on with: with another id it would ask for another thing. */
const addresses = new Set([
  "id",
  "jobId",
  "parentId",
  "lastJobId",
  "group",
  "failureGroup",
  "cursor",
  "to",
  "path",
  "permission",
]);
/** Words that the page knows, and things whose own screens are opened. */
const kept = /^(retry|cancel|delete|run-now|digest|bank)$/;
/** JSON as text. */
const jsonTexts = new Set(["input", "output", "progress", "data", "patch", "preview"]);

/** The value with hostile text wherever its schema allows any. */
function poisoned(schema: Schema, value: unknown, key: string, poison: string): unknown {
  if (schema.oneOf !== undefined) {
    const fits = schema.oneOf.find((one) => misfits(one, value, "").length === 0);
    return fits === undefined ? value : poisoned(fits, value, key, poison);
  }
  if (value === null || schema.enum !== undefined || schema.const !== undefined) return value;
  if (typeof value === "string") {
    if (addresses.has(key) || kept.test(value)) return value;
    return jsonTexts.has(key) ? JSON.stringify({ [poison]: poison, list: [poison] }) : poison;
  }
  if (Array.isArray(value)) return value.map((one) => poisoned(schema.items ?? {}, one, key, poison));
  if (typeof value !== "object") return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, part]) => {
      const own = schema.properties?.[name];
      if (own !== undefined) return [name, poisoned(own, part, name, poison)];
      const rest = schema.additionalProperties;
      // Names by which something is counted; settings have names of their own.
      return typeof rest === "object" ? [poison, poisoned(rest, part, name, poison)] : [name, part];
    }),
  );
}

/** The dashboard, with every answer poisoned. `/me` and the errors stay: without permissions there is nothing to see. */
export function hostile(handler: DashboardHandler, poison: string = all): DashboardHandler {
  const answer = async (request: Request): Promise<Response> => {
    const response = await handler(request);
    const segments = new URL(request.url).pathname.split("/").slice(3).map(decodeURIComponent);
    const matched = match(request.method, segments);
    if (response.status !== 200 || matched === null || matched === "method") return response;
    const { answer: shape, id } = matched.route;
    if (id === "me" || response.body === null) return response;
    const init = { status: response.status, headers: response.headers };
    if (shape === Stream) {
      const decoder = new TextDecoder();
      const encoder = new TextEncoder();
      // An event is a chunk, as the server sends them.
      const poisonEvent = new TransformStream<Uint8Array, Uint8Array>({
        transform: (chunk, controller) => {
          const text = decoder.decode(chunk).replace(/^data: (.*)$/gm, (_line, data: string) => {
            const told = JSON.parse(data) as { topic: string; value?: unknown; delta?: Delta };
            const kind = TOPICS[told.topic.split(/[:?]/)[0] as keyof typeof TOPICS];
            const schema = routes.find(({ id: one }) => one === kind.route)!.answer;
            if (told.value !== undefined)
              return `data: ${JSON.stringify({ ...told, value: poisoned(schema, told.value, "", poison) })}`;
            // Of lists only what was there first is poisoned: their things are told by names.
            if (told.delta?.set === undefined) return `data: ${data}`;
            const set = poisoned(schema, told.delta.set, "", poison);
            return `data: ${JSON.stringify({ ...told, delta: { ...told.delta, set } })}`;
          });
          controller.enqueue(encoder.encode(text));
        },
      });
      const body = response.body as ReadableStream<Uint8Array>;
      return new Response(body.pipeThrough(poisonEvent), init);
    }
    if (!(response.headers.get("content-type") ?? "").startsWith("application/json")) return response;
    const body = poisoned(shape, await response.json(), "", poison);
    return new Response(JSON.stringify(body), init);
  };
  return Object.assign(answer, { close: () => handler.close() });
}
