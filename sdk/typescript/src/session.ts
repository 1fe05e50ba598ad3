// A session of an agent: its commitment, its calls with their signed intents, and the record that is registered at the end.
//
// A session speaks VAP (Verifiable Agent Protocol, 0.1). Its messages go through a gateway (mcp.ts), or stay in the record, if
// the agent calls its tools itself (`run` and `tool`). The record is a conversation record
// (draft-birkholz-verifiable-agent-conversations-00), signed with the session's key.

import { type Client, keep, type Registered, type Save } from './client.js';
import * as core from './core.js';
import { encoded, END_BYTES, Entries, timestamp } from './entries.js';
import { CoreError, Denied, TabellionError } from './errors.js';
import { isAccepted, isNotMade, reasonOf } from './verdict.js';

/** The content type of the record. */
const CONTENT_TYPE = 'application/agent-conversation';
/** Levels of arrays and objects in JSON that the core reads. */
const CORE_DEPTH = 127;
/** Levels in a value that is in a record in clear. A log admits 64 in a record, which has at most 7 around a value. */
const VALUE_DEPTH = 57;

/** What a session may do, and who records it. */
export interface SessionOptions {
  goal: string;
  /** Patterns of tool names. */
  tools: string[];
  deny?: string[];
  /** Bounds of the session: `max_calls`, and for a gateway also `deadline` and `limits`. */
  budget: { max_calls?: number; deadline?: string; limits?: Record<string, number> };
  /** Signs the messages and the record. */
  key: core.SigningKey;
  /** The agent's id, by default the `did:key`. */
  agent?: string;
  /** How the log's policy names the key, if not by its `did:key`. */
  issuer?: string;
  kid?: string;
  sessionId?: string;
  /** Registers the record; without it the record is only signed and saved. */
  log?: Client;
  /** Keeps the record. */
  save: Save;
  /**
   * Records arguments and results in clear, where everybody who reads the log can read them. By default the record has their
   * SHA-256 digests (short texts can be guessed).
   */
  disclose?: boolean;
  model?: string;
  provider?: string;
}

/** The agent's reason for a call. */
export interface IntentOptions {
  rationale?: string;
  expectedEffect?: string;
  sensitivity?: string;
}

/** A call of a tool that was admitted and is recorded. It ends by `finish`, `fail` or `withdraw`. */
export interface Call {
  readonly tool: string;
  readonly arguments: Record<string, any>;
  readonly intent: core.SignedMessage;
  /** Records the result, and the gateway's Verdict, if there was one. */
  finish(result: unknown, more?: { isError?: boolean; verdict?: object }): Promise<void>;
  /** Records that the tool threw an error, and the gateway's Verdict, if there was one. The error's text is not recorded. */
  fail(error: unknown, more?: { verdict?: object }): Promise<void>;
  /** Records that the call was not made after all, for example as somebody must approve it first: it does not count. */
  withdraw(error: unknown): Promise<void>;
}

/** A session. `close` ends it; `withSession` does so at the end of a function. */
export class Session {
  record?: core.SignedStatement;
  registered?: Registered;
  #calls = 0;
  readonly #entries = new Entries();
  #isSaved = false;
  /** The result of `close` while it runs. */
  #closing?: Promise<Registered | undefined>;
  readonly #start = timestamp();
  readonly #allow: string[];
  readonly #deny: string[];
  #maxCalls?: number;
  /** The digest of the commitment in force, undefined if it is not known. */
  #inForce?: string;

