// What the TypeScript client and sessions promise, against a service that answers as each test says: `node --test promises.mjs`.

import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { CoreError, Client, Denied, generateKey, readStatement, Refused, signStatement, StillRunning, TryAgain, withSession } from '@tabellion/sdk';

const key = await generateKey();
const signed = await signStatement(key, new TextEncoder().encode('{}'), { contentType: 'application/json', subject: 's' });

/** Runs a test against a server that gives these answers in order; it gets the URL and the requests with their times. */
async function against(answers, body) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    requests.push({ body: Buffer.concat(chunks), at: performance.now() });
    const [status, headers, content] = answers.shift();
    response.writeHead(status, headers).end(content);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    await body(`http://127.0.0.1:${server.address().port}`, requests);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

const problem = (status, code, headers = {}) => [
  status,
  { 'Content-Type': 'application/problem+json', ...headers },
  JSON.stringify({ title: 'no', detail: 'a reason', code }),
];

function session(body, more = {}) {
  const options = { goal: 'g', tools: ['crm.*'], deny: ['crm.delete'], budget: { max_calls: 1 }, key, save: async () => {} };
  return withSession({ ...options, ...more }, async (session) => (await body(session), session));
}

const recorded = async ({ record }) => new TextDecoder().decode((await readStatement(record.bytes)).payload);

test('the statement is saved before the first attempt', () =>
  against([problem(400, 'policy')], async (url, requests) => {
    const saved = [];
    const save = async (bytes) => void saved.push([requests.length, Buffer.from(bytes)]);
    await assert.rejects(new Client(url).register(signed, save), (error) => error instanceof Refused && error.code === 'policy');
    assert.deepEqual(saved, [[0, Buffer.from(signed.bytes)]]);
  }));

test('a retry waits as long as the service wants and sends the same bytes', () =>
  against([problem(429, 'rate', { 'Retry-After': '1' }), problem(400, 'policy')], async (url, requests) => {
    await assert.rejects(new Client(url).register(signed, async () => {}), Refused);
    assert.deepEqual(requests[0].body, requests[1].body);
    assert.ok(requests[1].at - requests[0].at >= 990);
  }));

test('what needs an operator is not tried again', async () => {
  for (const answer of [problem(503, 'log-halted'), problem(503, 'busy', { 'Retry-After': '3600' })]) {
    await against([answer], async (url, requests) => {
      await assert.rejects(new Client(url).register(signed, async () => {}), TryAgain);
      assert.equal(requests.length, 1);
    });
  }
});

test('a registration that takes too long names where to go on', () =>
  against([[202, { 'Retry-After': '5' }, '']], async (url) => {
    await assert.rejects(new Client(url, { patience: 1 }).register(signed, async () => {}), StillRunning);
  }));

test('a stream that breaks off goes on after the last entry', async () => {
  const event = (leaf) => `id: ${leaf}\nevent: entry\ndata: {"index":${leaf}}\n\n`;
  const head = { 'Content-Type': 'text/event-stream' };
  const answers = [
    [200, head, `${event(0)}${event(1)}id: 2\nevent: ent`],
    [200, head, event(2)],
  ];
  await against(answers, async (url) => {
    const leaves = [];
    for await (const { leaf } of new Client(url).follow({ begin: true })) {
      if (leaves.push(leaf) === 3) break;
    }
    assert.deepEqual(leaves, [0, 1, 2]);
  });
});

test('calls beyond scope and budget are not made', async () => {
  const never = () => assert.fail();
  const ended = await session(async (session) => {
    await assert.rejects(session.run('mail.send', never, {}), Denied);
    await assert.rejects(session.run('crm.delete', never, {}), Denied);
    assert.equal(await session.run('crm.read', ({ ticket }) => ticket, { ticket: 7 }), 7);
    await assert.rejects(session.run('crm.read', never, {}), ({ code }) => code === 'budget_exceeded');
  });
  const { entries } = JSON.parse(await recorded(ended)).session;
  assert.equal(entries.filter(({ type }) => type === 'tool-call').length, 1);
});

test('texts are in the record only if they are to be disclosed', async () => {
  for (const disclose of [false, true]) {
    const ended = await session((session) => session.run('crm.read', ({ ticket }) => ticket, { ticket: 'SECRET' }), { disclose });
    assert.equal((await recorded(ended)).includes('SECRET'), disclose);
  }
});

test('a session without a budget is refused as a gateway would', () =>
  assert.rejects(session(() => {}, { budget: {} }), (error) => error instanceof CoreError && error.code === 'no_budget'));
