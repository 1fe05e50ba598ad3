// The client of a transparency service (SCRAPI, draft-ietf-scitt-scrapi-11, and the API below /v1).

import * as core from './core.js';
import { CoreError, NotVerified, StillRunning, TabellionError, Unreachable, type Verdict } from './errors.js';
import { writeDurably } from './files.js';
import { type Answer, Backoff, errorOf, Http, joined, json, mayRetry, retryAfter } from './http.js';
import { observe, type ObservedTree } from './monitor.js';
import { type EntryEvent, follow, type FollowOptions } from './stream.js';

const COSE = 'application/cose';
/** Statuses that mean "not yet": 202 and 204 of draft 11, 302 and 303 of earlier drafts. */
const NOT_YET = new Set([202, 204, 302, 303]);

/** Settings of a client. */
export interface ClientOptions {
  token?: string;
  /** The text of a trust.toml. With it, every receipt is verified before it is returned. */
  trust?: string;
  /** Time for retries and polling, in seconds (default 60). */
  patience?: number;
}

/** Keeps bytes: the name of a file (Node.js), or a function that resolves when they are durable. */
export type Save = string | ((bytes: Uint8Array) => Promise<void>);

/** A registered statement: its entry ID, the receipt, and both as a Transparent Statement. */
export interface Registered {
  entry: string;
  receipt: Uint8Array;
  transparent: Uint8Array;
}

/** A client of one service. */
export class Client {
  readonly http: Http;
  readonly trust?: string;

  constructor(url: string, options: ClientOptions = {}) {
    this.http = new Http(url, options.patience ?? 60, options.token);
    this.trust = options.trust;
  }

  /**
   * Registers a statement and waits for its receipt.
   *
   * The statement is saved before the first attempt, so that a crash loses nothing: a repeated registration of the same bytes
   * gives the same entry. At the end the Transparent Statement is saved in its place. `payload` is that of a statement that does
   * not contain it: it is sent with the statement.
   */
  async register(statement: core.SignedStatement | Uint8Array, save: Save, payload?: Uint8Array): Promise<Registered> {
    const message = statement instanceof Uint8Array ? statement : statement.bytes;
    const { entry, payload: attached } = await core.readStatement(message);
    await keep(save, message);
    const body = attached !== null || payload === undefined ? { type: COSE, bytes: message } : form(message, payload);
    const receipt = await this.#submit(body, entry);
    const transparent = await core.attach(message, [receipt]);
    if (this.trust !== undefined) await this.verify(transparent, { payload });
    await keep(save, transparent);
    return { entry, receipt, transparent };
  }

  /** Waits until the registration of an entry is finished, and returns its receipt. */
  wait(entry: string): Promise<Uint8Array> {
    return this.#poll(`entries/${entry}`, new Backoff(this.http.patience));
  }

  /** Fetches a fresh receipt. It is verified by `verify`, with the statement. */
  receipt(entry: string): Promise<Uint8Array> {
    return this.wait(entry);
  }

  /** Fetches a statement; its entry ID is checked. */
  async statement(entry: string): Promise<Uint8Array> {
    const { body } = await this.http.retrying(`v1/entries/${entry}/statement`, { Accept: COSE });
    if ((await core.readStatement(body)).entry !== entry) throw new Unreachable(`the service gives another statement than ${entry}`);
    return body;
  }

  /** Verifies evidence offline with the client's trust. Throws NotVerified unless everything is verified. */
  async verify(evidence: Uint8Array, options: core.VerifyOptions = {}): Promise<Verdict> {
    const verdict = await core.verify(evidence, this.#trust(), options);
    if (verdict.outcome !== 'verified') throw new NotVerified(verdict);
    return verdict;
  }

  /** Lists the entries of a session, oldest first. */
  async session(session: string): Promise<Record<string, any>[]> {
    const entries = [];
    let path: string | undefined = `v1/sessions/${encodeURIComponent(session)}`;
    while (path) {
      const answer: Answer = await this.http.retrying(path, { Accept: 'application/json' });
      entries.push(...entriesOf(answer));
      path = next(answer);
    }
    return entries;
  }

  /** Follows new entries, and reconnects where the stream broke off, without loss or repetition. */
  follow(options: FollowOptions = {}): AsyncGenerator<EntryEvent> {
    return follow(this.http, options);
  }

  /** Verifies that the log only grew since `known` was observed. Keep what it returns for the next call. */
  monitorOnce(known?: ObservedTree, witnessPolicy?: string): Promise<ObservedTree> {
    return observe(this.http, this.#trust(), known, witnessPolicy);
  }

  async #submit({ type, bytes }: RequestBody, entry: string): Promise<Uint8Array> {
    const backoff = new Backoff(this.http.patience);
    const answer = await this.http.retrying('entries', { 'Content-Type': type, Accept: COSE }, bytes, backoff);
    if (answer.status === 201 && answer.body.length > 0) return receiptIn(answer);
    return this.#poll(this.#located(answer, 'entries', `entries/${entry}`), backoff, answer);
  }

  /** Returns what `Location` names. The token is for this service: of another one only the entry's name is used. */
  #located(answer: Answer, asked: string, otherwise: string): string {
    const location = answer.headers.get('location');
    const url = location === null ? undefined : absolute(location, this.http.url(asked));
    if (url === undefined) return otherwise;
    if (url.origin === new URL(this.http.base).origin) return url.href;
    const name = url.pathname.split('/entries/').slice(1).pop();
    return name ? `entries/${name}` : otherwise;
  }

