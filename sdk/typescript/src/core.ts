// The functions of the core (sdk/core): statements, receipts, verification and VAP messages, offline. Every function gives
// the same results and codes as `tabellion` itself and as the Python package. Errors are CoreError.

import { CoreError, type Verdict } from './errors.js';
import { runVerifier } from './host.js';

/** A signing key: PKCS#8 in PEM, with the public key as a DID, a JWK and its thumbprint (RFC 7638). */
export interface SigningKey {
  privateKey: string;
  did: string;
  jwk: Record<string, unknown>;
  thumbprint: string;
}

/** A signed statement, and its entry ID: the SHA-256 digest that names it in every log. */
export interface SignedStatement {
  bytes: Uint8Array;
  entry: string;
}

/** A VAP message, ready to be sent, and its digest without the signature. */
export interface SignedMessage {
  message: Record<string, any>;
  digest: string;
}

/** What a statement says. Nothing of it is verified. */
export interface StatementFacts {
  entry: string;
  iss: string | null;
  sub: string | null;
  contentType: string | null;
  payload: Uint8Array | null;
  receipts: Uint8Array[];
}

/** Evidence in addition to a statement, and what its reader requires. */
export interface VerifyOptions {
  receipts?: Uint8Array[];
  payload?: Uint8Array;
  witnessPolicy?: string;
  /** Keys of the gateway that signed within an execution receipt, each a PEM, DID or JWK. */
  gatewayKeys?: string[];
  /** Unix seconds. */
  now?: number;
}

let compiled: Promise<WebAssembly.Module> | undefined;

/** Sets the WebAssembly module, for hosts that cannot load `core.wasm` from beside this file. */
export function useCore(module: WebAssembly.Module): void {
  compiled = Promise.resolve(module);
}

async function load(): Promise<WebAssembly.Module> {
  const url = new URL('./core.wasm', import.meta.url);
  if (url.protocol !== 'file:') return WebAssembly.compileStreaming(fetch(url));
  const { readFile } = await import('node:fs/promises');
  return WebAssembly.compile(await readFile(url));
}

/** Performs an operation of the core. Byte strings are encoded; arguments that are undefined are left out. */
export async function call(operation: string, args: Record<string, unknown> = {}): Promise<any> {
  compiled ??= load();
  const given = Object.entries(args).map(([name, value]) => [name, encoded(value)]);
  const answer = await runVerifier(await compiled, { operation, ...Object.fromEntries(given) });
  if (answer.error) throw new CoreError(answer.error.code, answer.error.what, answer.error.offset);
  return answer.result;
}

function encoded(value: unknown): unknown {
  if (value instanceof Uint8Array) return encode(value);
  return Array.isArray(value) ? value.map(encoded) : value;
}

/** Encodes bytes as unpadded base64url. */
export function encode(bytes: Uint8Array): string {
  let text = '';
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}

/** Decodes unpadded base64url. */
export function decode(text: string): Uint8Array {
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  return Uint8Array.from(plain, (character) => character.charCodeAt(0));
}

/** Generates a signing key. Algorithms are named as in COSE: EdDSA, ES256, ES384, ES512. */
export async function generateKey(algorithm = 'EdDSA'): Promise<SigningKey> {
  return signingKey(await call('generate-key', { algorithm }));
}

/** Reads a signing key from a PKCS#8 block in PEM, as `tabellion issuer new` writes it. */
export async function loadKey(pem: string): Promise<SigningKey> {
  return signingKey({ ...(await call('public-key', { private_key: pem })), private_key: pem });
}

function signingKey({ private_key: privateKey, did, jwk, thumbprint }: any): SigningKey {
  return { privateKey, did, jwk, thumbprint };
}

/** The headers of a statement. Without `issuer`, that is the `did:key` of the key. */
export interface StatementHeaders {
  contentType: string;
  subject: string;
  issuer?: string;
  kid?: string;
  /** Unix seconds. */
  issuedAt?: number;
  detached?: boolean;
}

/** Signs a statement. */
export async function signStatement(key: SigningKey, payload: Uint8Array, headers: StatementHeaders): Promise<SignedStatement> {
  const signed = await call('sign-statement', {
    private_key: key.privateKey,
    payload,
    content_type: headers.contentType,
    sub: headers.subject,
    iss: headers.issuer,
    kid: headers.kid,
    iat: headers.issuedAt,
    detached: headers.detached,
  });
  return { bytes: decode(signed.statement), entry: signed.entry };
}

/** Reads a statement. Nothing is verified. */
export async function readStatement(statement: Uint8Array): Promise<StatementFacts> {
  const read = await call('read-statement', { statement });
  return {
    entry: read.entry,
    iss: read.iss,
    sub: read.sub,
    contentType: read.content_type,
    payload: read.payload === null ? null : decode(read.payload),
    receipts: read.receipts.map(decode),
  };
}

