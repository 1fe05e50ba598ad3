// What the TypeScript client and sessions promise, against a service that answers as each test says.
//
//   promises.mjs FOLDER     FOLDER is `vectors`

import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import {
  checkContent,
  Client,
  core,
  CoreError,
  Denied,
  generateKey,
  NotFound,
  NotVerified,
  readStatement,
  Refused,
  signStatement,
  SplitView,
  StillRunning,
  TryAgain,
  tryPolicy,
  Unreachable,
  VapClient,
  verify,
  withSession,
} from '@tabellion/sdk';

/** Waits also while timers are mocked. */
const setTimeoutOfNode = promisify(setTimeout);
const key = await generateKey();
const signed = await signStatement(key, new TextEncoder().encode('{}'), { contentType: 'application/json', subject: 's' });

/**
 * Runs a test against a server that gives these answers in order; it gets the URL and the requests: what was asked, and when.
 * An answer is a status, headers, content, and a delay in milliseconds; instead of `null` the connection is closed.
 */
async function against(answers, body) {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = await request.toArray();
    requests.push({ asked: `${request.method} ${request.url}`, body: Buffer.concat(chunks), at: performance.now() });
    const answer = answers.shift();
    if (answer === null) return request.socket.destroy();
    const [status, headers, content, delay = 0] = answer;
    await new Promise((resolve) => setTimeout(resolve, delay));
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

/** Returns a vector of the verifier that has a receipt of its own. */
function vector() {
  const folder = join(process.argv[2], 'verifier/verified');
  const cases = readdirSync(folder).sort().map((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')));
  return cases.find(({ receipts }) => receipts.length > 0);
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

test('a date to retry after is compared with the date of the answer', async () => {
  const date = 'Wed, 21 Oct 2026 07:27:30 GMT';
  for (const [retry, waits] of [['Wed, 21 Oct 2026 07:27:31 GMT', true], [date, false], ['Try 5', false]]) {
    const answers = [problem(429, 'rate', { Date: date, 'Retry-After': retry }), problem(400, 'policy')];
    await against(answers, async (url, requests) => {
      await assert.rejects(new Client(url).register(signed, async () => {}), Refused);
      assert.equal(requests[1].at - requests[0].at >= 990, waits, retry);
    });
  }
});

test('what needs an operator is not tried again', async () => {
  for (const answer of [problem(503, 'log-halted'), problem(503, 'busy', { 'Retry-After': '3600' })]) {
    await against([answer], async (url, requests) => {
      await assert.rejects(new Client(url).register(signed, async () => {}), TryAgain);
      assert.equal(requests.length, 1);
    });
  }
});

test('a receipt that does not verify is not accepted', () => {
  const { trust, receipts } = vector();
  return against([[201, {}, Buffer.from(receipts[0], 'hex')]], async (url) => {
    const saved = [];
    const registered = new Client(url, { trust }).register(signed, async (bytes) => void saved.push(bytes));
    await assert.rejects(registered, (error) => error instanceof NotVerified && error.code === 'receipt-root-mismatch');
    assert.deepEqual(saved, [signed.bytes]);
  });
});

test('a page in place of a receipt is told as no answer, and not saved', async () => {
  const page = [{ 'Content-Type': 'text/html' }, '<html>Please log in</html>'];
  const notReceipt = (error) => error instanceof Unreachable && error.detail.includes('not a receipt');
  for (const answers of [[[201, ...page]], [[200, ...page], [200, ...page]], [[202, {}, ''], [200, ...page]], [[202, {}, ''], [200, {}, '']]]) {
    await against(answers, async (url) => {
      const saved = [];
      await assert.rejects(new Client(url).register(signed, async (bytes) => void saved.push(bytes)), notReceipt);
      assert.deepEqual([saved, answers], [[signed.bytes], []]);
    });
  }
  await against([[200, ...page]], (url) => assert.rejects(new Client(url).receipt(signed.entry), notReceipt));
  await against([[200, ...page]], (url) => assert.rejects(new Client(url).wait(signed.entry), notReceipt));
});

test('a detached payload is sent with its statement', async () => {
  const payload = Buffer.from('--x\r\n\0');
  const detached = await signStatement(key, payload, { contentType: 'text/plain', subject: 's', detached: true });
  const receipt = Buffer.from(vector().receipts[0], 'hex');
  for (const [statement, given, sendsForm] of [[detached, payload, true], [detached, undefined, false], [signed, payload, false]]) {
    await against([[201, {}, receipt]], async (url, requests) => {
      await new Client(url).register(statement, async () => {}, given);
      const [{ body }] = requests;
      if (!sendsForm) return assert.deepEqual(body, Buffer.from(statement.bytes));
      assert.ok(body.includes(Buffer.concat([Buffer.from('\r\n\r\n'), statement.bytes, Buffer.from('\r\n--')])));
      assert.ok(body.includes(Buffer.concat([Buffer.from('\r\n\r\n'), payload, Buffer.from('\r\n--')])));
    });
  }
});

test('a registration that takes too long names where to go on', () =>
  against([[202, { 'Retry-After': '5' }, '']], async (url) => {
    await assert.rejects(new Client(url, { patience: 1 }).register(signed, async () => {}), StillRunning);
  }));

test('a registration that runs on is asked about until its receipt is there', async () => {
  const receipt = Buffer.from(vector().receipts[0], 'hex');
  const later = [[202, { 'Retry-After': '1' }, ''], [204, {}, ''], [200, {}, receipt]];
  const entry = `GET /entries/${signed.entry}`;
  await against([[202, {}, ''], ...later], async (url, requests) => {
    const registered = await new Client(url).register(signed, async () => {});
    assert.deepEqual(Buffer.from(registered.receipt), receipt);
    assert.deepEqual(requests.map(({ asked }) => asked), ['POST /entries', entry, entry, entry]);
  });
  const moved = [[202, { Location: '/entries/2.19' }, ''], [204, { Location: 'https://elsewhere.example/entries/3' }, '']];
  await against([...moved, [200, {}, receipt]], async (url, requests) => {
    await new Client(url).register(signed, async () => {});
    assert.deepEqual(requests.map(({ asked }) => asked), ['POST /entries', 'GET /entries/2.19', 'GET /entries/3']);
  });
  await against([...later], async (url, requests) => {
    assert.deepEqual(Buffer.from(await new Client(url).wait(signed.entry)), receipt);
    assert.deepEqual(requests.map(({ asked }) => asked), [entry, entry, entry]);
    assert.ok(requests[1].at - requests[0].at >= 990);
  });
});

test('waiting ends at an error that may not be retried', () =>
  against([[202, {}, ''], problem(503, 'busy'), problem(404, 'not-found')], async (url, requests) => {
    await assert.rejects(new Client(url).wait(signed.entry), NotFound);
    assert.equal(requests.length, 3);
  }));

test('waiting goes on while the service restarts', async () => {
  const receipt = Buffer.from(vector().receipts[0], 'hex');
  for (const first of [[202, {}, ''], [202, { 'Retry-After': '1' }, '']]) {
    await against([first, null, [204, {}, ''], null, [200, {}, receipt]], async (url, requests) => {
      const registered = await new Client(url).register(signed, async () => {});
      assert.deepEqual(Buffer.from(registered.receipt), receipt);
      assert.equal(requests.length, 5);
    });
  }
});

test('a registration counts as accepted only if the service said so', async () => {
  const busy = problem(503, 'busy');
  for (const [answers, error] of [
    [Array(20).fill(busy), TryAgain],
    [[busy, ...Array(20).fill(null)], Unreachable],
    [[[204, {}, ''], ...Array(20).fill(busy)], StillRunning],
  ]) {
    await against(answers, (url) => assert.rejects(new Client(url, { patience: 3 }).receipt(signed.entry), error));
  }
});

test('the time of exchanges counts against the patience', () =>
  against(Array(5).fill([503, {}, '', 4000]), async (url, requests) => {
    await assert.rejects(new Client(url, { patience: 6 }).register(signed, async () => {}), TryAgain);
    assert.equal(requests.length, 2);
  }));

test('a session is listed over all its pages, which are asked of this service alone', async () => {
  const page = (entries, headers = {}) => [200, headers, JSON.stringify({ entries: entries.map((id) => ({ entry_id: id })) })];
  const path = '/v1/sessions/a%2Fb%20%C3%A9';
  const link = (after) => ({ Link: `<https://other.example/v1/log${path}?after=${after}>; rel="next"` });
  const pages = [page(['a', 'b'], link(1)), problem(503, 'busy'), page([], link(2)), page(['c'])];
  await against(pages, async (url, requests) => {
    const listed = await new Client(url).session('a/b \u00e9');
    assert.deepEqual(listed.map((entry) => entry.entry_id), ['a', 'b', 'c']);
    const asked = [path, `${path}?after=1`, `${path}?after=1`, `${path}?after=2`];
    assert.deepEqual(requests.map((request) => request.asked), asked.map((each) => `GET ${each}`));
  });
});

test('a session that no entry names is not found', () =>
  against([problem(404, 'not-found')], async (url) => {
    await assert.rejects(new Client(url).session('s'), NotFound);
  }));

test('an answer that is not a page of a session is an error', async () => {
  for (const answer of ['{}', '[]', 'null', '{"entries":7}', '{"entries":"ab"}', 'no JSON']) {
    await against([[200, {}, answer]], (url) => assert.rejects(new Client(url).session('s'), Unreachable));
  }
});

test('an answer that has no end is read no further than its limit', async () => {
  const answers = [[200, {}, '[' + ' '.repeat((32 << 20) + 1)]];
  await against(answers, (url) => assert.rejects(new Client(url, { patience: 0 }).session('s'), /more than 33554432 bytes/));
});

test('a statement is fetched by its entry ID, and another one is refused', async () => {
  const other = await signStatement(key, new TextEncoder().encode('[]'), { contentType: 'application/json', subject: 's' });
  const answers = [signed, other].map(({ bytes }) => [200, { 'Content-Type': 'application/cose' }, Buffer.from(bytes)]);
  await against(answers, async (url, requests) => {
    const client = new Client(url);
    assert.deepEqual(await client.statement(signed.entry), signed.bytes);
    const another = (error) => error instanceof Unreachable && error.message.includes('another statement');
    await assert.rejects(client.statement(signed.entry), another);
    const asked = `GET /v1/entries/${signed.entry}/statement`;
    assert.deepEqual(requests.map((request) => request.asked), [asked, asked]);
  });
});

const bundle = (name) => JSON.parse(readFileSync(join(process.argv[2], 'bundle', `${name}.json`), 'utf8'));

function verifyBundle({ bundle, trust, now, witness_policy }) {
  const given = { now, witnessPolicy: witness_policy ?? undefined };
  return new Client('http://log.example', { trust }).verify(new TextEncoder().encode(bundle), given);
}

const refusedFor = (code, reason) => (error) => {
  assert.ok(error instanceof NotVerified, error);
  assert.equal(error.code, code);
  assert.match(error.message, new RegExp(`^not verified: ${reason}`));
  return true;
};

test('a changed bundle is refused with the part that was changed', async () => {
  const changed = [
    ['statement-changed', 'issuer-signature-invalid', 'entry 1 of 3: the signature does not verify'],
    ['payload-changed', 'issuer-signature-invalid', 'entry 3 of 3: the signature does not verify'],
    ['receipt-changed', 'receipt-root-mismatch', 'entry 2 of 3: leaf hash .* not the one that the receipt signs'],
    ['checkpoint-changed', 'checkpoint-signature-invalid', 'checkpoint: the signature of log.example/test'],
    ['path-changed', 'tlog-proof-mismatch', 'entry 1 of 3: leaf hash .* leads to root'],
    ['policy-changed', 'tlog-proof-mismatch', 'policy 1 of 1: leaf hash .* leads to root'],
    ['cosignature-dropped', 'quorum-not-met', 'checkpoint: 1 of 3'],
  ];
  for (const [name, code, reason] of changed) await assert.rejects(verifyBundle(bundle(`failed/${name}`)), refusedFor(code, reason));
});

test('a bundle is refused by who trusts other keys', async () => {
  const genuine = bundle('verified/session');
  const { pem } = await core.call('read-key', { public_key: (await generateKey()).did });
  const other = pem.split('\n')[1];
  const [log, issuer] = genuine.trust.match(/^MCow.*$/gm);
  const [checkpoint] = genuine.trust.match(/^checkpoint_keys.*$/m);
  const { vkey } = noteKey('log.example/test', 1);
  const keys = [
    [log, other, 'unknown-log-key', 'policy 1 of 1: log.example/test is trusted, but not with a key'],
    [issuer, other, 'issuer-signature-invalid', 'entry 1 of 3: the signature does not verify'],
    [checkpoint, `checkpoint_keys = ["${vkey}"]`, 'unknown-checkpoint-key', 'checkpoint: no checkpoint key'],
  ];
  for (const [old, fresh, code, reason] of keys) {
    await assert.rejects(verifyBundle({ ...genuine, trust: genuine.trust.replace(old, fresh) }), refusedFor(code, reason));
  }
});

test('the rules of its content type hold for each entry of a bundle', async () => {
  const { bundle: text, trust, now } = bundle('verified/session');
  const broken = JSON.parse(readFileSync(join(process.argv[2], 'vrf/vrf-tier-structural/tier-4.json'), 'utf8'));
  const changed = JSON.parse(text);
  changed.entries[1].statement = core.encode(Buffer.from(broken.statement, 'hex'));
  const verdict = await verify(new TextEncoder().encode(JSON.stringify(changed)), trust, { now });
  const checks = verdict.entries.map(({ checks }) => checks.find(({ name }) => name === 'content-rules'));
  assert.deepEqual([checks[1].state, checks[1].code], ['failed', 'content-rule-broken']);
  assert.deepEqual([checks[0], checks[2]], [undefined, undefined]);
});

test('a file that is not a bundle of this version is refused with the place', async () => {
  for (const [name, place] of [['cut-off', /at byte/], ['unknown-member', /unknown field/], ['version-2', /./]]) {
    await assert.rejects(verifyBundle(bundle(`malformed/${name}`)), (error) => {
      assert.ok(error instanceof CoreError && error.code === 'malformed-bundle', error);
      return place.test(error.message);
    });
  }
});

const policy = `
iss = "https://log.example"
origin = "log.example/test"
revision = 0

[log]
max_entries = 3

[[operator]]
key = "${key.did}"

[did]
key = "open"

[[type]]
content_type = "application/json"
issuers = ["did:key:*"]
detached = true
`;

test('a log that is tried has entries with detached payloads', async () => {
  const payload = new TextEncoder().encode('[]');
  const headers = { contentType: 'application/json', subject: 's', detached: true };
  const entry = { statement: (await signStatement(key, payload, headers)).bytes, payload };
  const trial = await tryPolicy(policy, signed.bytes, { entries: [entry, entry] });
  assert.deepEqual([trial.outcome, trial.max_entries], ['admitted', 3]);
  const again = await tryPolicy(policy, signed.bytes, { entries: [entry, signed.bytes] });
  assert.deepEqual([again.outcome, again.leaf], ['registered', 2]);
  await assert.rejects(tryPolicy(policy, signed.bytes, { entries: [entry.statement] }), /entry 1 is not admitted: payload-missing/);
});

test('an argument of another type is named', () =>
  assert.rejects(core.call('try-policy', { policy, statement: signed.bytes, entries: [signed.bytes, 7] }), /\/entries\/1: invalid type/));

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

test('an entry of a stream that is not JSON ends it', () =>
  against([[200, { 'Content-Type': 'text/event-stream' }, 'id: 0\nevent: entry\ndata: {\n\n']], async (url) => {
    await assert.rejects(new Client(url).follow({ begin: true }).next(), Unreachable);
  }));

test('the patience begins anew after a connection that carried a keep-alive', () => {
  const head = { 'Content-Type': 'text/event-stream; charset=utf-8' };
  const outage = [problem(503, 'busy', { 'Retry-After': '1' }), [200, head, ': keep-alive\n\n']];
  const answers = [...outage, ...outage, ...outage, [200, head, 'id: 0\nevent: entry\ndata: {"index":0}\n\n']];
  return against(answers, async (url) => {
    const { value } = await new Client(url, { patience: 2 }).follow({ begin: true }).next();
    assert.equal(value.leaf, 0);
  });
});

test('a page that is not a stream, and connections that carry nothing, end it', async () => {
  await against([[200, { 'Content-Type': 'text/html' }, '<html>\n</html>\n']], async (url, requests) => {
    await assert.rejects(new Client(url).follow({ begin: true }).next(), /text\/html.*\[unreachable\]/);
    assert.equal(requests.length, 1);
  });
  await against(Array(20).fill([200, { 'Content-Type': 'text/event-stream' }, '']), (url) =>
    assert.rejects(new Client(url, { patience: 1 }).follow({ begin: true }).next(), /neither events nor keep-alives/));
});

test('a log that does not answer, or not to the end, is given up', async () => {
  const unfinished = (_, response) => response.writeHead(503, { 'Content-Length': '10' }).flushHeaders();
  for (const respond of [() => {}, unfinished]) {
    let received;
    const arrived = new Promise((resolve) => (received = resolve));
    const server = createServer((request, response) => (respond(request, response), received()));
    await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
    // The limit on silence passes when the test says so. The oldest Node.js has no mocked timers.
    const [limits, original] = [[], globalThis.setTimeout];
    globalThis.setTimeout = (call, after, ...given) =>
      after === 45_000 ? void limits.push(call) : original(call, after, ...given);
    try {
      const followed = new Client(`http://127.0.0.1:${server.address().port}`, { patience: 0 }).follow({ begin: true }).next();
      await arrived;
      // The answer's head may still be on its way.
      await setTimeoutOfNode(100);
      for (const passed of limits) passed();
      await assert.rejects(followed, Unreachable);
    } finally {
      globalThis.setTimeout = original;
      server.closeAllConnections();
      server.close();
    }
  }
});

/** Returns a new key of signed notes: it signs, and has its verifier key. */
function noteKey(name, algorithm) {
  const { privateKey, publicKey } = generateKeyPairSync('ed25519');
  const typed = Buffer.concat([Buffer.of(algorithm), publicKey.export({ type: 'spki', format: 'der' }).subarray(-32)]);
  const id = createHash('sha256').update(`${name}\n`).update(typed).digest().subarray(0, 4);
  /** Returns the signature line of a text; `before` stands before the signature. */
  const line = (text, before = Buffer.of()) => {
    const signature = Buffer.concat([id, before, sign(null, Buffer.from(text), privateKey)]);
    return `\u2014 ${name} ${signature.toString('base64')}\n`;
  };
  return { vkey: `${name}+${id.toString('hex')}+${typed.toString('base64')}`, line };
}

/** A witness that cosigns every checkpoint. */
function witness(name) {
  const { vkey, line } = noteKey(name, 4);
  /** Returns the checkpoint with a cosignature of this witness added. */
  const cosign = (checkpoint, time = 1_700_000_000) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(time));
    return checkpoint + line(`cosignature/v1\ntime ${time}\n${checkpoint.split('\n\n')[0]}\n`, bytes);
  };
  return { vkey, cosign };
}

/** The key that signs the checkpoints of a log; without a witness policy, its signature is enough. */
function logKey(witnessPolicy) {
  const name = 'log.example';
  const { vkey, line } = noteKey(name, 1);
  const trust = `[[log]]
iss = "https://${name}"
origin = "${name}"
leaf_rule = "sha256-of-statement"
checkpoint_keys = ["${vkey}"]

[[log.keys]]
key = "${key.did}"
`;
  /** Returns the signed checkpoint of a tree with these entries. */
  const checkpoint = async (...entries) => {
    const { root } = await core.call('tree-root', { entries: entries.map((entry) => Buffer.from(entry)) });
    const text = `${name}\n${entries.length}\n${Buffer.from(root, 'hex').toString('base64')}\n`;
    return `${text}\n${line(text)}`;
  };
  /** Observes a log once that gives these answers: a checkpoint, then perhaps a proof. */
  const observe = async (known, ...answers) => {
    let observed;
    const given = answers.map((answer) => [200, {}, answer]);
    await against(given, async (url) => void (observed = await new Client(url, { trust }).monitorOnce(known, witnessPolicy)));
    return observed;
  };
  return { checkpoint, observe };
}

const proof = JSON.stringify({ path: [createHash('sha256').update('\0b').digest('hex')] });

/** Returns whether an error is a split view that keeps both checkpoints. */
const keeps = (known, seen) => (error) => {
  assert.ok(error instanceof SplitView, error);
  assert.deepEqual(error.evidence, { known, seen });
  return true;
};

test('two trees of one size are a split view, and both checkpoints are kept', async () => {
  const { checkpoint, observe } = logKey();
  const [first, other] = [await checkpoint('a', 'b'), await checkpoint('a', 'c')];
  const known = await observe(undefined, first);
  await assert.rejects(observe(known, other), keeps(first, other));
  assert.deepEqual(await observe(known, first), known);
});

test('an empty tree after entries is a split view, and before them it is not', async () => {
  const { checkpoint, observe } = logKey();
  const [empty, first] = [await checkpoint(), await checkpoint('a', 'b')];
  const known = await observe(await observe(undefined, empty), first);
  assert.equal(known.size, 2);
  await assert.rejects(observe(known, empty), keeps(first, empty));
});

test('a tree that does not continue the known one is a split view', async () => {
  const { checkpoint, observe } = logKey();
  const [first, grown, other] = await Promise.all(['a', 'ab', 'cb'].map((entries) => checkpoint(...entries)));
  const known = await observe(undefined, first);
  await assert.rejects(observe(known, other, proof), keeps(first, other));
  const newer = await observe(known, grown, proof);
  assert.equal(newer.size, 2);
  // An older checkpoint is not a contradiction, and the newer one stays known.
  assert.deepEqual(await observe(newer, first, proof), newer);
});

test('an answer that is not a proof is an error, and no split view', async () => {
  const { checkpoint, observe } = logKey();
  const known = await observe(undefined, await checkpoint('a'));
  for (const answer of ['{}', '[]', 'null', '{"path":7}', '{"path":["x"]}', 'no JSON']) {
    await assert.rejects(observe(known, await checkpoint('a', 'b'), answer), Unreachable);
  }
});

test('a checkpoint that another key signed is not verified', async () => {
  await assert.rejects(logKey().observe(undefined, await logKey().checkpoint('a')), NotVerified);
});

test('with a witness policy, a checkpoint needs its quorum', async () => {
  const [first, second, stranger] = ['w1.example', 'w2.example', 'w2.example'].map(witness);
  const policy = `witness w1 ${first.vkey}\nwitness w2 ${second.vkey}\ngroup both all w1 w2\nquorum both\n`;
  const { checkpoint, observe } = logKey(policy);
  const bare = await checkpoint('a');
  const one = first.cosign(bare);
  for (const seen of [bare, one, first.cosign(one), stranger.cosign(one)]) {
    await assert.rejects(observe(undefined, seen), (error) => error instanceof NotVerified && error.code === 'quorum-not-met');
  }
  assert.equal((await observe(undefined, second.cosign(one))).size, 1);
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

test('only admitted calls count, and a call in flight keeps its place', () =>
  session(
    async (session) => {
      const full = () => assert.rejects(session.begin('crm.read', {}), ({ code }) => code === 'budget_exceeded');
      const [first, second] = [await session.begin('crm.read', {}), await session.begin('crm.read', {})];
      await full();
      await first.finish(null, { isError: true, verdict: { verdict: 'denied' } });
      await first.finish(null, { isError: true, verdict: { verdict: 'denied' } });
      await second.finish(null, { isError: true, verdict: { verdict: 'served' } });
      await session.run('crm.read', () => 1, {});
      await full();
    },
    { budget: { max_calls: 2 } },
  ));

test('a text is not a list of patterns', async () => {
  for (const scope of [{ tools: 'crm.*' }, { deny: 'crm.*' }]) await assert.rejects(session(() => assert.fail(), scope), TypeError);
});

test('a call that was withdrawn does not count', () =>
  session(async (session) => {
    const call = await session.begin('crm.read', {});
    for (const error of [new Error('unapproved'), new Error('unapproved')]) await call.withdraw(error);
    await session.run('crm.read', () => 1, {});
    await assert.rejects(session.begin('crm.read', {}), ({ code }) => code === 'budget_exceeded');
  }));

test('an observed call beyond the budget is recorded, and gives no other call back', async () => {
  const ended = await session(async (session) => {
    await (await session.observe('crm.read', {})).finish(1);
    await (await session.observe('crm.read', {})).withdraw(new Error('unapproved'));
    await assert.rejects(session.begin('crm.read', {}), ({ code }) => code === 'budget_exceeded');
  });
  const { entries } = JSON.parse(await recorded(ended)).session;
  const events = entries.filter(({ type }) => type === 'system-event').map((entry) => entry['event-type']);
  assert.deepEqual(events, ['vap-commitment', 'call-out-of-bounds', 'call-denied']);
});

test('messages of the conversation are in the record', async () => {
  const ended = await session(
    async (session) => {
      await session.message('user', 'how many?');
      await session.message('assistant', 'seven');
    },
    { disclose: true },
  );
  const { entries } = JSON.parse(await recorded(ended)).session;
  const said = entries.slice(1).map(({ type, content }) => [type, content]);
  assert.deepEqual(said, [['user', 'how many?'], ['assistant', 'seven']]);
});

test('a call that cannot be signed does not count', () =>
  session(async (session) => {
    await assert.rejects(session.begin('crm.read', {}, { rationale: 'x'.repeat(1_000_000) }), CoreError);
    await session.run('crm.read', () => 1, {});
  }));

test('arguments that an intent cannot have are denied, and do not count', async () => {
  const malformed = ({ code }) => code === 'malformed';
  const cycle = [];
  cycle.push(cycle);
  for (const [disclose, depth] of [[false, 130], [true, 60]]) {
    const unusable = ['\ud800', 7n, cycle, JSON.parse('['.repeat(depth) + ']'.repeat(depth))];
    const ended = await session(
      async (session) => {
        for (const value of unusable) await assert.rejects(session.run('crm.read', () => assert.fail(), { value }), malformed, String(value));
        await assert.rejects(session.run('crm.\ud800', () => assert.fail(), {}), malformed);
        await session.run('crm.read', () => 1, {});
      },
      { disclose },
    );
    const { entries } = JSON.parse(await recorded(ended)).session;
    const denied = entries.filter((entry) => entry['event-type'] === 'call-denied').map(({ data }) => [data.tool, data.reason]);
    assert.deepEqual(denied, [...unusable.map(() => ['crm.read', 'malformed']), ['crm.\ufffd', 'malformed']]);
  }
});

test('a result that JSON does not have reaches the caller, and is recorded as text', async () => {
  const cycle = [];
  cycle.push(cycle);
  let deep = [];
  for (let level = 0; level < 200; level += 1) deep = [deep];
  const results = [
    [7n, '7'],
    [cycle, ''],
    [Symbol('s'), 'Symbol(s)'],
    ['\ud800', '\ufffd'],
    [deep, ''],
    [Object.create(null, { toJSON: { value: () => assert.fail() } }), 'object'],
    [undefined, null],
  ];
  for (const [result, output] of results) {
    for (const disclose of [true, false]) {
      const ended = await session(async (session) => assert.equal(await session.run('crm.read', () => result, {}), result), { disclose });
      const last = JSON.parse(await recorded(ended)).session.entries.at(-1);
      if (disclose) assert.deepEqual(last.output, output);
      else assert.ok(last.output.digest);
    }
  }
});

test('a tool that fails or is cancelled is recorded, and its error passes', async () => {
  const ended = await session(
    async (session) => {
      const fails = session.tool('crm.read', () => Promise.reject(new RangeError('SECRET')));
      await assert.rejects(fails({}), RangeError);
      const waits = session.tool('crm.read', ({ signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))));
      const controller = new AbortController();
      const cancelled = waits({ signal: controller.signal });
      setTimeout(() => controller.abort(), 10);
      await assert.rejects(cancelled, { name: 'AbortError' });
    },
    { budget: { max_calls: 2 }, disclose: true },
  );
  const results = JSON.parse(await recorded(ended)).session.entries.filter(({ type }) => type === 'tool-result');
  assert.deepEqual(results.map(({ output }) => output.error), ['RangeError', 'AbortError']);
  assert.ok(results.every((entry) => entry['is-error']));
});

test('the items of a generator are recorded at its end', async () => {
  const ended = await session(
    async (session) => {
      const read = session.tool('crm.read', async function* ({ fails }) {
        yield 1;
        if (fails) throw new RangeError();
        yield 2;
      });
      const all = async (fails) => {
        const items = [];
        for await (const item of await read({ fails })) items.push(item);
        return items;
      };
      assert.deepEqual(await all(false), [1, 2]);
      await assert.rejects(all(true), RangeError);
      for await (const item of await read({ fails: false })) if (item === 1) break;
      const sync = session.tool('crm.read', function* () {
        assert.fail();
      });
      await assert.rejects(sync({}), TypeError);
    },
    { budget: { max_calls: 4 }, disclose: true },
  );
  const results = JSON.parse(await recorded(ended)).session.entries.filter(({ type }) => type === 'tool-result');
  assert.deepEqual(results.map(({ output }) => output), [[1, 2], ...['RangeError', 'AbortError', 'TypeError'].map((error) => ({ error }))]);
});

test('of two calls in parallel, the budget allows one', async () => {
  const ended = await session(async (session) => {
    const calls = [1, 2].map((ticket) => session.run('crm.read', () => ticket, {}));
    const settled = await Promise.allSettled(calls);
    assert.deepEqual(settled.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
  });
  const { entries } = JSON.parse(await recorded(ended)).session;
  assert.deepEqual(entries.map(({ type }) => type).sort(), ['system-event', 'system-event', 'tool-call', 'tool-result']);
});

/** Adds messages until the record has no room for another call. */
async function fill(session) {
  for (let halvings = 0; halvings < 16; halvings += 1) await session.message('user', 'x'.repeat((4 << 20) >> halvings));
}

test('a record that is full denies calls, and can be signed', async () => {
  const ended = await session(
    async (session) => {
      const begun = [await session.begin('crm.read', { ticket: 1 }), await session.begin('crm.read', { ticket: 2 })];
      await fill(session);
      for (let attempt = 0; attempt < 2; attempt += 1) {
        await assert.rejects(session.run('crm.read', () => assert.fail(), {}), ({ code }) => code === 'record_full');
      }
      const verdict = { verdict: 'served', more: 'z'.repeat(10_000) };
      for (const call of begun) await call.finish('y'.repeat(10_000), { verdict });
    },
    { disclose: true, budget: { max_calls: 9 } },
  );
  assert.ok(ended.record.bytes.length <= 8 << 20);
  assert.equal(await checkContent(ended.record.bytes), 'complete');
  const { entries } = JSON.parse(await recorded(ended)).session;
  assert.equal(entries.filter((entry) => entry['event-type'] === 'record-full').length, 1);
  const results = entries.filter(({ type }) => type === 'tool-result');
  assert.equal(results.length, 2);
  for (const result of results) assert.deepEqual([result.output, result['vap-verdict']].map(Object.keys), [['digest'], ['digest']]);
});

test('a result for which the record has no room is recorded as its digest', async () => {
  const large = 'y'.repeat(9_000_000);
  const ended = await session(async (session) => assert.equal(await session.run('crm.read', () => large, {}), large), { disclose: true });
  const last = JSON.parse(await recorded(ended)).session.entries.at(-1);
  assert.deepEqual(last.output, { digest: await core.digestJson(large) });
});

test('a session that is closed twice at once is registered once', async () => {
  const receipt = Buffer.from(vector().receipts[0], 'hex');
  await against([[201, {}, receipt, 200]], async (url, requests) => {
    const saved = [];
    const more = { log: new Client(url), save: async (bytes) => void saved.push(bytes) };
    await session(async (session) => assert.equal(...(await Promise.all([session.close(), session.close()]))), more);
    assert.equal(requests.length, 1);
    // The record, the same before its registration, and with the receipt.
    assert.equal(saved.length, 3);
  });
});

test('a record that was not saved is saved when the session is closed again', async () => {
  const saved = [];
  const full = new Error('no space');
  const save = async (bytes) => {
    if (saved.push(bytes) === 1) throw full;
  };
  const ended = await session((session) => assert.rejects(session.close(), full), { save });
  assert.deepEqual(saved, [ended.record.bytes, ended.record.bytes]);
});

test('a record that cannot be signed is saved as JSON', async () => {
  const saved = [];
  const unsigned = session((session) => session.run('crm.read', () => 1, {}), {
    issuer: 'x'.repeat(9000),
    save: async (bytes) => void saved.push(bytes),
  });
  await assert.rejects(unsigned, CoreError);
  const { entries } = JSON.parse(new TextDecoder().decode(saved[0])).session;
  assert.deepEqual(entries.map(({ type }) => type), ['system-event', 'tool-call', 'tool-result']);
});

test('after the end of a session, no call is made', async () => {
  let unfinished;
  const ended = await session(async (session) => void (unfinished = await session.begin('crm.read', {})), { budget: { max_calls: 2 } });
  await assert.rejects(ended.run('crm.read', () => assert.fail(), {}), ({ code }) => code === 'session_ended');
  await unfinished.finish(1);
  assert.deepEqual(JSON.parse(await recorded(ended)).session.entries.map(({ type }) => type), ['system-event', 'tool-call']);
});

/** Returns a client of a log that is not reachable. */
async function unreachable() {
  let log;
  await against([], async (url) => void (log = new Client(url)));
  return log;
}

test('the error that ends a session passes if its log is not reachable', async (context) => {
  const warn = context.mock.method(console, 'warn', () => {});
  const [log, saved] = [await unreachable(), []];
  const failing = session(() => Promise.reject(new RangeError()), { log, save: async (bytes) => void saved.push(bytes) });
  await assert.rejects(failing, RangeError);
  assert.match(warn.mock.calls[0].arguments[0], /not registered: .*cannot reach/);
  const { payload } = await readStatement(saved.at(-1));
  const last = JSON.parse(new TextDecoder().decode(payload)).session.entries.at(-1);
  assert.deepEqual([last['event-type'], last.data], ['session-failed', { error: 'RangeError' }]);
});

test('a record whose log is not reachable is saved', async () => {
  const [log, saved] = [await unreachable(), []];
  await assert.rejects(session((session) => session.run('crm.read', () => 1, {}), { log, save: async (bytes) => void saved.push(bytes) }), Unreachable);
  assert.equal(JSON.parse(await recorded({ record: { bytes: saved.at(-1) } })).session.entries.at(-1).type, 'tool-result');
});

test('an empty list of denied tools is as none', async () => {
  const commitment = async (deny) => (await session(() => {}, { sessionId: 'session-0123456789', deny })).commitment;
  const [empty, none] = [await commitment([]), await commitment(undefined)];
  assert.ok(!('tools_deny' in empty.message.scope));
  assert.equal(empty.digest, none.digest);
});

/** Returns the middleware for an MCP server that answers every request with this Verdict and these members. */
function answering(vap, session, key, more = { content: [], tools: [] }) {
  const answer = async () => ({ ...more, _meta: { vap } });
  return new VapClient({ listTools: answer, callTool: answer }, session, key);
}

test('a commitment or an amendment that must be confirmed is not in force', async () => {
  const verdict = { verdict: 'clarify', verification: { reason: 'approval_required' } };
  const notInForce = ({ code, detail }) => code === 'approval_required' && detail.includes('is not in force');
  const ended = await session(async (session) => {
    const vap = answering(verdict, session);
    await assert.rejects(vap.commit(), notInForce);
    await assert.rejects(vap.amend('more', { add_scope: { tools_allow: ['mail.*'] } }), notInForce);
    await assert.rejects(session.begin('mail.send', {}), ({ code }) => code === 'scope_escape');
  });
  const declared = JSON.parse(await recorded(ended)).session.entries.filter((entry) => entry['event-type'] === 'vap-declaration');
  assert.deepEqual(declared.map(({ data }) => data['vap-verdict']), [verdict, verdict]);
});

test('a Verdict that is not an object is an error', async () => {
  const notAnObject = (error) => error instanceof Denied && error.code === 'no_verdict' && error.detail.includes('not an object');
  for (const verdict of ['served', 7, [], [{ verdict: 'served' }], true, false, '', 0]) {
    for (const gatewayKey of [undefined, JSON.stringify(key.jwk)]) {
      await session(async (session) => {
        await assert.rejects(answering(verdict, session, gatewayKey).commit(), notAnObject);
        await assert.rejects(answering(verdict, session, gatewayKey).callTool({ name: 'crm.read' }), notAnObject);
      });
    }
  }
});

test('all that a tool gives is recorded', async () => {
  const content = [{ type: 'text', text: '100' }];
  const structured = { content: [], structuredContent: { balance: 100 } };
  for (const [given, output] of [
    [{ content }, content],
    [{ content, resultType: 'complete', isError: true, structuredContent: undefined }, content],
    [structured, structured],
  ]) {
    const calling = (session) => answering({ verdict: 'served' }, session, undefined, given).callTool({ name: 'crm.read' });
    const ended = await session(calling, { disclose: true });
    assert.deepEqual(JSON.parse(await recorded(ended)).session.entries.at(-1).output, output);
  }
});

test('a session without a budget is refused as a gateway would', () =>
  assert.rejects(session(() => {}, { budget: {} }), (error) => error instanceof CoreError && error.code === 'no_budget'));
