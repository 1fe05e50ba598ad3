// Middleware for the official MCP TypeScript SDKs (@modelcontextprotocol/sdk and @modelcontextprotocol/client): adds the VAP
// members to `_meta`, and reads the gateway's Verdicts.

import { verifyVerdict, type SignedMessage } from './core.js';
import { Denied, TabellionError } from './errors.js';
import type { IntentOptions, Session } from './session.js';
import { isAccepted, isNotMade, isObject, reasonOf } from './verdict.js';

/** The member of `_meta`, or of the data of an error, with a VAP message or a Verdict. */
const VAP = 'vap';

/** Members of a result that are not of the tool, or recorded by themselves. */
const NOT_OUTPUT = new Set(['_meta', 'isError', 'resultType']);

/** What the middleware uses of an MCP client. */
export interface McpClient {
  listTools(params?: any, ...more: any[]): Promise<any>;
  callTool(params: any, ...more: any[]): Promise<any>;
}

/** A call of a tool with the agent's reason. */
export interface VapCall extends IntentOptions {
  name: string;
  arguments?: Record<string, any>;
  _meta?: Record<string, any>;
}

/**
 * The calls of an MCP client, in a VAP session. `gatewayKey` is the public key that signs Verdicts, in any form; with it, each
 * Verdict is verified. After an answer without a genuine Verdict, no more messages are sent.
 */
export class VapClient<C extends McpClient> {
  #distrust?: TabellionError;

  constructor(
    readonly client: C,
    readonly session: Session,
    private readonly gatewayKey?: string,
  ) {}

  /**
   * Sends the session's commitment in a `tools/list` request, and returns the Verdict. Throws Denied unless it is accepted,
   * also if it has to be confirmed first.
   */
  commit(): Promise<Record<string, any>> {
    return this.#declare(this.session.commitment, 'commitment');
  }

  /**
   * Sends a Scope Amendment in a `tools/list` request, and returns the Verdict. Throws Denied unless it is accepted. What is
   * accepted counts for the session, too.
   */
  async amend(reason: string, changes: object): Promise<Record<string, any>> {
    return this.#declare(await this.session.amendment(reason, changes), 'amendment');
  }

  /**
   * Calls a tool with its signed intent, and records call, Verdict and result. A denied call is a result with `isError`, as
   * the gateway sends it: its text names the reason. Throws Denied for a call that is not sent. `more` are the other arguments
   * of the client's `callTool`.
   */
  async callTool(call: VapCall, ...more: any[]): Promise<any> {
    const { name, arguments: args = {}, _meta, ...intent } = call;
    this.#checkTrust();
    const recorded = await this.session.begin(name, args, intent);
    let result: any;
    let verdict: Record<string, any> | undefined;
    try {
      // The answer to another call may have come since.
      this.#checkTrust();
      const params = { name, arguments: recorded.arguments, _meta: { ..._meta, [VAP]: recorded.intent.message } };
      try {
        result = await this.client.callTool(params, ...more);
      } catch (error) {
        verdict = await this.#verdictOnError(error, recorded.intent);
        throw error;
      }
      verdict = await this.#verdictOnCall(result, recorded.intent);
    } catch (error) {
      await recorded.fail(error, { verdict });
      throw error;
    }
    await recorded.finish(outputOf(result), { isError: result.isError === true, verdict });
    return result;
  }

  /** Sends the commitment or an amendment, and records the answer. Throws Denied unless the Verdict accepts it. */
  async #declare(message: SignedMessage, what: string): Promise<Record<string, any>> {
    this.#checkTrust();
    let verdict: Record<string, any>;
    try {
      verdict = await this.#carry(message);
    } catch (error) {
      this.session.unanswered(message, error);
      throw error;
    }
    this.session.answered(message, verdict);
    throwUnlessAccepted(verdict, what);
    return verdict;
  }

  async #carry(message: SignedMessage): Promise<Record<string, any>> {
    const result = await this.client.listTools({ _meta: { [VAP]: message.message } });
    const verdict = await this.#verdict(result._meta, message);
    if (!verdict) throw noVerdict();
    return verdict;
  }

  /** Returns the Verdict among the members of an answer. With a key, there must be one, and it must be genuine. */
  async #verdict(members: Record<string, any> | undefined, message: SignedMessage): Promise<Record<string, any> | undefined> {
    const verdict = members?.[VAP] ?? undefined;
    try {
      if (verdict !== undefined && !isObject(verdict)) {
        throw new Denied('no_verdict', 'the server answered with a Verdict that is not an object: it is not a VAP gateway');
      }
      if (this.gatewayKey !== undefined) {
        if (verdict === undefined) throw noVerdict();
        await verifyVerdict(verdict, this.gatewayKey, message.message);
      }
    } catch (error) {
      if (this.gatewayKey !== undefined && error instanceof TabellionError) this.#distrust = error;
      throw error;
    }
    return verdict;
  }

  /** Returns the Verdict on a call whose answer is a JSON-RPC error, or undefined if the error need not have one. */
  async #verdictOnError(error: any, intent: SignedMessage): Promise<Record<string, any> | undefined> {
    // An error of HTTP also has a number, but no data.
    if (typeof error?.code !== 'number' || !('data' in error)) return undefined;
    const { code, data } = error;
    if (isObject(data) && VAP in data) return this.#verdict(data, intent);
    // Data that is not an object has no place for a Verdict.
    const hasPlace = data === undefined || data === null || isObject(data);
    return hasPlace && !isReserved(code) ? this.#verdict(undefined, intent) : undefined;
  }

  /** Returns the Verdict on a call. With a key, an answer to a call that was not made must not have a tool's result. */
  async #verdictOnCall(result: any, intent: SignedMessage): Promise<Record<string, any> | undefined> {
    const verdict = await this.#verdict(result._meta, intent);
    if (this.gatewayKey === undefined || !verdict || !isNotMade(verdict)) return verdict;
    // A question in place of a result has no content.
    if (result.isError !== true && ('content' in result || 'structuredContent' in result)) {
      this.#distrust = new Denied(reasonOf(verdict), 'the answer has a result of a call that was not made');
      throw this.#distrust;
    }
    return verdict;
  }

  #checkTrust(): void {
    if (!this.#distrust) return;
    const { code, detail } = this.#distrust;
    throw new Denied(code, `not sent, since an earlier answer was not genuine: ${detail}`);
  }
}

/** Returns what the tool gave: the content, or all members of a result that has more, such as `structuredContent`. */
function outputOf(result: Record<string, any>): unknown {
  const given = Object.entries(result).filter(([name, value]) => !NOT_OUTPUT.has(name) && value !== undefined);
  return given.some(([name]) => name !== 'content') ? Object.fromEntries(given) : result.content;
}

function noVerdict(): Denied {
  return new Denied('no_verdict', 'the server answered without a Verdict: it is not a VAP gateway');
}

/** Returns whether JSON-RPC reserves a code. Clients and gateways use them for errors before any decision, without a Verdict. */
function isReserved(code: number): boolean {
  return code >= -32768 && code <= -32000;
}

function throwUnlessAccepted(verdict: Record<string, any>, what: string): void {
  if (isAccepted(verdict)) return;
  if (verdict.verdict === 'clarify') {
    throw new Denied(reasonOf(verdict), `the ${what} is not in force: it must be confirmed first, and then sent again`);
  }
  throw new Denied(reasonOf(verdict), `the gateway denied the ${what}`);
}
