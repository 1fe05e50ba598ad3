// Runs the verifier for web pages (sdk/core) on vectors, under the WASI of Node.js.
//
//   browser_verifier.mjs MODULE VECTORS   prints a list of { name, expected, given } of the cases in the folder
//
// VECTORS is the folder `vectors`: of it, `bundle` and `verifier` are run.

import { closeSync, mkdtempSync, openSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WASI } from 'node:wasi';

const [path, vectors] = process.argv.slice(-2);
const module = new WebAssembly.Module(readFileSync(path));
const folder = mkdtempSync(join(tmpdir(), 'browser-verifier-'));

function verify(request) {
  const [input, output] = ['request', 'answer'].map((name) => join(folder, name));
  writeFileSync(input, JSON.stringify({ operation: 'verify', ...request }));
  const [stdin, stdout] = [openSync(input, 'r'), openSync(output, 'w')];
  const wasi = new WASI({ version: 'preview1', stdin, stdout, returnOnExit: true });
  const instance = new WebAssembly.Instance(module, wasi.getImportObject());
  const code = wasi.start(instance);
  [stdin, stdout].forEach(closeSync);
  if (code !== 0) throw new Error(`the verifier ended with code ${code}`);
  return JSON.parse(readFileSync(output, 'utf8'));
}

const base64url = (text, encoding) => Buffer.from(text, encoding).toString('base64url');

/** Requests by the kind of vector, and what the answer means in the words of that kind. */
const kinds = {
  bundle: {
    request: ({ bundle, trust, witness_policy, now }) => ({ evidence: base64url(bundle, 'utf8'), trust, witness_policy, now }),
    refused: ['malformed', null],
  },
  verifier: {
    request: ({ statement, receipts, payload, trust, now }) => ({
      evidence: base64url(statement, 'hex'),
      receipts: receipts.map((receipt) => base64url(receipt, 'hex')),
      payload: payload == null ? null : base64url(payload, 'hex'),
      trust,
      now,
    }),
    refused: ['failed', 'malformed-statement'],
  },
};

const results = [];
for (const [kind, { request, refused }] of Object.entries(kinds)) {
  for (const file of readdirSync(join(vectors, kind), { recursive: true }).filter((name) => name.endsWith('.json'))) {
    const vector = JSON.parse(readFileSync(join(vectors, kind, file), 'utf8'));
    const { error, result } = verify(request(vector));
    const given = error ? refused : [result.verdict.outcome, result.verdict.reason];
    results.push({ name: `${kind}/${file}`, expected: [vector.outcome, vector.reason ?? null], given });
  }
}
rmSync(folder, { recursive: true });
console.log(JSON.stringify(results));