/** Attaches receipts: the result is a Transparent Statement. */
export async function attach(statement: Uint8Array, receipts: Uint8Array[]): Promise<Uint8Array> {
  return decode((await call('attach', { statement, receipts })).statement);
}

/** Removes the receipts. */
export async function strip(statement: Uint8Array): Promise<{ statement: Uint8Array; receipts: Uint8Array[] }> {
  const stripped = await call('strip', { statement });
  return { statement: decode(stripped.statement), receipts: stripped.receipts.map(decode) };
}

/**
 * Verifies an evidence bundle, a statement with its receipts, or a checkpoint, offline; also by the rules of content types.
 *
 * `trust` is the text of a trust.toml: the keys of logs and issuers come from there alone.
 */
export async function verify(evidence: Uint8Array, trust: string, options: VerifyOptions = {}): Promise<Verdict> {
  const { receipts = [], payload, witnessPolicy: witness_policy, gatewayKeys: gateway_keys = [], now = unixTime() } = options;
  return (await call('verify', { evidence, trust, receipts, payload, witness_policy, gateway_keys, now })).verdict;
}

/** How far a check of content went. */
export type CheckedContent = 'complete' | 'no-rules' | 'header-only' | 'payload-missing';

/**
 * Checks a statement against the rules of its content type, for example before it is registered. No signature is verified.
 *
 * `content` is the payload of a detached statement, or what the statement holds the hash of. A broken rule is the code of the CoreError; for
 * content that has another hash, it is `payload-digest-mismatch`.
 */
export async function checkContent(statement: Uint8Array, content?: Uint8Array): Promise<CheckedContent> {
  return (await call('check-content', { statement, content })).checked;
}

/** A registration policy as it was read: all its mistakes, or its digest and the payload of its statement. */
export interface CheckedPolicy {
  mistakes: { key: string; problem: string }[];
  digest?: string;
  payload?: string;
}

/** Checks a registration policy: TOML, or the JSON of a policy statement. */
export async function checkPolicy(policy: string): Promise<CheckedPolicy> {
  return call('check-policy', { policy });
}

/**
 * What a log would decide. `rule` decided; a statement that is `registered` is the entry at `leaf` already. `max_entries` says how many
 * entries the log may have with an admitted statement. `asks_the_log` says that other entries were looked up. A log with others may decide otherwise
 * then, and refuses a claim that one of them makes, such as a `receipt_id`.
 */
export interface PolicyTrial {
  outcome: 'admitted' | 'refused' | 'undecided' | 'registered';
  rule?: string;
  leaf?: number;
  max_entries?: number | null;
  asks_the_log: boolean;
  [more: string]: any;
}

/** An earlier entry of a log: a statement, or a detached statement with its payload. */
export type TrialEntry = Uint8Array | { statement: Uint8Array; payload: Uint8Array };

/**
 * Decides about a statement as a log under this policy does that has only these `entries`: `tabellion policy test` with entries.
 * Without `now`, rules about time are left open.
 */
export async function tryPolicy(
  policy: string,
  statement: Uint8Array,
  more: { payload?: Uint8Array; entries?: TrialEntry[]; now?: number } = {},
): Promise<PolicyTrial> {
  const entries = more.entries?.map((entry) => {
    if (entry instanceof Uint8Array) return entry;
    return { statement: encode(entry.statement), payload: encode(entry.payload) };
  });
  return call('try-policy', { policy, statement, ...more, entries });
}

/** A registry of AgentROA as JSON, and the keys of its operators. */
export interface TrustedRegistry {
  document: string;
  operators: string[];
}

/** A caller with a proven identity: an agent after `verifyProof`, a client of OAuth, or a certificate by its digest. */
export type ChainPresenter = { agent_id: string } | { issuer: string; client_id: string } | { certificate: string };

/** A decision about a chain: `permit` with the holder and its capabilities, or `deny` with the reason. */
export interface ChainDecision {
  outcome: 'permit' | 'deny';
  holder?: string;
  capabilities?: string[];
  reason?: string;
  code?: string;
  [more: string]: any;
}

/**
 * Verifies a delegation chain of AgentROA: `tabellion roa verify`. With a call, also decides whether its presenter may make it;
 * nobody may without one. Budgets that are spent are for the caller to remember.
 */
export async function verifyChain(
  chain: string,
  registry: TrustedRegistry,
  more: { call?: { capability: string; presenter?: ChainPresenter; pinned?: boolean }; now?: number } = {},
): Promise<ChainDecision> {
  return call('verify-chain', { chain, registry, call: more.call, at: utc(more.now) });
}

