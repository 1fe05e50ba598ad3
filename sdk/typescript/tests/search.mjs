// Verifies the answer of a proven search: `search.mjs ANSWER TRUST` prints the outcome, the subject that was asked for, and how many entries have it.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { verifySearch } from '@tabellion/sdk';

const [answer, trust] = [readFileSync(process.argv[2]), readFileSync(process.argv[3], 'utf8')];
const verdict = await verifySearch(answer, trust);
assert.equal((await verifySearch(answer, '')).outcome, 'not-proven');
await assert.rejects(verifySearch(answer.subarray(0, -1), trust), { code: 'malformed-answer' });
console.log(verdict.outcome, verdict.question.terms[0].value, verdict.found.length);
