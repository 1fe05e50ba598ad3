// What VapClient promises, through a real gateway: `gateway.mjs URL`, with the agent's key in agent.pem.
//
// The gateway denies payments to nobody, has payments above 1000 confirmed, and reduces each commitment. Only calls with the
// argument `allowed` may reach the server behind it: the caller of this script checks that.

import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import * as v2 from '@modelcontextprotocol/client';
import { Client as ClientV1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as TransportV1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema, McpError } from '@modelcontextprotocol/sdk/types.js';
import { core, CoreError, Denied, generateKey, loadKey, readStatement, TabellionError, VapClient, withSession } from '@tabellion/sdk';

const url = new URL(process.argv.at(-1));
const { keys } = await (await fetch(new URL('/.well-known/jwks.json', url))).json();
const gatewayKey = JSON.stringify(keys[0]);
const key = await loadKey(await readFile('agent.pem', 'utf8'));
const allowed = { allowed: true };
const denied = { to: 'nobody', amount: 1 };
const large = { to: 'somebody', amount: 5000 };
const who = { name: 'test', version: '1' };

/** Both public SDKs, the newer one in both revisions of MCP. `answer` is what the person behind the client says. */
const sdks = {
  v1: async (answer) => {
    const client = new ClientV1(who, answer && { capabilities: { elicitation: {} } });
    if (answer) client.setRequestHandler(ElicitRequestSchema, answer);
    await client.connect(new TransportV1(url));
    return client;
  },
  'v2 legacy': (answer) => connectV2('legacy', answer),
  'v2 2026-07-28': (answer) => connectV2({ pin: '2026-07-28' }, answer),
};

async function connectV2(mode, answer) {
  const capabilities = answer && { elicitation: {} };
  const client = new v2.Client(who, { ...(capabilities && { capabilities }), versionNegotiation: { mode } });
  if (answer) client.setRequestHandler('elicitation/create', answer);
  await client.connect(new v2.StreamableHTTPClientTransport(url));
  return client;
}

/** Runs a test with a session and the client of an SDK. */
async function through(body, { sdk = 'v1', answer, ...more } = {}) {
  const given = { goal: 'pay', tools: ['echo', 'payments.*'], budget: { max_calls: 9 }, agent: 'did:example:a' };
  return withSession({ ...given, key, save: async () => {}, ...more }, async (session) => {
    const client = await sdks[sdk](answer);
    try {
      await body(new VapClient(client, session, gatewayKey));
    } finally {
      await client.close();
    }
  });
}

async function inAll(body, more) {
  for (const sdk of Object.keys(sdks)) await through(body, { ...more, sdk });
}

/** Returns a client whose answers pass somebody who changes each Verdict, or removes it. */
function forged({ client, session }, change, more = {}) {
  const changed = ({ _meta: { vap, ...meta }, ...result }) => ({ ...result, ...more, _meta: { ...meta, vap: change(vap) } });
  const forger = {
    listTools: async (...given) => changed(await client.listTools(...given)),
    callTool: async (...given) => changed(await client.callTool(...given)),
  };
  return new VapClient(forger, session, gatewayKey);
}

/** Returns a client whose answers become errors: `failure` makes one of the genuine Verdict, or none. */
function interrupted({ client, session }, failure) {
  const answer = (result) => {
    const error = failure(result._meta.vap);
    if (error) throw error;
    return result;
  };
  const interrupter = {
    listTools: async (...given) => answer(await client.listTools(...given)),
    callTool: async (...given) => answer(await client.callTool(...given)),
  };
  return new VapClient(interrupter, session, gatewayKey);
}

/** Returns a failure of every admitted call: what `make` makes of its Verdict. */
const afterPermit = (make) => (verdict) => (verdict.in_response_to === 'intent_call' ? make(verdict) : undefined);

async function declarations(vap) {
  return (await entries(vap)).filter((entry) => entry['event-type'] === 'vap-declaration').map(({ data }) => data);
}

async function entries({ session }) {
  await session.close();
  const { payload } = await readStatement(session.record.bytes);
  return JSON.parse(new TextDecoder().decode(payload)).session.entries;
}