/** An agent's proof that it makes a call: `accept` with the agent, or `deny`. Refuse a `jti` that you have seen, until `ends_at`. */
export interface ProofDecision {
  outcome: 'accept' | 'deny';
  agent_id?: string;
  jti?: string;
  ends_at?: string;
  [more: string]: any;
}

/** Verifies an agent's proof (a compact JWS) that it makes this call under a chain of AgentROA. */
export async function verifyProof(
  proof: string,
  chain: string,
  registry: TrustedRegistry,
  made: { capability: string; audience: string; arguments?: unknown; now?: number },
): Promise<ProofDecision> {
  const { capability, audience, arguments: given, now } = made;
  const args = given === undefined ? undefined : JSON.stringify(given);
  return call('verify-proof', { proof, chain, registry, capability, audience, arguments: args, at: utc(now) });
}

/** The terms under which a log's index has an entry. With a blind code, the entry may have others too. */
export interface SearchTerms {
  terms: { kind: string; number: number; value: string; key: string }[];
  blind: { number: number; key: string }[];
}

/** Reads the terms of a statement; `payload` is the detached one, if the log serves it. */
export async function readTerms(statement: Uint8Array, payload?: Uint8Array): Promise<SearchTerms> {
  return call('read-terms', { statement, payload });
}

/** What the reader of an answer requires. */
export interface SearchOptions {
  witnessPolicy?: string;
  /** Verifier keys of monitors, each of which must have attested the index; without any, the trust file decides. */
  monitors?: string[];
  attestations?: string[];
  /** Unix seconds. */
  now?: number;
}

/** The verdict on the answer of a search. Compare `question` with what you wanted to know; `gaps` lists what is open. */
export interface SearchVerdict {
  outcome: 'complete' | 'complete-but' | 'not-proven' | 'wrong';
  reason: string | null;
  question: { terms: { kind: string; value: string }[]; from: number; to: number | null };
  found: { leaf: number; entry: string; content_type: string | null; iss: string | null; sub: string | null }[];
  gaps: Record<string, unknown>[];
  [more: string]: any;
}

/** Verifies offline that the answer of a search is complete: a file of `tabellion entry search --prove`. */
export async function verifySearch(answer: Uint8Array, trust: string, options: SearchOptions = {}): Promise<SearchVerdict> {
  const { witnessPolicy: witness_policy, monitors = [], attestations = [], now = unixTime() } = options;
  return call('verify-search', { answer, trust, witness_policy, monitors, attestations, now });
}

/** Verifies by a consistency receipt that the tree of this size and root is the beginning of the one it signs. */
export async function verifyConsistency(
  receipt: Uint8Array,
  known: { size: number; root: string },
  trust: string,
  now = unixTime(),
): Promise<Verdict> {
  return call('verify-consistency', { receipt, known, trust, now });
}

/** What the header of a message's signature holds besides the algorithm. */
export interface MessageHeaders {
  kid?: string;
  /** Unix seconds. */
  issuedAt?: number;
  jti?: string;
  audience?: string;
}

/** Checks a VAP message as a gateway does, and signs it if there is a key. */
export async function signMessage(message: object, key?: SigningKey, headers: MessageHeaders = {}): Promise<SignedMessage> {
  const { message: text, digest } = await call('sign-message', {
    message: JSON.stringify(message),
    private_key: key?.privateKey,
    kid: headers.kid,
    iat: headers.issuedAt,
    jti: headers.jti,
    aud: headers.audience,
  });
  return { message: JSON.parse(text), digest };
}

/** Verifies the signature of a gateway's Verdict, and that it answers `message`. */
export async function verifyVerdict(verdict: object, publicKey: string, message?: object): Promise<any> {
  return call('verify-verdict', {
    verdict: JSON.stringify(verdict),
    public_key: publicKey,
    message: message && JSON.stringify(message),
  });
}

/** Returns the digest of a JSON value over its canonical form (RFC 8785). */
export async function digestJson(value: unknown): Promise<string> {
  return (await call('digest-json', { json: JSON.stringify(value ?? null) })).digest;
}

/** Returns whether a scope allows a tool: a pattern matches it, and none of `deny` does. */
export async function allows(tool: string, allow: string[], deny: string[] = []): Promise<boolean> {
  return (await call('match-pattern', { tool, allow, deny })).allowed;
}

function utc(seconds = unixTime()): string {
  return new Date(seconds * 1000).toISOString();
}

/** Returns the current time in Unix seconds. */
export function unixTime(): number {
  return Math.floor(Date.now() / 1000);
}
