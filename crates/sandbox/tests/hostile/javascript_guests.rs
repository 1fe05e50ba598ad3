//! Hostile functions in JavaScript.

use crate::support::Row;

pub const GUESTS: &[Row] = &[
    // The host, if there were a way to it.
    ("require", "function main() { require('fs') }", &["threw ReferenceError: require is not defined"]),
    ("process", "function main() { process.exit(0) }", &["threw ReferenceError: process is not defined"]),
    (
        "fetch to the canary",
        "function main() { return fetch('http://127.0.0.1:@PORT@/') }",
        &["threw ReferenceError: fetch is not defined"],
    ),
    (
        "a web socket",
        "function main() { new WebSocket('ws://127.0.0.1:@PORT@/') }",
        &["threw ReferenceError: WebSocket is not defined"],
    ),
    ("an HTTP request", "function main() { new XMLHttpRequest() }", &["threw ReferenceError"]),
    (
        "the module std",
        "import * as std from 'std'; export const main = () => std.loadFile('@FILE@')",
        &["not loaded ReferenceError: the job has no file 'std'"],
    ),
    (
        "the module os",
        "import * as os from 'os'; export const main = () => os.exec(['sh'])",
        &["not loaded ReferenceError: the job has no file 'os'"],
    ),
    (
        "the canary as a module",
        "import '@FILE@'; export const main = () => 1",
        &["not loaded ReferenceError: the job has no file"],
    ),
    (
        "the canary by dots",
        "import '../../../../..@FILE@'; export const main = () => 1",
        &["not loaded ReferenceError: the job has no file"],
    ),
    (
        "the canary as a dynamic import",
        "async function main() { return await import('@FILE@') }",
        &["threw ReferenceError: the job has no file"],
    ),
    (
        "a module by URL",
        "async function main() { return await import('http://127.0.0.1:@PORT@/x.js') }",
        &["threw ReferenceError: the job has no file"],
    ),
    (
        "a module by data URL",
        "async function main() { return await import('data:text/javascript,1') }",
        &["threw ReferenceError: the job has no file"],
    ),
    ("a file by name", "function main() { return open('@FILE@') }", &["threw ReferenceError"]),
    ("loading a script", "function main() { load('@FILE@') }", &["threw ReferenceError"]),
    ("scripts of the shell", "function main() { scriptArgs }", &["threw ReferenceError"]),
    (
        "the debugger of other engines",
        "function main() { return typeof $262 + typeof Deno + typeof Bun + typeof bjson }",
        &["returned \"undefinedundefinedundefinedundefined\""],
    ),
    (
        "WebAssembly in WebAssembly",
        "function main() { return typeof WebAssembly }",
        &["returned \"undefined\""],
    ),
    ("timers", "function main() { return typeof setTimeout }", &["returned \"undefined\""]),
    ("a worker", "function main() { new Worker('x.js') }", &["threw ReferenceError"]),
    (
        "waiting",
        "function main() { return Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1e9) }",
        &["threw TypeError", "threw ReferenceError"],
    ),
    (
        "globals",
        "function main() { return Object.getOwnPropertyNames(globalThis).filter(name => /host|wasi|file|socket/i.test(name)) }",
        &["returned []"],
    ),
    // Time and fuel.
    ("an endless loop", "function main() { for (;;) {} }", &["out of fuel"]),
    ("an endless loop while loading", "for (;;) {}", &["out of fuel"]),
    ("an endless loop in a module", "export const main = 1; for (;;) {}", &["out of fuel"]),
    (
        "an endless generator",
        "function main() { return [...function* () { for (;;) yield }()] }",
        &["out of fuel", "out of memory"],
    ),
    ("a queue that never ends", "async function main() { for (;;) await null }", &["out of fuel"]),
    (
        "jobs that add jobs",
        "function main() { const again = () => { Promise.resolve().then(again) }; again(); return new Promise(() => {}) }",
        &["out of fuel", "out of memory"],
    ),
    (
        "a promise that is never settled",
        "function main() { return new Promise(() => {}) }",
        &["threw TypeError: the promise was never settled"],
    ),
    (
        "a catastrophic pattern",
        "function main() { return /^(a+)+$/.test('a'.repeat(64) + 'b') }",
        &["out of fuel"],
    ),
    (
        "a pattern with nested lookbehinds",
        "function main() { return /(?<=(a*)*)*b/.test('a'.repeat(1000)) }",
        &["not loaded SyntaxError", "returned false", "out of fuel", "out of memory"],
    ),
    (
        "sorting with a comparison that loops",
        "function main() { [2, 1].sort(() => { for (;;) {} }) }",
        &["out of fuel"],
    ),
    (
        "a getter that loops when the result is written",
        "function main() { return { get a() { for (;;) {} } } }",
        &["out of fuel"],
    ),
    ("toJSON that loops", "function main() { return { toJSON() { for (;;) {} } } }", &["out of fuel"]),
    (
        "a proxy that never ends",
        "function main() { return new Proxy({}, { ownKeys: () => { for (;;) {} } }) }",
        &["out of fuel"],
    ),
    (
        "a large power",
        "function main() { return String(7n ** 10000000n).length }",
        &["out of fuel", "out of memory", "threw RangeError"],
    ),
    (
        "finally against the bound",
        "function main() { for (;;) try { for (;;) {} } finally { continue } }",
        &["out of fuel"],
    ),
    (
        "catching the bound",
        "function main() { try { for (;;) {} } catch { return 'survived' } }",
        &["out of fuel"],
    ),
    (
        "a string that is searched again and again",
        "function main() { const s = 'a'.repeat(1e6); let n = 0; for (let i = 0; i < 1e6; i++) n += s.indexOf('b', i); return n }",
        &["out of fuel"],
    ),
    // Memory.
    (
        "many buffers",
        "function main() { const all = []; for (;;) all.push(new Uint8Array(1 << 20)) }",
        &["out of memory"],
    ),
    (
        "one large buffer",
        "function main() { return new ArrayBuffer(2 ** 31 - 1).byteLength }",
        &["out of memory"],
    ),
    (
        "a buffer larger than the address space",
        "function main() { return new ArrayBuffer(2 ** 40) }",
        &["threw RangeError"],
    ),
    (
        "a huge string",
        "function main() { return 'x'.repeat(2 ** 30) }",
        &["threw RangeError", "out of memory"],
    ),
    (
        "strings that double",
        "function main() { let s = 'x'; for (;;) s += s }",
        &["threw RangeError", "out of memory", "too much output", "threw InternalError: string too long"],
    ),
    (
        "a huge array",
        "function main() { return new Array(2 ** 32 - 1).fill(0) }",
        &["out of memory", "out of fuel"],
    ),
    (
        "a huge sparse array",
        "function main() { const a = []; a[2 ** 32 - 2] = 1; return JSON.stringify(a) }",
        &["out of memory", "out of fuel", "threw"],
    ),
    ("many objects", "function main() { let a; for (;;) a = { a } }", &["out of memory", "out of fuel"]),
    (
        "many symbols",
        "function main() { for (let i = 0; ; i++) Symbol.for('s' + i) }",
        &["out of memory", "out of fuel"],
    ),
    (
        "many closures",
        "function main() { let f = () => 0; for (;;) { const g = f; f = () => g } }",
        &["out of memory", "out of fuel"],
    ),
    (
        "memory that is refused again and again",
        "function main() { for (;;) try { new ArrayBuffer(2 ** 31 - 1) } catch {} }",
        &["out of fuel"],
    ),
    (
        "a program that is too large",
        "function main() { return Function('return ' + '1+'.repeat(3e6) + '1')() }",
        &["out of memory", "out of fuel", "threw"],
    ),
    // Stack.
    (
        "endless recursion",
        "function main() { return main() }",
        &["threw RangeError: Maximum call stack size exceeded", "threw InternalError"],
    ),
    (
        "recursion by a getter",
        "const o = { get a() { return this.a } }; function main() { return o.a }",
        &["threw RangeError", "threw InternalError"],
    ),
    (
        "recursion by a proxy",
        "function main() { const p = new Proxy({}, {}); Object.setPrototypeOf(p, p); return p.x }",
        &["threw RangeError", "threw InternalError", "threw TypeError"],
    ),
    (
        "recursion by toString",
        "function main() { const a = []; a.toString = () => a + ''; return a + '' }",
        &["threw RangeError", "threw InternalError"],
    ),
    (
        "recursion by sort",
        "function main() { [1, 2].sort(main) }",
        &["threw RangeError", "threw InternalError"],
    ),
    (
        "a deep structure to write",
        "function main() { let a = []; for (let i = 0; i < 1e5; i++) a = [a]; return a }",
        &["not json RangeError", "not json InternalError", "out of fuel"],
    ),
    (
        "a deep structure to read",
        "function main() { return JSON.parse('['.repeat(1e6)) }",
        &["threw RangeError", "threw InternalError", "threw SyntaxError", "out of memory"],
    ),
    (
        "deep parentheses",
        "function main() { return eval('('.repeat(1e6)) }",
        &["threw RangeError", "threw InternalError", "threw SyntaxError", "out of memory", "out of fuel"],
    ),
    (
        "a deep pattern",
        "function main() { return new RegExp('('.repeat(1e5) + ')'.repeat(1e5)).test('') }",
        &["threw RangeError", "threw InternalError", "threw SyntaxError", "returned"],
    ),
    (
        "many arguments",
        "function main() { return Math.max(...new Array(1e6).fill(1)) }",
        &["threw RangeError", "threw InternalError", "out of memory", "returned 1", "out of fuel"],
    ),
    // Output.
    ("much output", "function main() { for (;;) console.log('spam') }", &["too much output"]),
    (
        "much output on standard error",
        "function main() { for (;;) console.error('spam') }",
        &["too much output"],
    ),
    ("a long result", "function main() { return 'x'.repeat(30000) }", &["too much output"]),
    ("a long exception", "function main() { throw new Error('x'.repeat(100000)) }", &["threw Error: xxx"]),
    // Results.
    (
        "JSON replaced",
        "JSON.stringify = () => '\"lie\"'; JSON.parse = null; function main() { return 1 }",
        &["returned 1"],
    ),
    ("JSON removed", "delete globalThis.JSON; function main() { return 1 }", &["returned 1"]),
    (
        "prototypes polluted",
        "Object.prototype.toJSON = () => 'polluted'; function main() { return { a: 1 } }",
        &["returned \"polluted\""],
    ),
    (
        "arrays polluted",
        "Object.defineProperty(Array.prototype, 0, { get: () => 'polluted', set() {} }); function main(...all) { return all.length }",
        &["returned 0"],
    ),
    (
        "exports that throw",
        "Object.defineProperty(module, 'exports', { get() { throw new Error('no') } }); function main() { return 1 }",
        &["not loaded Error: no"],
    ),
    ("a default that is not a function", "export default { main: 1 }", &["not loaded ReferenceError"]),
    (
        "a result that throws",
        "function main() { return { toJSON() { throw new RangeError('no') } } }",
        &["not json RangeError: no"],
    ),
    ("a circle", "function main() { const a = {}; a.a = a; return a }", &["not json TypeError: "]),
    ("a large integer", "function main() { return 1n }", &["not json TypeError"]),
    ("not a number", "function main() { return NaN }", &["not json TypeError: NaN has no JSON form"]),
    (
        "infinity in an array",
        "function main() { return [1, { a: [-1 / 0] }] }",
        &["not json TypeError: -Infinity has no JSON form"],
    ),
    (
        "an object of a number that is infinite",
        "function main() { return { toJSON() { return new Number(Infinity) } } }",
        &["not json TypeError: Infinity has no JSON form"],
    ),
    (
        "numbers that are finite",
        "function main() { return [NaN].concat([-0, 1e300, new Number(2.5), null, undefined]).slice(1) }",
        &["returned [0,1e+300,2.5,null,null]"],
    ),
    ("half a character", "function main() { return '\\ud800' }", &["returned \"\\ud800\""]),
    ("a zero character", "function main() { return 'a\\0b' }", &["returned \"a\\u0000b\""]),
    (
        "an exception that is not an error",
        "function main() { throw { toString() { throw 1 } } }",
        &["threw an exception that has no text"],
    ),
    ("an exception that is nothing", "function main() { throw undefined }", &["threw undefined"]),
    (
        "a thenable that never answers",
        "async function main() { return { then() {} } }",
        &["threw TypeError: the promise was never settled"],
    ),
    (
        "a revoked proxy",
        "function main() { const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy }",
        &["not json TypeError"],
    ),
    (
        "a finalizer",
        "new FinalizationRegistry(() => { for (;;) {} }).register({}, 1); function main() { return 1 }",
        &["returned 1", "out of fuel"],
    ),
];