  private constructor(
    readonly options: SessionOptions,
    readonly id: string,
    readonly commitment: core.SignedMessage,
  ) {
    const { tools, deny = [], budget } = options;
    [this.#allow, this.#deny, this.#maxCalls] = [[...tools], [...deny], budget.max_calls];
    this.#inForce = commitment.digest;
    this.#addEvent({ 'event-type': 'vap-commitment', data: { commitment: commitment.message } });
  }

  /** Begins a session. */
  static async begin(options: SessionOptions): Promise<Session> {
    for (const patterns of [options.tools, options.deny]) {
      // A text is a sequence too, of patterns of one letter.
      if (typeof patterns === 'string') throw new TypeError('a list of patterns is needed, not a text');
    }
    const id = options.sessionId ?? crypto.randomUUID();
    const scope = { tools_allow: options.tools, ...(options.deny?.length && { tools_deny: options.deny }) };
    const principal = { agent_id: options.agent ?? options.key.did };
    const { goal, budget } = options;
    const commitment = await sign(options.key, id, { type: 'scope_commitment', goal, scope, budget, principal });
    return new Session(options, id, commitment);
  }

  /** Signs an Intent Envelope. */
  intent(tool: string, args: object, options: IntentOptions = {}): Promise<core.SignedMessage> {
    const { rationale, expectedEffect, sensitivity } = options;
    const intent = {
      rationale: rationale ?? 'a step towards the goal of the session',
      expected_effect: expectedEffect ?? 'the result of the tool',
      ...(sensitivity && { sensitivity }),
    };
    return sign(this.options.key, this.id, { type: 'intent_call', intent, call: { tool, arguments: args } });
  }

  /**
   * Signs a Scope Amendment of the commitment in force. `changes` are its members `add_scope` and `increase_budget`; a gateway
   * decides on it. Throws Denied if the commitment in force is not known.
   */
  async amendment(reason: string, changes: object): Promise<core.SignedMessage> {
    if (this.#inForce === undefined) {
      const why = 'not sent: the commitment in force is not known, perhaps as the answer to an earlier amendment was lost';
      throw new Denied('chain_broken', `${why}; begin a new session`);
    }
    const message = { type: 'scope_amendment', prev_commitment_digest: this.#inForce, reason, ...changes };
    return sign(this.options.key, this.id, message);
  }

  /**
   * Records the commitment or an amendment, which was sent, with the gateway's Verdict. The next amendment changes the
   * commitment that was accepted, which may be a reduced one. An accepted amendment also widens the bounds that the session
   * checks itself; where the gateway granted less, it denies the calls.
   */
  answered(message: core.SignedMessage, verdict: Record<string, any>): void {
    this.#addDeclaration(message, { 'vap-verdict': verdict });
    if (isAccepted(verdict)) {
      this.#inForce = verdict.accepted_commitment_digest || this.#inForce;
      this.#widen(message);
    } else if (reasonOf(verdict) === 'chain_broken') {
      this.#inForce = undefined;
    }
  }

  /**
   * Records that the commitment or an amendment was sent and has no genuine answer. Whether it is in force is not known. The
   * error's text is not recorded.
   */
  unanswered(message: core.SignedMessage, error: unknown): void {
    this.#addDeclaration(message, { error: error instanceof TabellionError ? error.code : nameOf(error) });
  }

  /**
   * Admits a call, and records it with its signed intent. Throws Denied outside of the scope or the budget, for arguments that an
   * intent cannot have (`malformed`), if the record is full, and after the end of the session.
   */
  async begin(tool: string, args: Record<string, any>, options: IntentOptions & { callId?: string } = {}): Promise<Call> {
    const reason = await this.#reasonAgainst(tool);
    if (reason) throw this.#denied(reason, tool, `the session does not allow this call of ${tool}`);
    try {
      return await this.#begin(tool, args, options, true);
    } catch (error) {
      this.#calls -= 1;
      if (error instanceof Denied || (await this.#takes(tool, args))) throw error;
      throw this.#denied('malformed', tool, `an intent cannot have these arguments of ${tool}: ${error}`);
    }
  }

  /**
   * Records a call that was made without asking the session. Outside of the scope or the budget, an event `call-out-of-bounds`
   * before it has the reason. Throws Denied if the record is full, and after the end of the session.
   */
  async observe(tool: string, args: Record<string, any>, options: IntentOptions & { callId?: string } = {}): Promise<Call> {
    const reason = await this.#reasonAgainst(tool);
    if (reason) this.#addBound('call-out-of-bounds', reason, tool);
    return this.#begin(tool, args, options, !reason);
  }

  /** Records a message of the conversation. */
  async message(role: 'user' | 'assistant', content: string): Promise<void> {
    await this.#add(role, { content: await this.#content(content) }, this.#inClear('content'));
  }

  /**
   * Calls a function as a recorded tool. Of an asynchronous generator, the list of items is recorded at its end. Throws a
   * TypeError if the function returns another generator, which has not run.
   */
  async run<A extends Record<string, any>, R>(tool: string, tried: (args: A) => R | Promise<R>, args: A, options: IntentOptions = {}): Promise<R> {
    const call = await this.begin(tool, args, options);
    let result: R;
    try {
      result = await tried(args);
      if (isA('Generator', result)) throw new TypeError(`the tool ${tool} must be an asynchronous generator, to be recorded`);
    } catch (error) {
      await call.fail(error);
      throw error;
    }
    if (isA('AsyncGenerator', result)) return generated(call, result as AsyncGenerator) as R;
    await call.finish(result);
    return result;
  }

  /** Makes a function a recorded tool of this session. */
  tool<A extends Record<string, any>, R>(name: string, tried: (args: A) => R | Promise<R>, options: IntentOptions = {}): (args: A) => Promise<R> {
    return (args) => this.run(name, tried, args, options);
  }

  /**
   * Signs the record, saves it, and registers it if the session has a log. Then no call is possible. If the log does not
   * answer, call it again later, or register the saved record. If the record cannot be signed, it is saved as JSON: in the file
   * `save` with `.json` after its name, or by the function.
   */
  close(): Promise<Registered | undefined> {
    this.#closing ??= this.#close().finally(() => (this.#closing = undefined));
    return this.#closing;
  }

  async #close(): Promise<Registered | undefined> {
    const { save, log } = this.options;
    this.record ??= await this.#signedRecord();
    if (!this.#isSaved) {
      await keep(save, this.record.bytes);
      this.#isSaved = true;
    }
    if (log && !this.registered) this.registered = await log.register(this.record, save);
    return this.registered;
  }

  /** Closes a session that an error ended. If its record cannot be registered, that is a warning: the error counts. */
  async closeAfter(error: unknown): Promise<void> {
    this.#addEvent({ 'event-type': 'session-failed', data: { error: nameOf(error) } }, END_BYTES);
    try {
      await this.close();
    } catch (unregistered) {
      console.warn(`the record of the session is not registered: ${unregistered}`);
    }
  }

  /** Ends the record, and signs it. */
  async #signedRecord(): Promise<core.SignedStatement> {
    const { key, issuer, kid, save } = this.options;
    const payload = encoded(this.#document());
    try {
      return await core.signStatement(key, payload, { contentType: CONTENT_TYPE, subject: this.id, issuer, kid });
    } catch (error) {
      await keep(typeof save === 'string' ? `${save}.json` : save, payload);
      throw error;
    }
  }

  /** Signs the intent of a call, and records both. `counts` says whether the call was counted. */
  async #begin(tool: string, args: object, options: IntentOptions & { callId?: string }, counts: boolean): Promise<Call> {
    const id = options.callId ?? crypto.randomUUID();
    const plain: Record<string, any> = json(args);
    const intent = await this.intent(tool, plain, options);
    const entry = { 'call-id': id, name: tool, input: await this.#content(plain), 'vap-intent': this.#evidence(intent) };
    let kept = this.#entries.add('tool-call', entry, { keep: true });
    if (kept === 0) throw this.#notRecorded(tool);
    const giveBack = () => {
      if (counts) this.#calls -= 1;
      counts = false;
    };
    const end = async (result: unknown, isError: boolean, verdict?: object) => {
      // As at the gateway, only admitted calls count.
      if (verdict && isNotMade(verdict)) giveBack();
      const output = await this.#result(result);
      const ended = { 'call-id': id, output, 'is-error': isError, ...(verdict && { 'vap-verdict': verdict }) };
      const large = [...this.#inClear('output'), ...(verdict ? ['vap-verdict'] : [])];
      const free = kept;
      kept = 0;
      await this.#add('tool-result', ended, large, free);
    };
    const fail = (error: unknown, more: { verdict?: object } = {}) => end({ error: nameOf(error) }, true, more.verdict);
    const withdraw = (error: unknown) => {
      giveBack();
      return fail(error);
    };
    const finish: Call['finish'] = (result, more = {}) => end(result, more.isError ?? false, more.verdict);
    return { tool, arguments: plain, intent, finish, fail, withdraw };
  }

  /** Returns the error of a call that is not made, as the record cannot have it. */
  #notRecorded(tool: string): Denied {
    if (this.#entries.ended) {
      return new Denied('session_ended', `the session has ended: this call of ${tool} would not be in its record`);
    }
    this.#entries.noteFull();
    return new Denied('record_full', `the record of the session has no room for this call of ${tool}: end it, and begin another one`);
  }

  /** Returns whether an intent and the record can have these arguments, with any reasons for the call. */
  async #takes(tool: string, args: object): Promise<boolean> {
    try {
      const plain = json(args);
      await this.intent(tool, plain);
      await this.#content(plain);
      return true;
    } catch {
      return false;
    }
  }

  /** Records that a call is not made, and returns the error. */
  #denied(reason: string, tool: string, why: string): Denied {
    this.#addBound('call-denied', reason, tool);
    return new Denied(reason, why);
  }

  #addBound(event: string, reason: string, tool: string): void {
    this.#addEvent({ 'event-type': event, data: { tool: text(tool), reason } });
  }