const pay = (vap, args) => vap.callTool({ name: 'payments.send', arguments: args });
const call = (vap, name, args = {}) => vap.callTool({ name, arguments: args });
const deniedBy = (code) => (error) => error instanceof Denied && error.code === code;
const failing = (code) => (error) => error instanceof TabellionError && error.code === code;
const notSent = (code) => (error) => deniedBy(code)(error) && error.detail.startsWith('not sent');

async function mustNotSend(vap, code) {
  await assert.rejects(call(vap, 'echo'), notSent(code));
  await assert.rejects(vap.amend('one more', { increase_budget: { add_calls: 1 } }), notSent(code));
  await assert.rejects(vap.commit(), notSent(code));
}

test('a denied call is an error with the reason, and is recorded', () =>
  inAll(async (vap) => {
    await vap.commit();
    const result = await pay(vap, denied);
    assert.ok(result.isError && result.content[0].text.includes('policy:never'));
    const last = (await entries(vap)).at(-1);
    assert.ok(last['is-error']);
    assert.equal(last['vap-verdict'].verification.reason, 'policy:never');
  }));

test('a call without a commitment is denied', () =>
  through(async (vap) => {
    const result = await call(vap, 'echo');
    assert.ok(result.isError && result.content[0].text.includes('denied'));
  }));

test('a denied commitment is an error with the reason', () =>
  through(
    async (vap) => {
      await assert.rejects(vap.commit(), (error) => error instanceof Denied && /denied the commitment \[\w+\]/.test(error.message));
      assert.ok((await call(vap, 'echo')).isError);
    },
    { agent: 'did:example:b' },
  ));

test('amendments follow each other and widen the session', () =>
  inAll(
    async (vap) => {
      await vap.commit();
      await assert.rejects(call(vap, 'files.delete'), deniedBy('scope_escape'));
      await vap.amend('a file is in the way', { add_scope: { tools_allow: ['files.delete'] } });
      assert.ok(!(await call(vap, 'files.delete', allowed)).isError);
      await assert.rejects(call(vap, 'echo'), deniedBy('budget_exceeded'));
      await vap.amend('one more', { increase_budget: { add_calls: 1 } });
      assert.ok(!(await call(vap, 'echo', allowed)).isError);
      assert.equal((await declarations(vap)).length, 3);
    },
    { budget: { max_calls: 1 } },
  ));

test('a denied amendment is an error with the reason, and widens nothing', () =>
  through(async (vap) => {
    await vap.commit();
    const more = { add_scope: { tools_allow: ['*'] }, increase_budget: { add_limits: { usd: 1 } } };
    await assert.rejects(vap.amend('dollars', more), deniedBy('no_such_limit'));
    await assert.rejects(call(vap, 'files.delete'), deniedBy('scope_escape'));
  }));

for (const said of [{ action: 'accept', content: { confirm: true } }, { action: 'accept', content: { confirm: false } }, { action: 'decline' }, { action: 'cancel' }]) {
  test(`the person behind the client says ${JSON.stringify(said)}`, async () => {
    const asked = [];
    const answer = async ({ params }) => (asked.push(params.message), said);
    const confirmed = said.content?.confirm === true;
    await inAll(
      async (vap) => {
        await vap.commit();
        const result = await pay(vap, { ...large, allowed: confirmed });
        assert.equal(result.isError ?? false, !confirmed);
        assert.ok(confirmed || result.content[0].text.includes('declined'));
        assert.ok(asked.pop().includes('5000') && asked.length === 0);
      },
      { answer },
    );
  });
}

test('where nobody can be asked, the call is not made', () =>
  inAll(async (vap) => {
    await vap.commit();
    const result = await pay(vap, large);
    assert.ok(result.isError && result.content[0].text.includes('confirmation_required'));
    assert.equal(result._meta.vap.verdict, 'clarify');
  }));

test('without a genuine Verdict on the commitment, nothing more is sent', async () => {
  const forgeries = [
    ['verdict-signature-invalid', (verdict) => ({ ...verdict, verdict: 'served' })],
    ['verdict-signature-invalid', ({ signature, ...verdict }) => verdict],
    ['no_verdict', () => undefined],
  ];
  for (const [code, change] of forgeries) {
    await through(async (vap) => {
      const forger = forged(vap, change);
      await assert.rejects(forger.commit(), failing(code));
      await mustNotSend(forger, code);
    });
  }
});

