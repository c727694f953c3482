// For the test alone: whether anybody reads the live stream.
export const dynamic = "force-dynamic";

export function GET() {
  return Response.json(globalThis.listening ?? 0);
}
