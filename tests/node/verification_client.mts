// Has work checked by a running verification service with a client that is generated from its OpenAPI description (`api.d.ts`).
//
//     verification_client.mts BASE_URL REQUEST
//
// Prints JSON: what the service answered. tsc checks each path, parameter and member against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [baseUrl, request] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl });

const engines = await client.GET("/v1/engines");
const checked = await client.POST("/verify", { body: JSON.parse(request) });
const job = await client.GET("/jobs/{id}", { params: { path: { id: checked.data?.job ?? "" } } });
const unknown = await client.GET("/jobs/{id}", { params: { path: { id: "none" } } });

console.log(JSON.stringify({
  tiers: engines.data?.tiers,
  verdict: checked.data?.verdict,
  entry: checked.data?.entry,
  state: job.data?.state,
  registered: job.data?.entry,
  unknown: unknown.error?.code,
  numbered: unknown.response.headers.has("x-request-id"),
}));
