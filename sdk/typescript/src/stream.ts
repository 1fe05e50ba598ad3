// New entries as server-sent events (`GET /v1/entries/stream`), with reconnection.

import { Unreachable } from './errors.js';
import { type Answer, Backoff, errorOf, type Http, mayRetry, parseJson, read, sleep } from './http.js';

const EVENT_STREAM = 'text/event-stream';
/** Silence in milliseconds after which a connection counts as dead: three times the service's keep-alive interval. */
const SILENCE = 45_000;
/** Pause in seconds before reconnecting after a stream ended. */
const PAUSE = 0.2;
/** Maximum length of an event in characters. */
const MAX_EVENT = 8 << 20;

/** An entry as the log reports it: its leaf index, and the row of `GET /v1/entries`. It is not verified. */
export interface EntryEvent {
  leaf: number;
  entry: Record<string, any>;
}

/** Where a stream begins, and which entries it has. */
export interface FollowOptions {
  /** Begins after this leaf. */
  after?: number;
  /** Begins with the first entry. Without both, the stream begins with the next new one. */
  begin?: boolean;
  /** Search parameters of the API, such as `session` and `issuer`. */
  filters?: Record<string, string>;
}

/**
 * Yields entries for ever. Temporary failures are retried within the patience; then their error is thrown.
 *
 * The patience begins anew after a connection that carried anything, if only a comment as keep-alive.
 */
export async function* follow(http: Http, options: FollowOptions): AsyncGenerator<EntryEvent> {
  let last = options.begin ? 'none' : options.after?.toString();
  const query = options.filters ? `?${new URLSearchParams(options.filters)}` : '';
  let backoff = new Backoff(http.patience);
  for (;;) {
    const { response, stop } = await connect(http, `v1/entries/stream${query}`, last, backoff);
    let hasData = false;
    try {
      for await (const event of events(opened(response), stop)) {
        hasData = true;
        last = event.id ?? last;
        if (event.kind === 'entry' && event.data !== undefined) {
          if (!/^\d+$/.test(last ?? '')) throw new Unreachable('the stream has an entry without a leaf');
          yield { leaf: Number(last), entry: parseJson(event.data, 'an entry of the stream') };
        }
      }
    } finally {
      stop.abort();
    }
    if (hasData) {
      backoff = new Backoff(http.patience);
      await sleep(PAUSE);
    } else if (!(await backoff.wait(PAUSE))) {
      throw new Unreachable(`the stream of ${http.base} carries neither events nor keep-alives`);
    }
  }
}

/** An open response, and what ends it. */
interface Connection {
  response: Response;
  stop: AbortController;
}

async function connect(http: Http, path: string, last: string | undefined, backoff: Backoff): Promise<Connection> {
  const headers: Record<string, string> = { Accept: EVENT_STREAM };
  if (last !== undefined) headers['Last-Event-ID'] = last;
  for (;;) {
    let failed: any;
    try {
      const answered = await attempt(http, path, headers);
      if ('response' in answered) return answered;
      failed = await errorOf(answered);
      if (!mayRetry(failed)) throw failed;
    } catch (error) {
      if (!(error instanceof Unreachable)) throw error;
      failed = error;
    }
    if (!(await backoff.wait(failed.retryAfter))) throw failed;
  }
}

/** Connects once, and reads the answer to its end unless it has status 200. */
async function attempt(http: Http, path: string, headers: Record<string, string>): Promise<Connection | Answer> {
  const stop = new AbortController();
  const silent = setTimeout(() => stop.abort(), SILENCE);
  try {
    const response = await http.open(path, headers, { signal: stop.signal });
    return response.status === 200 ? { response, stop } : await read(response);
  } finally {
    clearTimeout(silent);
  }
}

/** Returns a response with status 200 if it is a stream of events: a page of a proxy is none. */
function opened(response: Response): Response {
  const kind = response.headers.get('content-type') ?? '';
  if (kind.split(';')[0]?.trim().toLowerCase() === EVENT_STREAM) return response;
  throw new Unreachable(`${response.url} has the content type ${JSON.stringify(kind)}, and ${EVENT_STREAM} is due`);
}

interface EventFields {
  kind?: string;
  data?: string;
  id?: string;
}

/** Parses complete events (HTML, section 9.2) until the connection ends or falls silent. */
async function* events(response: Response, stop: AbortController): AsyncGenerator<EventFields> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = '';
  for (;;) {
    const silent = setTimeout(() => stop.abort(), SILENCE);
    const chunk = await reader.read().catch(() => ({ done: true, value: undefined }));
    clearTimeout(silent);
    if (chunk.done) return;
    buffer += chunk.value;
    if (buffer.length > MAX_EVENT) throw new Unreachable(`an event of the stream has more than ${MAX_EVENT} characters`);
    const parts = buffer.split(/\r\n\r\n|\n\n|\r\r/);
    buffer = parts.pop() ?? '';
    for (const part of parts) yield parse(part);
  }
}

function parse(block: string): EventFields {
  const fields: EventFields = {};
  for (const line of block.split(/\r\n|\n|\r/)) {
    const at = line.indexOf(':');
    const [name, value] = at < 0 ? [line, ''] : [line.slice(0, at), line.slice(at + 1).replace(/^ /, '')];
    if (name === 'event') fields.kind = value;
    else if (name === 'id') fields.id = value;
    else if (name === 'data') fields.data = fields.data === undefined ? value : `${fields.data}\n${value}`;
  }
  return fields;
}
