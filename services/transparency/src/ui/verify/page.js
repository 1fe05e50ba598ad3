// The page: reads files, runs the verifier (host.js) and shows every check. Texts from evidence are only ever text nodes.
'use strict';

const element = (id) => document.getElementById(id);

/** Evidence that was fetched or dropped, in place of a chosen file. */
let given = null;

/** Why the service does not serve evidence, by the status of its answer. */
const REFUSALS = {
  401: 'it asks for a token',
  403: 'it is closed to your token',
  404: 'it has no such evidence',
  409: 'it is too large, or takes no receipt: use the program',
  410: 'it was erased',
  429: 'too many requests, try again later',
  503: 'try again in some seconds',
};

/** The module: in this file if the page was saved, else from the server, once. */
const verifier = (async () => {
  const saved = element('module');
  if (saved) {
    const bytes = Uint8Array.from(atob(saved.textContent.trim()), (character) => character.charCodeAt(0));
    return WebAssembly.compile(bytes);
  }
  const response = await fetch('verify/verifier.wasm');
  if (!response.ok) throw new Error(`the verifier could not be loaded (${response.status})`);
  return WebAssembly.compile(await response.arrayBuffer());
})();
verifier.catch(showError);

// Without scripts the form can do nothing, so it is not shown.
element('form').hidden = false;
element('form').addEventListener('submit', (event) => {
  event.preventDefault();
  verify().catch(showError);
});
readInto('trust-file', 'trust');
readInto('policy-file', 'policy');
for (const type of ['dragover', 'dragleave', 'drop']) document.addEventListener(type, drop);
const named = evidenceInAddress();
if (named) fetchEvidence(named).catch(showError);

async function verify() {
  const chosen = element('evidence').files[0] ?? given;
  if (!chosen) throw new Error('choose the evidence first');
  const request = {
    operation: 'verify',
    evidence: await base64url(chosen),
    trust: element('trust').value,
    now: Math.floor(Date.now() / 1000),
  };
  const payload = element('payload').files[0];
  if (payload) request.payload = await base64url(payload);
  if (element('policy').value.trim()) request.witness_policy = element('policy').value;
  show(await runVerifier(await verifier, request));
}

/** The evidence that the query of this page's address names, and its path in the service; null if it names none. */
function evidenceInAddress() {
  const query = new URLSearchParams(location.search);
  const [entry, size] = [query.get('entry') ?? '', query.get('checkpoint') ?? ''];
  if (/^[0-9a-f]{64}$/.test(entry)) return { name: `entry ${entry}`, path: `../v1/entries/${entry}/transparent` };
  if (/^[0-9]{1,20}$/.test(size)) return { name: `the checkpoint of size ${size}`, path: `../v1/checkpoints/${size}` };
  if (query.has('session')) return { name: `the session ${query.get('session')}`, path: `bundle${location.search}` };
  if (query.has('issuer')) return { name: `the chain of ${query.get('issuer')}`, path: `bundle${location.search}` };
  return null;
}

/** Fetches evidence from the service that served this page. */
async function fetchEvidence({ name, path }) {
  const response = await fetch(path);
  if (!response.ok) {
    const reason = REFUSALS[response.status] ?? 'it failed';
    throw new Error(`the service does not serve ${name}: ${reason} (${response.status})`);
  }
  const evidence = await response.blob();
  if (evidence.size === 0) {
    return showNotice(`There is no evidence of ${name} yet: the service answered without any (${response.status}). ` +
      'If the statement is still being registered, load this page again in a moment.');
  }
  given = evidence;
  showNotice(`Fetched from the service: ${name}. Add the keys that you trust, then verify.`);
}

/** Reads a chosen text file into a text area. */
function readInto(input, area) {
  element(input).addEventListener('change', async () => {
    const [file] = element(input).files;
    if (file) element(area).value = await file.text();
  });
}

/** Takes dropped files: the trust file and the witness policy by their names or contents, anything else as evidence. */
async function drop(event) {
  event.preventDefault();
  document.body.classList.toggle('dropping', event.type === 'dragover');
  if (event.type !== 'drop') return;
  for (const file of event.dataTransfer.files) await take(file);
  if (given) await verify().catch(showError);
}

async function take(file) {
  const start = await file.slice(0, 4096).text();
  if (file.name.endsWith('.toml')) {
    element('trust').value = await file.text();
  } else if (/^(#.*\n|\s)*(log|witness|group|quorum) /.test(start)) {
    element('policy').value = await file.text();
  } else {
    element('evidence').value = '';
    given = file;
  }
}

async function base64url(blob) {
  const bytes = new Uint8Array(await blob.arrayBuffer());
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

function show(answer) {
  if (answer.error) return showError({ message: `${answer.error.what} [${answer.error.code}]` });
  const { kind, verdict } = answer.result;
  const parts = [outcome(verdict)];
  if (kind === 'bundle') {
    parts.push(...section('Policies', verdict.policies), ...section('Entries', verdict.entries));
    parts.push(node('h2', {}, 'Bundle'), checks([...verdict.checkpoint.checks, ...verdict.checks]));
  } else {
    parts.push(checks(verdict.checks));
  }
  replaceResult(...parts);
}

function outcome({ outcome, reason }) {
  const words = { verified: 'Verified', failed: 'Failed', 'not-verified': 'Not verified' };
  const text = reason ? `${words[outcome]}: ${reason}` : words[outcome];
  return node('p', { class: `outcome ${outcome}`, 'data-outcome': outcome, 'data-reason': reason ?? '' }, text);
}

function section(title, verdicts) {
  return [node('h2', {}, `${title} (${verdicts.length})`), ...verdicts.map(part)];
}

function part(verdict) {
  const { entry = '', iss, sub, content_type: type } = verdict.statement ?? {};
  const name = [entry.slice(0, 16), type, iss, sub].filter(Boolean).join('  ');
  const state = node('span', { class: verdict.outcome }, verdict.outcome);
  const summary = node('summary', {}, state, ' ', node('span', { class: 'name' }, safe(name)));
  const details = node('details', {}, summary, node('p', { class: 'detail' }, `entry ${entry}`), checks(verdict.checks));
  details.open = verdict.outcome !== 'verified';
  return details;
}

function checks(list) {
  const words = { ok: 'ok', failed: 'FAIL', 'not-done': 'not checked' };
  const item = ({ name, state, code, detail }) =>
    node('li', {}, node('span', { class: `state ${state}` }, words[state]), ` ${name.replaceAll('-', ' ')} `,
      node('span', { class: 'detail' }, safe(detail)), code ? ` [${code}]` : '');
  return node('ul', { class: 'checks' }, ...list.map(item));
}

function showError(error) {
  replaceResult(node('p', { class: 'outcome failed', 'data-outcome': 'error' }, safe(error.message)));
}

function showNotice(text) {
  replaceResult(node('p', { class: 'notice' }, safe(text)));
}

function replaceResult(...nodes) {
  element('result').replaceChildren(...nodes);
  element('result').focus();
}

function node(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}

/** Shows control characters, and those that change the direction or the width of text, as escapes. */
function safe(text) {
  const hidden = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\p{Cs}]/gu;
  return text.replace(hidden, (character) => `\\u{${character.codePointAt(0).toString(16)}}`);
}
