// The public TypeScript SDKs as clients, told what to do, and what they heard: to be the same through the gateway as without it.
//
//   mcp_client.mjs SDK MODE URL CALLS    prints the transcript as JSON
//
// SDK is `v1` (@modelcontextprotocol/sdk) or `v2` (@modelcontextprotocol/client), MODE `legacy`, `auto` or, for v2, a revision;
// CALLS is a JSON list of [tool, arguments]. Whatever the server asks, its user accepts.

const [sdk, mode, url, calls] = process.argv.slice(-4);
const heard = [];
const capabilities = { elicitation: {}, sampling: {}, roots: {} };
const who = { name: 'black-box', version: '1' };

function user(method) {
  return async (request) => {
    heard.push([method, request.params ?? {}]);
    if (method === 'roots/list') return { roots: [{ uri: 'file:///nowhere', name: 'nowhere' }] };
    if (method === 'sampling/createMessage') {
      return { role: 'assistant', model: 'none', content: { type: 'text', text: 'a sample' } };
    }
    const properties = Object.entries(request.params.requestedSchema?.properties ?? {});
    const example = (schema) =>
      schema.default ?? schema.enum?.[0] ?? { boolean: true, integer: 7, number: 0.5 }[schema.type] ?? 'words';
    return { action: 'accept', content: Object.fromEntries(properties.map(([name, schema]) => [name, example(schema)])) };
  };
}

async function v1() {
  const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const types = await import('@modelcontextprotocol/sdk/types.js');
  const client = new Client(who, { capabilities });
  client.setRequestHandler(types.ElicitRequestSchema, user('elicitation/create'));
  client.setRequestHandler(types.CreateMessageRequestSchema, user('sampling/createMessage'));
  client.setRequestHandler(types.ListRootsRequestSchema, user('roots/list'));
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (note) => void heard.push(['log', note.params]));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return [client, (params, options) => client.callTool(params, undefined, options)];
}

async function v2() {
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const chosen = mode === 'legacy' || mode === 'auto' ? mode : { pin: mode };
  const client = new Client(who, { capabilities, versionNegotiation: { mode: chosen } });
  for (const method of ['elicitation/create', 'sampling/createMessage', 'roots/list']) {
    client.setRequestHandler(method, user(method));
  }
  client.setNotificationHandler('notifications/message', (note) => void heard.push(['log', note.params]));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return [client, (params, options) => client.callTool(params, options)];
}

async function tried(what) {
  try {
    return await what();
  } catch (error) {
    return { failed: error.constructor.name, code: error.code ?? null, words: error.message };
  }
}

const [client, call] = await (sdk === 'v1' ? v1() : v2());
const transcript = {
  server: client.getServerVersion() ?? null,
  capabilities: client.getServerCapabilities(),
  tools: await tried(() => client.listTools()),
  prompts: await tried(() => client.listPrompts()),
  resources: await tried(() => client.listResources()),
  results: [],
};
for (const resource of (transcript.resources.resources ?? []).slice(0, 3)) {
  transcript.results.push(await tried(() => client.readResource({ uri: resource.uri })));
}
for (const [name, given] of JSON.parse(calls)) {
  const onprogress = (progress) => void heard.push(['progress', progress]);
  transcript.results.push(await tried(() => call({ name, arguments: given }, { onprogress })));
}
await client.close();
console.log(JSON.stringify({ ...transcript, heard }));
process.exit(0);
