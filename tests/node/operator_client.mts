// Reads from the admin listener of a running log with a client that is generated from its OpenAPI description (`api.d.ts`).
//
//     operator_client.mts BASE_URL TOKEN
//
// Prints JSON: what the log answered. tsc checks each path, parameter and member against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [baseUrl, token] = process.argv.slice(2) as [string, string];
const anyone = createClient<paths>({ baseUrl });
const operator = createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${token}` } });

const ready = await anyone.GET("/readyz", { parseAs: "text" });
const refused = await anyone.GET("/inbox");
const inbox = await operator.GET("/inbox", { params: { query: { after: 0 } } });
const keys = await operator.GET("/keys");

console.log(JSON.stringify({
  ready: ready.data,
  refused: refused.error?.code,
  leads: inbox.data?.leads,
  origin: keys.data?.origin,
}));
