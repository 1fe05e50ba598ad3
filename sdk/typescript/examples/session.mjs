// A session of an agent whose tools are functions, recorded and verified.

import assert from 'node:assert';
import { readFile } from 'node:fs/promises';
import { Denied, devLog, verify, withSession } from '@tabellion/sdk';

const log = await devLog();
const options = {
  goal: 'add the invoices',
  tools: ['add'],
  budget: { max_calls: 2 },
  key: log.key,
  issuer: log.issuer,
  log: log.client,
  save: 'session.cose',
};
const session = await withSession(options, async (session) => {
  const add = session.tool('add', ({ a, b }) => a + b, { expectedEffect: 'the sum' });
  assert.equal(await add({ a: await add({ a: 1, b: 2 }), b: 3 }), 6);
  await assert.rejects(add({ a: 6, b: 4 }), (error) => error instanceof Denied && error.code === 'budget_exceeded');
  return session;
});

// The record was signed, registered and verified. Anybody verifies it again, offline.
const verdict = await verify(await readFile('session.cose'), log.trust);
assert.equal(verdict.outcome, 'verified');
console.log(session.registered.entry);