test('a Verdict that another key signed is refused', () =>
  through(async ({ client, session }) => {
    const other = new VapClient(client, session, JSON.stringify((await generateKey()).jwk));
    const code = 'verdict-signature-invalid';
    await assert.rejects(other.commit(), (error) => error instanceof CoreError && error.code === code);
    await mustNotSend(other, code);
  }));

test('a result without a genuine Verdict is not handed out', async () => {
  const seen = [];
  const forgeries = [
    ['verdict-signature-invalid', (verdict) => (verdict.verdict === 'denied' ? { ...verdict, verdict: 'served' } : verdict), 'payments.send', denied],
    ['verdict-of-another-message', (verdict) => (seen.push(verdict), seen[0]), 'echo', allowed],
    ['no_verdict', (verdict) => (verdict.accepted_commitment_digest ? verdict : undefined), 'echo', allowed],
  ];
  for (const [code, change, tool, args] of forgeries) {
    await through(async (vap) => {
      const forger = forged(vap, change);
      await forger.commit();
      await assert.rejects(call(forger, tool, args), failing(code));
      await mustNotSend(forger, code);
      const last = (await entries(forger)).at(-1);
      assert.deepEqual([last.type, last['is-error'], 'vap-verdict' in last], ['tool-result', true, false]);
    });
  }
});

test('a call that begins while a forged answer is verified is not sent', () =>
  through(async (vap) => {
    let meanwhile;
    const forger = forged(vap, (verdict) => {
      if (verdict.accepted_commitment_digest) return verdict;
      meanwhile = assert.rejects(call(forger, 'echo'), notSent('no_verdict'));
      return undefined;
    });
    await forger.commit();
    await assert.rejects(call(forger, 'echo', allowed), failing('no_verdict'));
    await meanwhile;
  }));

test('a denial that is shown as a success is not handed out', async () => {
  for (const [args, code] of [[denied, 'policy:never'], [large, 'confirmation_required']]) {
    await inAll(async (vap) => {
      const forger = forged(vap, (verdict) => verdict, { isError: false });
      await forger.commit();
      await assert.rejects(pay(forger, args), deniedBy(code));
      await mustNotSend(forger, code);
    });
  }
});

const errors = [McpError, v2.ProtocolError];
const one = { increase_budget: { add_calls: 1 } };

test('the Verdict on a call that ends with an error is recorded', async () => {
  for (const Failure of errors) {
    await through(async (vap) => {
      const erring = interrupted(vap, afterPermit((verdict) => new Failure(7, 'broken', { vap: verdict, a: 1 })));
      await erring.commit();
      await assert.rejects(call(erring, 'echo', allowed), Failure);
      await assert.rejects(call(erring, 'echo', allowed), Failure);
      const last = (await entries(vap)).at(-1);
      assert.ok(last['is-error']);
      assert.equal(last['vap-verdict'].verdict, 'served');
    });
  }
});

test('after an error without a genuine Verdict, nothing more is sent', async () => {
  const forgeries = [
    ['verdict-signature-invalid', (verdict) => ({ vap: { ...verdict, verdict: 'denied' } })],
    ['verdict-signature-invalid', ({ signature, ...verdict }) => ({ vap: verdict })],
    ['no_verdict', () => ({ vap: 'served' })],
    ['no_verdict', (verdict) => ({ other: verdict })],
    ['no_verdict', () => undefined],
  ];
  for (const Failure of errors) {
    for (const [code, dataOf] of forgeries) {
      await through(async (vap) => {
        const erring = interrupted(vap, afterPermit((verdict) => new Failure(7, 'broken', dataOf(verdict))));
        await erring.commit();
        await assert.rejects(call(erring, 'echo', allowed), failing(code));
        await mustNotSend(erring, code);
        const last = (await entries(vap)).at(-1);
        assert.deepEqual([last.type, last['is-error'], 'vap-verdict' in last], ['tool-result', true, false]);
      });
    }
  }
});

test('an error that cannot have a Verdict does not end the calls', async () => {
  const http = Object.assign(new Error('broken'), { code: 502 });
  const failures = errors.flatMap((Failure) => [new Failure(-32602, 'broken'), new Failure(7, 'broken', 'text')]);
  for (const failure of [...failures, http, new Error('broken')]) {
    await through(async (vap) => {
      const erring = interrupted(vap, afterPermit(() => failure));
      await erring.commit();
      await assert.rejects(call(erring, 'echo', allowed), /broken/);
      await assert.rejects(call(erring, 'echo', allowed), /broken/);
      assert.ok(!('vap-verdict' in (await entries(vap)).at(-1)));
    });
  }
});

