// HTTP with fetch: exchanges of bounded time, problem details as errors, and retries.

import { call } from './core.js';
import { NotFound, type Problem, Refused, ServiceError, TryAgain, Unreachable } from './errors.js';

/** Timeout of one exchange in milliseconds. */
const EXCHANGE = 30_000;
/** Maximum size of an answer in bytes. */
const MAX_ANSWER = 32 << 20;
/** First wait without `Retry-After`, in seconds; it doubles each time. */
const FIRST_WAIT = 0.1;
/** Longest wait without `Retry-After`, in seconds. */
const LONGEST_WAIT = 10;
/** Longest `Retry-After` that is waited for, in seconds: a service that needs more counts as down. */
const LONGEST_RETRY_AFTER = 300;
/** Codes of conditions that last until the operator acts, despite a status that allows retries. */
const LASTING = new Set(['log-halted', 'database-damaged']);

/** A complete answer. */
export interface Answer {
  status: number;
  headers: Headers;
  body: Uint8Array;
}

/** The waits of one operation, none of which ends later than `patience` seconds after its begin. */
export class Backoff {
  readonly #end: number;
  #attempt = 0;

  constructor(patience: number) {
    this.#end = performance.now() + patience * 1000;
  }

  /** Waits until the next attempt; `false` if the patience is used up. */
  async wait(retryAfter?: number): Promise<boolean> {
    const doubled = Math.min(FIRST_WAIT * 2 ** Math.min(this.#attempt, 10), LONGEST_WAIT);
    this.#attempt += 1;
    const pause = retryAfter === undefined ? doubled * (0.5 + Math.random() / 2) : Math.max(retryAfter, FIRST_WAIT);
    if (pause * 1000 > this.#end - performance.now() || pause > LONGEST_RETRY_AFTER) return false;
    await sleep(pause);
    return true;
  }
}

/** Waits so many seconds. */
export function sleep(seconds: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, seconds * 1000));
}

/** Exchanges with one service. The token is sent to it only. */
export class Http {
  readonly base: string;
  /** Whether the service has answered: then a failed connection may be temporary, because it is restarting. */
  reached = false;

  constructor(
    base: string,
    readonly patience: number,
    private readonly token?: string,
  ) {
    this.base = base.replace(/\/+$/, '');
  }

  /** Returns the URL of a path below the base; a whole URL of the same service stays as it is. */
  url(path: string): string {
    return /^https?:\/\//.test(path) ? path : `${this.base}/${path}`;
  }

  /** Sends a request and returns the open response. Every status is a response. */
  async open(path: string, headers: Record<string, string>, init: RequestInit = {}): Promise<Response> {
    const all = this.token ? { ...headers, Authorization: `Bearer ${this.token}` } : headers;
    try {
      const response = await fetch(this.url(path), { redirect: 'manual', ...init, headers: all });
      this.reached = true;
      return response;
    } catch (error) {
      throw new Unreachable(`cannot reach ${this.base}: ${error}`);
    }
  }

  /** Sends a request and reads the whole answer. */
  async exchange(path: string, headers: Record<string, string>, body?: Uint8Array): Promise<Answer> {
    const signal = AbortSignal.timeout(EXCHANGE);
    const init = body ? { method: 'POST', body: body as BodyInit, signal } : { signal };
    return read(await this.open(path, headers, init));
  }

  /** Like `exchange`, with retries where they may help; throws the error of any other answer. */
  async retrying(
    path: string,
    headers: Record<string, string>,
    body?: Uint8Array,
    backoff = new Backoff(this.patience),
  ): Promise<Answer> {
    for (;;) {
      let failed: ServiceError | Unreachable;
      try {
        const answer = await this.exchange(path, headers, body);
        if (answer.status < 400) return answer;
        const error = await errorOf(answer);
        if (!mayRetry(error)) throw error;
        failed = error;
      } catch (error) {
        if (!(error instanceof Unreachable) || !this.reached) throw error;
        failed = error;
      }
      if (!(await backoff.wait(failed instanceof ServiceError ? failed.retryAfter : undefined))) throw failed;
    }
  }
}

/** Reads a response of bounded size to its end. */
export async function read(response: Response): Promise<Answer> {
  const { status, headers } = response;
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    const reader = response.body?.getReader();
    for (let next = await reader?.read(); next?.value && size <= MAX_ANSWER; next = await reader?.read()) {
      chunks.push(next.value);
      size += next.value.length;
    }
    if (size > MAX_ANSWER) await reader?.cancel();
  } catch (error) {
    throw new Unreachable(`the answer broke off: ${error}`);
  }
  if (size > MAX_ANSWER) throw new Unreachable(`the answer has more than ${MAX_ANSWER} bytes`);
  return { status, headers, body: joined(chunks) };
}

/** Returns chunks as one array. */
export function joined(chunks: Uint8Array[]): Uint8Array {
  const all = new Uint8Array(chunks.reduce((size, { length }) => size + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    all.set(chunk, at);
    at += chunk.length;
  }
  return all;
}

/** Parses the body of an answer as JSON. */
export function json(answer: Answer): any {
  return parseJson(text(answer.body), "the service's answer");
}

/** Parses JSON of the service. `name` is the subject of the error. */
export function parseJson(source: string, name: string): any {
  try {
    return JSON.parse(source);
  } catch (error) {
    throw new Unreachable(`${name} is not JSON: ${error}`);
  }
}

/** Decodes UTF-8. */
export function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

/** Returns `Retry-After` in seconds. A date is compared with the answer's own: the local clock may be wrong. */
export function retryAfter(answer: Answer): number | undefined {
  const header = answer.headers.get('retry-after')?.trim() ?? '';
  if (/^\d+$/.test(header)) return Number(header);
  // `Date.parse` also reads "-1" and "Try 5", and a text without a zone as local time.
  const until = /^[A-Z][a-z]{2}, \d{2} [A-Z][a-z]{2} \d{4} [\d:]{8} GMT$/.test(header) ? Date.parse(header) : NaN;
  const seconds = (until - Date.parse(answer.headers.get('date') ?? '')) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(seconds, 0);
}

/** Returns whether the same request may succeed later. */
export function mayRetry(error: ServiceError): boolean {
  return error instanceof TryAgain && !LASTING.has(error.code);
}

/** Returns the error of an answer, with its problem details in CBOR (RFC 9290) or JSON (RFC 9457). */
export async function errorOf(answer: Answer): Promise<ServiceError> {
  const { status } = answer;
  const kind = status === 404 ? NotFound : status === 429 || status >= 500 ? TryAgain : Refused;
  return new kind(status, await problem(answer), retryAfter(answer));
}

async function problem(answer: Answer): Promise<Problem> {
  const type = answer.headers.get('content-type') ?? '';
  try {
    if (type.startsWith('application/concise-problem-details+cbor')) return await call('read-problem', { problem: answer.body });
    if (type.startsWith('application/problem+json')) return JSON.parse(text(answer.body)) ?? {};
  } catch {
    // The status alone then says what happened.
  }
  return {};
}
