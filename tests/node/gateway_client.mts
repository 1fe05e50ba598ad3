// Calls the three listeners of a running gateway with a client that is generated from its OpenAPI description (`api.d.ts`).
//
//     gateway_client.mts CLIENTS_URL APPROVALS_URL ADMIN_URL
//
// Prints JSON: what the gateway answered. tsc checks each path, parameter and member against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [clients, approvals, admin] = process.argv.slice(2) as [string, string, string];

const posture = await createClient<paths>({ baseUrl: clients }).GET("/.well-known/vap");
const answer = await createClient<paths>({ baseUrl: clients }).POST("/{endpoint}", {
  params: { path: { endpoint: "mcp" } },
  body: { jsonrpc: "2.0", id: 7, method: "ping" },
  headers: { accept: "application/json, text/event-stream" },
});
const refused = await createClient<paths>({ baseUrl: approvals }).GET("/approvals");
const ready = await createClient<paths>({ baseUrl: admin }).GET("/readyz");

console.log(JSON.stringify({
  posture: posture.response.status,
  answered: typeof answer.data === "object" ? answer.data.id : undefined,
  refused: refused.error?.code,
  ready: ready.data?.ready,
}));
