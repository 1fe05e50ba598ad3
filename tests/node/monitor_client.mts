// Reads health and metrics of a running monitor with a client that is generated from its OpenAPI description (`api.d.ts`).
//
//     monitor_client.mts BASE_URL
//
// Prints JSON: what the monitor answered. tsc checks each path against the description.

import createClient from "openapi-fetch";
import type { paths } from "./api.d.ts";

declare const process: { argv: string[] };

const [baseUrl] = process.argv.slice(2) as [string];
const client = createClient<paths>({ baseUrl });

const alive = await client.GET("/livez", { parseAs: "text" });
const metrics = await client.GET("/metrics", { parseAs: "text" });

console.log(JSON.stringify({ alive: alive.data, metrics: metrics.data }));