  /** Returns the code against a call, as a gateway would, or counts the call. */
  async #reasonAgainst(tool: string): Promise<string | undefined> {
    try {
      if (!(await core.allows(tool, this.#allow, this.#deny))) return 'scope_escape';
    } catch (error) {
      if (error instanceof CoreError) return 'malformed';
      throw error;
    }
    if (this.#maxCalls !== undefined && this.#calls >= this.#maxCalls) return 'budget_exceeded';
    this.#calls += 1;
    return undefined;
  }

  /** Returns a result for the record. The tool has run, so what cannot be JSON is recorded as text, or as its type. */
  async #result(result: unknown): Promise<unknown> {
    for (const form of [json, text]) {
      try {
        return await this.#content(form(result));
      } catch {
        continue;
      }
    }
    return this.#content(typeof result);
  }

  /** Returns a value for the record: in clear, or its digest. Throws if a record cannot have it. */
  async #content(value: unknown): Promise<unknown> {
    if (!this.options.disclose) return { digest: await core.digestJson(value) };
    let nested = value;
    for (let level = VALUE_DEPTH; level < CORE_DEPTH; level += 1) nested = [nested];
    await core.digestJson(nested);
    return value;
  }

  /** Returns a message for the record: its texts are private, so without disclosure only its digest and signature. */
  #evidence({ message, digest }: core.SignedMessage): object {
    return this.options.disclose ? message : { digest, signature: message.signature };
  }

