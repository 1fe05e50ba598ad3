// The entries of a session's record, which together fit into one statement.

/** Bytes of a statement, at most. */
const STATEMENT_BYTES = 8 << 20;
/** Bytes of a statement for what is not an entry: its headers and the rest of the record. */
const OTHER_BYTES = 64 << 10;
/** Bytes that are kept free for the event that an error ended the session. */
export const END_BYTES = 1 << 10;

/** Entries of bounded size. */
export class Entries {
  readonly #added: object[] = [];
  #free = STATEMENT_BYTES - OTHER_BYTES - END_BYTES;
  #isFull = false;
  #ended = false;

  /** Whether the record is made already. */
  get ended(): boolean {
    return this.#ended;
  }

  /**
   * Adds an entry if it fits and the record is not made yet, and returns its bytes, else 0. `kept` bytes were kept free for it.
   * With `keep`, as many bytes as it has are kept free for a later one.
   */
  add(type: string, members: object, { kept = 0, keep = false } = {}): number {
    const entry = this.#entry(type, members);
    const size = encoded(entry).length + ','.length;
    const needed = keep ? 2 * size : size;
    if (this.#ended || needed > this.#free + kept) return 0;
    this.#free += kept - needed;
    this.#added.push(entry);
    return size;
  }

  /** Adds an event `record-full`, once: the record does not have all from here on. */
  noteFull(): void {
    if (this.#ended || this.#isFull) return;
    this.#isFull = true;
    this.#added.push(this.#entry('system-event', { 'event-type': 'record-full' }));
  }

  /** Returns the entries. No more can be added. */
  end(): object[] {
    this.#ended = true;
    return this.#added;
  }

  #entry(type: string, members: object): object {
    return { type, id: String(this.#added.length + 1), timestamp: timestamp(), ...members };
  }
}

/** Encodes JSON as it is in a record. */
export function encoded(value: object): Uint8Array {
  return new TextEncoder().encode(JSON.stringify(value));
}

/** Returns the current time as a record has it. */
export function timestamp(): string {
  return new Date().toISOString();
}