  /** Polls for a receipt; `accepted` is the answer to the registration, if there was one. */
  async #poll(path: string, backoff: Backoff, accepted?: Answer): Promise<Uint8Array> {
    let pause = accepted && retryAfter(accepted);
    let running = accepted !== undefined;
    let failed: TabellionError | undefined;
    for (let waits = pause !== undefined; ; waits = true) {
      if (waits && !(await backoff.wait(pause))) throw running ? new StillRunning(this.http.url(path)) : failed;
      let answer: Answer;
      try {
        answer = await this.http.exchange(path, { Accept: COSE });
      } catch (error) {
        if (!(error instanceof Unreachable) || !this.http.reached) throw error;
        pause = undefined;
        failed = error;
        continue;
      }
      if (answer.status === 200) return receiptIn(answer);
      pause = retryAfter(answer);
      if (NOT_YET.has(answer.status)) {
        running = true;
        path = this.#located(answer, path, path);
        continue;
      }
      const error = await errorOf(answer);
      if (!mayRetry(error)) throw error;
      failed = error;
    }
  }

  #trust(): string {
    if (this.trust === undefined) throw new TabellionError('no-trust', 'this client has no trust file: give the text of a trust.toml');
    return this.trust;
  }
}

/** The body of a request, with its content type. */
interface RequestBody {
  type: string;
  bytes: Uint8Array;
}

/** Returns a statement and its detached payload as `multipart/form-data` (RFC 7578). */
function form(message: Uint8Array, payload: Uint8Array): RequestBody {
  const boundary = crypto.randomUUID();
  const parts: [string, string, Uint8Array][] = [['statement', COSE, message], ['payload', 'application/octet-stream', payload]];
  const utf8 = new TextEncoder();
  const chunks = parts.flatMap(([name, type, content]) => {
    const disposition = `Content-Disposition: form-data; name="${name}"; filename="${name}"`;
    return [utf8.encode(`--${boundary}\r\n${disposition}\r\nContent-Type: ${type}\r\n\r\n`), content, utf8.encode('\r\n')];
  });
  chunks.push(utf8.encode(`--${boundary}--\r\n`));
  return { type: `multipart/form-data; boundary=${boundary}`, bytes: joined(chunks) };
}

/** Saves bytes durably. */
export async function keep(save: Save, bytes: Uint8Array): Promise<void> {
  await (typeof save === 'string' ? writeDurably(save, bytes) : save(bytes));
}

/** Resolves a reference; none if it is no URL. */
function absolute(reference: string, base: string): URL | undefined {
  return URL.canParse(reference, base) ? new URL(reference, base) : undefined;
}

/** Returns the body of an answer if it is a receipt: a page of a proxy is none. Nothing is verified. */
async function receiptIn({ body }: Answer): Promise<Uint8Array> {
  try {
    await core.call('read-receipt', { receipt: body });
  } catch (error) {
    if (error instanceof CoreError) throw new Unreachable(`the service's answer is not a receipt: ${error.detail}`);
    throw error;
  }
  return body;
}

function entriesOf(answer: Answer): Record<string, any>[] {
  const entries = json(answer)?.entries;
  if (!Array.isArray(entries)) throw new Unreachable("the service's answer is not a page of a session");
  return entries;
}

/** Returns the path of the next page: the host in the link, and a path before the API, are ignored. */
function next(answer: Answer): string | undefined {
  const link = /^<[^>]*\/v1\/([^>]*)>.*rel="next"/.exec(answer.headers.get('link') ?? '');
  return link ? `v1/${link[1]}` : undefined;
}
