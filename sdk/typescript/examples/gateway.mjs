// Calls a tool of an MCP server through a gateway, in a VAP session.
//
//   gateway.mjs URL     of the gateway; agent.pem is the agent's key

import assert from 'node:assert';
import { readFile } from 'node:fs/promises';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { loadKey, VapClient, withSession } from '@tabellion/sdk';

const url = new URL(process.argv.at(-1));
const { keys } = await (await fetch(new URL('/.well-known/jwks.json', url))).json();
const options = {
  goal: 'convert times for a meeting',
  tools: ['convert_time'],
  budget: { max_calls: 1 },
  key: await loadKey(await readFile('agent.pem', 'utf8')),
  agent: 'did:example:a',
  save: 'session.cose',
};
await withSession(options, async (session) => {
  const client = new Client({ name: 'example', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(url));
  const vap = new VapClient(client, session, JSON.stringify(keys[0]));
  await vap.commit();
  const args = { source_timezone: 'UTC', time: '12:00', target_timezone: 'Asia/Tokyo' };
  const result = await vap.callTool({ name: 'convert_time', arguments: args, rationale: 'the meeting is at noon UTC' });
  assert.equal(result._meta.vap.verdict, 'served');
  console.log(result._meta.vap.audit_ref);
  await client.close();
});
