// Registers a statement at a log, verifies it offline, follows the log's entries, and monitors the log.

import assert from 'node:assert';
import { readFile } from 'node:fs/promises';
import { attach, devLog, signStatement, verify } from '@tabellion/sdk';

const log = await devLog(); // what `tabellion serve --dev` wrote into this folder

// Sign and register. The file is written before the first attempt, and holds the Transparent Statement at the end.
const payload = new TextEncoder().encode('{"result":42}');
const headers = { contentType: 'application/json', subject: 'invoice-8', issuer: log.issuer };
const statement = await signStatement(log.key, payload, headers);
const registered = await log.client.register(statement, 'invoice-8.cose');

// Verify offline: all keys come from the trust file.
const verdict = await verify(await readFile('invoice-8.cose'), log.trust);
assert.equal(verdict.outcome, 'verified');

// A fresh receipt, attached by hand, is as good, unless the statement or its certificate has ended since.
const receipt = await log.client.receipt(registered.entry);
await log.client.verify(await attach(statement.bytes, [receipt]));

// Register a statement that does not contain its payload.
const detached = await signStatement(log.key, payload, { ...headers, subject: 'invoice-10', detached: true });
await log.client.register(detached, 'invoice-10.cose', payload);

// Follow all entries from the first.
for await (const event of log.client.follow({ begin: true })) {
  if (event.entry.entry_id === registered.entry) break;
}

// Monitor: verify that the log only grew since the last call.
const seen = await log.client.monitorOnce();
assert.equal((await log.client.monitorOnce(seen)).size, seen.size);
console.log(registered.entry);
