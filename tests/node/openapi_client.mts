// Reads from a running service with a client that is generated from its OpenAPI description (`api.d.ts`).
//
//     openapi_client.mts BASE_URL ENTRY_ID
//
// Prints JSON: what the service answered. tsc checks each path, parameter and member against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [baseUrl, entryId] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl });

const search = await client.GET("/v1/entries", { params: { query: { limit: 10 } } });
const proof = await client.GET("/v1/proof/inclusion", { params: { query: { index: 1 } } });
const receipt = await client.GET("/entries/{entry_id}", {
  params: { path: { entry_id: entryId } },
  parseAs: "arrayBuffer",
});
const unknown = await client.GET("/v1/entries/{entry_id}", { params: { path: { entry_id: "0".repeat(64) } } });

const bytes = new Uint8Array((receipt.data as ArrayBuffer | undefined) ?? new ArrayBuffer(0));
console.log(JSON.stringify({
  entries: search.data?.entries.map((entry) => entry.entry_id),
  proven: typeof proof.data === "object" ? proof.data.entry_id : undefined,
  receipt: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join(""),
  unknown: unknown.response.status,
}));
