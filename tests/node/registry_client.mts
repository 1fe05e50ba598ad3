// Reads from a running registry server with a client that is generated from its OpenAPI description (`api.d.ts`).
//
//     registry_client.mts BASE_URL ADMIN_URL
//
// Prints JSON: what the server answered. tsc checks each path, parameter and member against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [baseUrl, adminUrl] = process.argv.slice(2) as [string, string];
const client = createClient<paths>({ baseUrl });

const registry = await client.GET("/registry.json");
const etag = registry.response.headers.get("etag") ?? "";
const again = await client.GET("/registry.json", { params: { header: { "If-None-Match": etag } } });
const deltas = await client.GET("/deltas.json");
const ready = await createClient<paths>({ baseUrl: adminUrl }).GET("/readyz", { parseAs: "text" });

console.log(JSON.stringify({
  status: registry.response.status,
  again: again.response.status,
  deltas: deltas.data,
  refused: deltas.error?.code,
  ready: ready.data,
}));