test('every declaration that was sent is recorded with what came of it', () =>
  through(async (vap) => {
    const verdict = await vap.commit();
    await assert.rejects(interrupted(vap, () => new RangeError()).amend('one more', one), RangeError);
    const unsigned = ({ signature, ...rest }) => rest;
    await assert.rejects(forged(vap, unsigned).amend('one more', one), failing('verdict-signature-invalid'));
    const recorded = await declarations(vap);
    assert.deepEqual(recorded.map(({ type }) => type), ['scope_commitment', 'scope_amendment', 'scope_amendment']);
    assert.deepEqual(recorded[0]['vap-verdict'], verdict);
    assert.deepEqual(recorded.map(({ error }) => error), [undefined, 'RangeError', 'verdict-signature-invalid']);
    assert.deepEqual(recorded.map(({ increase_budget }) => increase_budget), [undefined, { add_calls: 1 }, { add_calls: 1 }]);
    for (const { message } of recorded) assert.deepEqual(Object.keys(message), ['digest', 'signature']);
  }));

test('after an amendment whose answer was lost, no other is possible, and calls go on', () =>
  through(async (vap) => {
    await vap.commit();
    await assert.rejects(interrupted(vap, () => new Error('lost')).amend('one more', one), /lost/);
    await assert.rejects(vap.amend('one more', one), /the gateway denied the amendment \[chain_broken\]/);
    await assert.rejects(vap.amend('one more', one), /not sent: .* begin a new session \[chain_broken\]/);
    assert.ok(!(await call(vap, 'echo', allowed)).isError);
  }));

test('calls in parallel are recorded with their own Verdicts', () =>
  inAll(
    async (vap) => {
      await vap.commit();
      const calls = [1, 2, 3, 4].map((at) => call(vap, 'echo', { ...allowed, at }));
      const results = await Promise.all([...calls, pay(vap, denied)]);
      assert.deepEqual(results.map(({ isError }) => Boolean(isError)), [false, false, false, false, true]);
      const all = await entries(vap);
      const intents = new Map(all.filter(({ type }) => type === 'tool-call').map((entry) => [entry['call-id'], entry['vap-intent']]));
      const ended = all.filter(({ type }) => type === 'tool-result');
      assert.equal(ended.length, 5);
      for (const entry of ended) await core.verifyVerdict(entry['vap-verdict'], gatewayKey, intents.get(entry['call-id']));
    },
    { disclose: true },
  ));

test('of calls in parallel, no more are sent than the budget allows', () =>
  through(
    async (vap) => {
      await vap.commit();
      const settled = await Promise.allSettled([1, 2, 3, 4].map(() => call(vap, 'echo', allowed)));
      assert.deepEqual(settled.map(({ reason }) => reason?.code).filter(Boolean), ['budget_exceeded', 'budget_exceeded']);
    },
    { budget: { max_calls: 2 } },
  ));

test('a cancelled call is recorded, and calls go on', () =>
  inAll(async (vap) => {
    await vap.commit();
    const controller = new AbortController();
    const waiter = {
      callTool: async (...given) => {
        await vap.client.callTool(...given);
        controller.abort();
        controller.signal.throwIfAborted();
      },
    };
    await assert.rejects(call(new VapClient(waiter, vap.session, gatewayKey), 'echo', allowed), { name: 'AbortError' });
    assert.ok(!(await call(vap, 'echo', allowed)).isError);
    const ended = (await entries(vap)).filter(({ type }) => type === 'tool-result');
    assert.deepEqual(ended.map((entry) => [entry['is-error'], 'vap-verdict' in entry]), [[true, false], [false, true]]);
  }));

test('a call that was denied or declined does not count', () =>
  inAll(
    async (vap) => {
      await vap.commit();
      for (const args of [denied, large]) assert.ok((await pay(vap, args)).isError);
      assert.ok(!(await call(vap, 'echo', allowed)).isError);
      await assert.rejects(call(vap, 'echo'), deniedBy('budget_exceeded'));
    },
    { answer: async () => ({ action: 'decline' }), budget: { max_calls: 1 } },
  ));
