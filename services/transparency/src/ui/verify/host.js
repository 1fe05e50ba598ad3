// Host of the SDK core, which is the verifier: the few functions of WASI preview 1 that a program with a standard input and output calls.
'use strict';

const SUCCESS = 0, BAD_DESCRIPTOR = 8, NOT_SUPPORTED = 52;
/** The clock that measures how long a policy's condition takes. The date is part of a request. */
const MONOTONIC_CLOCK = 1;

/** Thrown to unwind the program when it ends. */
class ProgramExit extends Error {
  constructor(code) {
    super(`the core ended with code ${code}`);
    this.code = code;
  }
}

/**
 * Runs the core once, in an instance of its own.
 * @param {WebAssembly.Module} module
 * @param {object} request as sdk/core describes it
 * @returns {Promise<object>} the answer
 */
async function runVerifier(module, request) {
  const streams = { input: new TextEncoder().encode(JSON.stringify(request)), read: 0, output: [], errors: [] };
  let memory;
  const functions = wasiFunctions(streams, () => memory);
  const others = { get: (known, name) => known[name] ?? (() => NOT_SUPPORTED) };
  const instance = await WebAssembly.instantiate(module, { wasi_snapshot_preview1: new Proxy(functions, others) });
  memory = instance.exports.memory;
  try {
    instance.exports._start();
  } catch (stopped) {
    if (!(stopped instanceof ProgramExit && stopped.code === 0)) {
      throw new Error(`${stopped.message} ${await new Blob(streams.errors).text()}`);
    }
  }
  return JSON.parse(await new Blob(streams.output).text());
}

/** The functions that the program imports. Pointers and sizes are numbers of 32 bits in its memory. */
function wasiFunctions(streams, memory) {
  const view = () => new DataView(memory().buffer);
  const store = (pointer, number) => view().setUint32(pointer, number, true);
  const none = (count, size) => (store(count, 0), store(size, 0), SUCCESS);
  function* buffers(vectors, count) {
    for (let vector = vectors; vector < vectors + 8 * count; vector += 8) {
      yield new Uint8Array(memory().buffer, view().getUint32(vector, true), view().getUint32(vector + 4, true));
    }
  }
  return {
    args_get: () => SUCCESS,
    args_sizes_get: none,
    clock_time_get(clock, _, result) {
      if (clock !== MONOTONIC_CLOCK) return NOT_SUPPORTED;
      return view().setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true), SUCCESS;
    },
    environ_get: () => SUCCESS,
    environ_sizes_get: none,
    fd_prestat_get: () => BAD_DESCRIPTOR,
    fd_read(descriptor, vectors, count, result) {
      if (descriptor !== 0) return BAD_DESCRIPTOR;
      let total = 0;
      for (const buffer of buffers(vectors, count)) {
        const chunk = streams.input.subarray(streams.read, streams.read + buffer.length);
        buffer.set(chunk);
        streams.read += chunk.length;
        total += chunk.length;
      }
      return store(result, total), SUCCESS;
    },
    fd_write(descriptor, vectors, count, result) {
      if (descriptor !== 1 && descriptor !== 2) return BAD_DESCRIPTOR;
      let total = 0;
      for (const buffer of buffers(vectors, count)) {
        (descriptor === 1 ? streams.output : streams.errors).push(buffer.slice());
        total += buffer.length;
      }
      return store(result, total), SUCCESS;
    },
    proc_exit(code) {
      throw new ProgramExit(code);
    },
    random_get(pointer, length) {
      crypto.getRandomValues(new Uint8Array(memory().buffer, pointer, length));
      return SUCCESS;
    },
  };
}
