/**
 * `holdfast/dashboard`: the dashboard as a handler, for Node, and as a server.
 */
import "../supported-node.ts"; // first

// Mounting it: one function from Request to Response.
export { dashboard } from "./handler.ts";
export type { DashboardHandler, DashboardOptions } from "./handler.ts";
export type { DashboardDatabase, Databases } from "./databases.ts";

// For node:http, Express, Fastify.
export { toNodeHandler } from "./node.ts";
export type { NodeHandler, NodeRequest } from "./node.ts";

// Standing alone.
export { serve } from "./serve.ts";
export type { DashboardServer, ServeOptions } from "./serve.ts";

// Who may do what, and what is shown.
export type { Auth, AuthAnswer, Authorize, Role, User } from "./access/security.ts";
export type { Permission } from "./api/contract.ts";
export type { Resource } from "./api/resource.ts";
export type { Redact, RedactPlace } from "./access/redact.ts";
