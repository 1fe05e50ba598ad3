// Submits a checkpoint to a running witness with a client that is generated from its OpenAPI description (`api.d.ts`), and reads.
//
//     witness_client.mts BASE_URL ADMIN_URL LOG REQUEST
//
// Prints JSON: what the witness answered. tsc checks each path, parameter and member against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [baseUrl, adminUrl, log, request] = process.argv.slice(2) as [string, string, string, string];
const client = createClient<paths>({ baseUrl });
const admin = createClient<paths>({ baseUrl: adminUrl });

const added = await client.POST("/add-checkpoint", {
  body: request,
  bodySerializer: (body) => body,
  headers: { "content-type": "text/plain" },
  parseAs: "text",
});
const checkpoint = await client.GET("/{log}/checkpoint", { params: { path: { log } }, parseAs: "text" });
const ready = await admin.GET("/readyz", { parseAs: "text" });

console.log(JSON.stringify({
  status: added.response.status,
  seen: String(added.error),
  checkpoint: checkpoint.data,
  ready: ready.data,
}));