  #widen({ message }: core.SignedMessage): void {
    const { add_scope, increase_budget } = message;
    this.#allow.push(...(add_scope?.tools_allow ?? []));
    this.#deny.push(...(add_scope?.tools_deny ?? []));
    if (this.#maxCalls !== undefined) this.#maxCalls += increase_budget?.add_calls ?? 0;
  }

  /** Records the commitment or an amendment, which was sent, with what came of it. */
  #addDeclaration(signed: core.SignedMessage, answer: object): void {
    const { type, add_scope, increase_budget } = signed.message;
    const changes = { ...(add_scope && { add_scope }), ...(increase_budget && { increase_budget }) };
    const data = { type, ...changes, message: this.#evidence(signed), ...answer };
    this.#addEvent({ 'event-type': 'vap-declaration', data });
  }

  /** Returns the name of a member, if the record has it in clear. */
  #inClear(name: string): string[] {
    return this.options.disclose ? [name] : [];
  }

  /** Adds an event to the record, unless that is made already. `kept` bytes were kept free for it. */
  #addEvent(members: object, kept = 0): void {
    if (!this.#entries.add('system-event', members, { kept })) this.#entries.noteFull();
  }

  /**
   * Adds an entry to the record, unless that is made already. Where it does not fit, digests replace the members `large`, one
   * after the other. `kept` bytes were kept free for it.
   */
  async #add(type: string, members: Record<string, any>, large: string[], kept = 0): Promise<void> {
    let fitting = members;
    if (this.#entries.add(type, fitting, { kept })) return;
    for (const name of large) {
      fitting = { ...fitting, [name]: { digest: await core.digestJson(members[name]) } };
      if (this.#entries.add(type, fitting, { kept })) return;
    }
    this.#entries.noteFull();
  }

  /** Ends the record, and returns it. */
  #document(): object {
    const entries = this.#entries.end();
    const { model = 'unknown', provider = 'unknown' } = this.options;
    return {
      version: '3.0.0-draft',
      id: crypto.randomUUID(),
      created: timestamp(),
      session: {
        'session-id': this.id,
        'session-start': this.#start,
        'session-end': timestamp(),
        'agent-meta': { 'model-id': model, 'model-provider': provider, 'cli-name': 'tabellion-sdk' },
        entries,
      },
      'recording-agent': { name: 'tabellion-sdk' },
    };
  }
}

/** Runs a function in a session, and closes the session when it ends, whether it succeeded or not. */
export async function withSession<R>(options: SessionOptions, body: (session: Session) => Promise<R>): Promise<R> {
  const session = await Session.begin(options);
  let result: R;
  try {
    result = await body(session);
  } catch (error) {
    await session.closeAfter(error);
    throw error;
  }
  await session.close();
  return result;
}

/** Passes the items of a call on, and records their list. A caller that reads no further makes it a failed call. */
async function* generated<T>(call: Call, items: AsyncGenerator<T>): AsyncGenerator<T> {
  const passed: T[] = [];
  let failure: unknown = new DOMException('the caller reads no further', 'AbortError');
  try {
    for await (const item of items) {
      passed.push(item);
      yield item;
    }
    failure = undefined;
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    await (failure === undefined ? call.finish(passed) : call.fail(failure));
  }
}

/** Returns whether a value is an object of the language with this name. */
function isA(name: 'Generator' | 'AsyncGenerator', value: unknown): boolean {
  return Object.prototype.toString.call(value) === `[object ${name}]`;
}

/** Returns a value as JSON. */
function json(value: unknown): any {
  return JSON.parse(JSON.stringify(value ?? null));
}

/** Returns a value as text that JSON can have. */
function text(value: unknown): string {
  return new TextDecoder().decode(new TextEncoder().encode(String(value)));
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : typeof error;
}

function sign(key: core.SigningKey, session_id: string, message: object): Promise<core.SignedMessage> {
  const headers = { issuedAt: core.unixTime(), jti: crypto.randomUUID() };
  return core.signMessage({ vap: '0.1', session_id, ...message }, key, headers);
}
