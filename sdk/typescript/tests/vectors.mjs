// Runs the test vectors through the TypeScript package; sdk/python/tests/vectors.py does the same for Python.
//
//   vectors.mjs FOLDER     prints how many cases of each family passed, as JSON; the first that fails ends it
//
// FOLDER is `vectors`. Some cases are for functions that the SDKs do not have (OTHER_FUNCTIONS).

import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { core, CoreError } from '@tabellion/sdk';
import { policyFor } from './vector-policies.mjs';

/** Families of statements that a log under a policy admits or refuses. */
const DECIDED = [
  'aer',
  'agentroa-chain',
  'agentroa-policy',
  'agentroa-registry',
  'conversation',
  'erasure',
  'index-head',
  'jwk-set',
  'operator',
  'vap',
  'vrf',
];

/** Cases for the reader of bytes, the default nesting, and a reader of JWKs that does not look whether the point is on the curve. */
const OTHER_FUNCTIONS = new Set([
  'json/invalid-utf-8.json',
  'json/overlong-utf-8.json',
  'json/surrogate-in-utf-8.json',
  'json/utf-16.json',
  'json/depth-65.json',
  'json/depth-attack.json',
  'jwk/p-384.json',
  'jwk/p-521.json',
]);

const hex = (text) => Buffer.from(text, 'hex').toString('base64url');
const optional = (text) => (text == null ? undefined : hex(text));
const pick = (object, names) => names.map((name) => object?.[name] ?? null);

/** Returns the result and no error, or no result and the error. */
async function tried(operation, args) {
  try {
    return [await core.call(operation, args)];
  } catch (error) {
    if (error instanceof CoreError) return [undefined, error];
    throw error;
  }
}

const outcome = ([result, error], refused) => (error ? refused : [result.verdict.outcome, result.verdict.reason]);
const succeeds = async (operation, args) => (await tried(operation, args))[1] === undefined;
const some = (object, names) => Object.fromEntries(names.map((name) => [name, object[name]]));

/** A case that a log with the policy and entries of the case decides. */
async function decidedStatement(vector, _, family) {
  const statement = hex(vector.statement);
  if (vector.entry_id) return [(await core.call('read-statement', { statement })).entry, vector.entry_id];
  const given = { policy: policyFor(testsPolicy, family, vector), entries: (vector.log ?? []).map(hex), now: vector.at };
  const trial = await core.call('try-policy', { statement, ...given });
  let decided = trial.outcome === 'refused' ? trial.rule : trial.outcome;
  const [, broken] = await tried('check-content', { statement, content: optional(vector.disclosed) });
  // What is disclosed is checked after the admission.
  if (vector.disclosed && decided === 'admitted' && broken) decided = broken.code;
  // A rule of the content that is broken is the one that decided, as it holds under every policy.
  const rules = [decided, broken ? broken.code : decided];
  if (vector.expected === 'admit') return [rules, ['admitted', 'admitted']];
  return [[...rules, vector.expected, Boolean(vector.why)], [vector.rule, vector.rule, 'refuse', true]];
}

const registryOf = ({ registry, operator }) => ({ document: JSON.stringify(registry), operators: [JSON.stringify(operator)] });
const denial = (found) =>
  found.outcome === 'deny' ? some(found, ['outcome', 'reason', 'code', 'hop', 'dimension']) : undefined;

/** A call under a delegation chain of AgentROA. */
async function chainDecision({ chain, at, call: capability, presenter, pinned, expected, ...vector }) {
  const given = { chain, registry: registryOf(vector), at, clock_skew: 60 };
  const found = await core.call('verify-chain', { ...given, call: { capability, presenter, pinned } });
  return [denial(found) ?? { outcome: found.outcome }, expected];
}

/** For each family: what the case gives, and what it should give. */
const families = {
  bundle: async ({ bundle, trust, witness_policy, now, ...expected }) => {
    const evidence = Buffer.from(bundle).toString('base64url');
    const answer = await tried('verify', { evidence, trust, witness_policy, now });
    return [outcome(answer, ['malformed', null]), pick(expected, ['outcome', 'reason'])];
  },
  verifier: async ({ statement, receipts, payload, trust, now, ...expected }) => {
    const args = { evidence: hex(statement), receipts: receipts.map(hex), payload: optional(payload), trust, now };
    return [outcome(await tried('verify', args), ['failed', 'malformed-statement']), pick(expected, ['outcome', 'reason'])];
  },
  consistency: async ({ receipt, known_size: size, known_root: root, trust, now, ...expected }) => {
    const verdict = await core.call('verify-consistency', { receipt: hex(receipt), known: { size, root }, trust, now });
    return [pick(verdict, ['outcome', 'reason', 'root']), pick(expected, ['outcome', 'reason', 'newer_root'])];
  },
  'merkle/inclusion': async (vector) => {
    const args = some(vector, ['leaf_hash', 'leaf_index', 'tree_size', 'path', 'root']);
    return [await succeeds('inclusion-proof', args), vector.valid];
  },
  'merkle/consistency': async (vector) => {
    const args = some(vector, ['older_size', 'newer_size', 'older_root', 'newer_root', 'path']);
    return [await succeeds('consistency-proof', args), vector.valid];
  },
  'merkle/roots': async ({ entries, root }) => [(await core.call('tree-root', { entries: entries.map(hex) })).root, root],
  'tlog/note': async ({ note, keys, signed_by }) => {
    const [result] = await tried('verify-note', { note, keys });
    return [result?.signed_by ?? null, signed_by ?? null];
  },
  'tlog/vkey': async ({ vkey, ...expected }) => {
    const [result] = await tried('read-verifier-key', { key: vkey });
    return [pick(result, ['name', 'id']), pick(expected, ['name', 'id'])];
  },
  'tlog/checkpoint': async ({ text, ...expected }) => {
    const [result] = await tried('read-checkpoint', { text });
    const names = ['origin', 'size', 'root', 'extensions'];
    return [pick(result, names), pick(expected, names)];
  },
  'tlog/cosignature': async ({ note, witness, time }) => {
    const [result] = await tried('read-cosignature', { note, witness });
    return [result?.time ?? null, time ?? null];
  },
  'scitt/statement/accepted': async (vector) => {
    const read = await core.call('read-statement', { statement: hex(vector.input) });
    const args = { statement: hex(vector.input), public_key: vector.key, payload: optional(vector.detached) };
    const names = ['entry', 'twin', 'alg', 'iss', 'sub', 'missing'];
    return [
      [...pick(read, [...names, 'statement', 'kid', 'receipts']), await succeeds('verify-signature', args)],
      [...pick(vector, names), hex(vector.s), optional(vector.kid) ?? null, vector.receipts.map(hex), vector.signature === 'valid'],
    ];
  },
  'scitt/statement/refused': async ({ input, error: words, offset }) => {
    const [, error] = await tried('read-statement', { statement: hex(input) });
    return [pick(error, ['code', 'detail', 'offset']), ['malformed-statement', words, offset]];
  },
  'scitt/receipt/accepted': async ({ input, key, leaf, older_size: size, older_root: root, ...expected }) => {
    const which = leaf ? { leaf } : { known: { size, root } };
    const result = await core.call('receipt-root', { receipt: hex(input), public_key: key, ...which });
    const names = ['root', 'tree_size', 'signed_tree_size', 'leaf_index'];
    return [pick(result, names), pick(expected, names)];
  },
  'scitt/receipt/refused': async ({ input, error: words }) => {
    const { did: public_key } = await someKey;
    const [, error] = await tried('receipt-root', { receipt: hex(input), public_key, leaf: '00'.repeat(32) });
    return [error?.detail, words];
  },
  'scitt/receipt/unproven': async ({ input, key, leaf, error: kind }) => {
    const codes = {
      signature: ['receipt-signature-invalid'],
      proof: ['receipt-proof-invalid'],
      payload: ['receipt-payload-differs'],
      'no inclusion proof': ['no-inclusion-proof'],
      consistency: ['no-consistency-proof', 'consistency-other-size'],
      statement: ['receipt-statement-differs'],
    };
    const [, error] = await tried('receipt-root', { receipt: hex(input), public_key: key, leaf });
    return [codes[kind].includes(error?.code), true];
  },
  'scitt/problem': async ({ input, valid, ...expected }) => {
    const [result] = await tried('read-problem', { problem: hex(input) });
    const names = ['title', 'detail', 'instance', 'code', 'rule', 'offset'];
    return [[result !== undefined, ...pick(result, names)], [valid, ...pick(expected, names)]];
  },
  'scitt/did': async ({ did, cose_key }) => {
    const [result] = await tried('read-key', { public_key: did });
    return [result?.cose_key, optional(cose_key)];
  },
  'scitt/keys/accepted': async ({ input, spki_pem, did_key, did_jwk }) => {
    const forms = [input, spki_pem, did_key, did_jwk];
    const keys = await Promise.all(forms.map((public_key) => core.call('read-key', { public_key })));
    return [keys.map(({ did, pem }) => [did, pem]), forms.map(() => [did_key, spki_pem])];
  },
  'scitt/keys/refused': async ({ input, error: words }) => {
    const [, error] = await tried('read-key', { public_key: input });
    return [error?.detail, words];
  },
  'jose/jcs': async ({ text, canonical }) => {
    const given = await core.call('digest-json', { json: text });
    return [new TextDecoder().decode(core.decode(given.canonical)), canonical];
  },
  'jose/json': async ({ text, hex: bytes, valid, offset, pointer }) => {
    const [, error] = await tried('digest-json', { json: text ?? Buffer.from(bytes, 'hex').toString() });
    if (valid) return [error, undefined];
    const where = `at byte ${offset}, ${pointer || 'top level'}: `;
    return [error?.detail.slice(0, where.length), where];
  },
  'jose/jwk': async ({ text, thumbprint }) => {
    const [key] = await tried('read-key', { public_key: text });
    return [key && Buffer.from(core.decode(key.thumbprint)).toString('hex'), thumbprint];
  },
  'admission/verdict': async ({ expected, binding, verdict }) => {
    const { signed, jwk } = expected.accept;
    // The messages of these cases are all `{}`.
    const message = binding.req && '{}';
    const facts = await core.call('verify-verdict', { verdict: signed, public_key: JSON.stringify(jwk), message });
    return [facts, { verdict: verdict.verdict, session_id: verdict.session_id, iat: binding.iat }];
  },
  'admission/message': async ({ method, text, own, expected }) => {
    const [result, error] = await tried('read-message', { method, text, own });
    if (error) return [error.code, expected.refuse?.split(' ')[0]];
    return [some(result, Object.keys(expected.accept ?? {})), expected.accept];
  },
  'admission/pattern': async ({ tool, allow, deny, expected }) => [await core.allows(tool, allow, deny), 'accept' in expected],
  ...Object.fromEntries(DECIDED.map((family) => [family, decidedStatement])),
  vap: async (vector, rule, family) => {
    if (rule.startsWith('vap-audit-')) {
      const statement = hex(vector.statement);
      const { payload } = await core.call('read-statement', { statement });
      const [[, ofObject], [, ofContent]] = [await tried('check-object', { payload }), await tried('check-content', { statement })];
      if (ofObject?.code !== ofContent?.code) return [[ofObject, ofContent], 'the same rule'];
    }
    return decidedStatement(vector, rule, family);
  },
  'policy/decided': async ({ policy, statement, answer }) => {
    const { outcome, rule, place } = await core.call('try-policy', { policy, statement: hex(statement) });
    const answers = { admitted: { admitted_by: rule }, undecided: { undecided: rule }, refused: { refused_by: rule, place } };
    return [answers[outcome], answer];
  },
  'policy/sound': async ({ toml, payload, digest }) => {
    const read = [await core.call('check-policy', { policy: toml }), await core.call('check-policy', { policy: payload })];
    return [read, read.map(() => ({ mistakes: [], digest, payload }))];
  },
  'policy/mistaken': async ({ toml, mistakes }) => [await core.call('check-policy', { policy: toml }), { mistakes }],
  ...Object.fromEntries(
    ['call', 'chain', 'permit', 'pseudocode', 'scope', 'signature'].map((kind) => [`agentroa/${kind}`, chainDecision]),
  ),
  'agentroa/proof': async ({ chain, proof, at, call: capability, audience, arguments: given, expected, ...vector }) => {
    const args = given === null ? undefined : JSON.stringify(given);
    const of = { chain, registry: registryOf(vector), at, clock_skew: 60 };
    const found = await core.call('verify-proof', { ...of, proof, capability, audience, arguments: args });
    return [denial(found) ?? found, expected];
  },
  'search-terms': async ({ statement, payload, terms: listed, blind, keys_sha256 }) => {
    const read = await core.call('read-terms', { statement: hex(statement), payload: optional(payload) });
    const codes = read.blind.map(({ number }) => number);
    if (listed) return [[read.terms.map(({ number, value }) => [number, value]), codes], [listed, blind]];
    const keys = new Set([...read.terms, ...read.blind].map(({ key }) => key));
    const digest = createHash('sha256').update(Buffer.from([...keys].sort().join(''), 'hex')).digest('hex');
    return [[digest, codes], [keys_sha256, blind]];
  },
};

const someKey = core.generateKey();
const vectors = process.argv.at(-1);
const testsPolicy = JSON.parse(readFileSync(join(vectors, 'policy/sound/tests.json'), 'utf8')).toml;
const passed = {};
for (const [family, run] of Object.entries(families)) {
  const files = readdirSync(join(vectors, family), { recursive: true }).filter((name) => name.endsWith('.json'));
  for (const file of files) {
    const rule = basename(dirname(join(vectors, family, file)));
    if (OTHER_FUNCTIONS.has(`${rule}/${basename(file)}`)) continue;
    const [given, expected] = await run(JSON.parse(readFileSync(join(vectors, family, file), 'utf8')), rule, family);
    if (!isDeepStrictEqual(given, expected)) {
      throw new Error(`${family}/${file}: given ${JSON.stringify(given)}, expected ${JSON.stringify(expected)}`);
    }
    passed[family] = (passed[family] ?? 0) + 1;
  }
}
console.log(JSON.stringify(passed));
