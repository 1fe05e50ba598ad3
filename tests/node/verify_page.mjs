// Drives the page /ui/verify in a real Chromium over the DevTools protocol.
//
//   verify_page.mjs CHROMIUM STEPS   prints { results, requests, problems }
//
// STEPS is a JSON list; each step has one member: `size` ([width, height]), `scheme` (a colour scheme), `open` (a
// URL), `files` (an object from the ID of an input to the path of a file), `fill` (ID to text), `drop` (a list of
// paths), `click` (a selector), `press` (a list of keys), `type` (a text for the focused element), `wait` (an
// expression that becomes true), `answer` ({ path, status }: answers requests for this path without a body), `read`
// (an expression whose value is a result), or `weak` (`null`: the texts that can hardly be read are a result).

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const [chromium, text] = process.argv.slice(-2);
const { measure } = await import(join(process.env.TABELLION_TEST_SCRIPTS, 'measure.mjs'));
const profile = mkdtempSync(join(tmpdir(), 'chromium-'));
const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
  '--remote-debugging-port=0', `--user-data-dir=${profile}`, 'about:blank'];
const browser = spawn(chromium, flags, { stdio: ['ignore', 'ignore', 'pipe'] });

/** The address of the browser's protocol, which it prints when it listens. */
async function endpoint() {
  let printed = '';
  for await (const chunk of browser.stderr) {
    printed += chunk;
    const found = printed.match(/ws:\/\/127\.0\.0\.1:(\d+)\//);
    if (found) return found[1];
  }
  throw new Error(`chromium ended: ${printed}`);
}

/** A connection to the first page. */
async function connect(port) {
  const pages = await (await fetch(`http://127.0.0.1:${port}/json/list`)).json();
  const socket = new WebSocket(pages.find((page) => page.type === 'page').webSocketDebuggerUrl);
  await new Promise((open, fail) => ((socket.onopen = open), (socket.onerror = fail)));
  const [waiting, listeners] = [new Map(), []];
  let last = 0;
  socket.onmessage = ({ data }) => {
    const message = JSON.parse(data);
    if (message.id) waiting.get(message.id)(message);
    else listeners.forEach((listener) => listener(message));
  };
  const send = (method, params = {}) =>
    new Promise((done, fail) => {
      waiting.set(++last, ({ result, error }) => (error ? fail(new Error(`${method}: ${error.message}`)) : done(result)));
      socket.send(JSON.stringify({ id: last, method, params }));
    });
  return { send, listen: (listener) => listeners.push(listener), close: () => socket.close() };
}

const [requests, problems, results] = [[], [], []];

async function run(page) {
  const loaded = [];
  page.listen(({ method, params }) => {
    if (method === 'Network.requestWillBeSent') requests.push(params.request.url.slice(0, 200));
    if (method === 'Runtime.exceptionThrown') problems.push(params.exceptionDetails.exception?.description ?? 'exception');
    if (method === 'Log.entryAdded' && params.entry.level === 'error') problems.push(params.entry.text);
    if (method === 'Page.loadEventFired') loaded.splice(0).forEach((done) => done());
  });
  for (const domain of ['Page', 'Network', 'Runtime', 'Log', 'DOM']) await page.send(`${domain}.enable`);
  const evaluate = async (expression) => {
    const { result, exceptionDetails } = await page.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value;
  };
  const actions = {
    size: ([width, height]) =>
      page.send('Emulation.setDeviceMetricsOverride', { width, height, deviceScaleFactor: 1, mobile: false }),
    scheme: (value) =>
      page.send('Emulation.setEmulatedMedia', { features: [{ name: 'prefers-color-scheme', value }] }),
    open: async (url) => {
      const load = new Promise((done) => loaded.push(done));
      await page.send('Page.navigate', { url });
      await load;
    },
    files: async (inputs) => {
      const { root } = await page.send('DOM.getDocument');
      for (const [id, file] of Object.entries(inputs)) {
        const { nodeId } = await page.send('DOM.querySelector', { nodeId: root.nodeId, selector: `#${id}` });
        await page.send('DOM.setFileInputFiles', { nodeId, files: [file] });
      }
    },
    fill: async (areas) => {
      for (const [id, value] of Object.entries(areas)) {
        await evaluate(`document.getElementById(${JSON.stringify(id)}).value = ${JSON.stringify(value)}`);
      }
    },
    drop: async (files) => {
      const data = { items: [], files, dragOperationsMask: 1 };
      for (const type of ['dragEnter', 'dragOver', 'drop']) {
        await page.send('Input.dispatchDragEvent', { type, x: 20, y: 20, data });
      }
    },
    click: (selector) => evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`),
    press: async (keys) => {
      for (const key of keys) {
        const code = { Tab: 9, Enter: 13 }[key];
        const event = { key, code: key, windowsVirtualKeyCode: code, text: key === 'Enter' ? '\r' : undefined };
        await page.send('Input.dispatchKeyEvent', { type: 'keyDown', ...event });
        await page.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event });
      }
    },
    type: (characters) => page.send('Input.insertText', { text: characters }),
    // An observer reports each change of the document, so that nothing is polled.
    wait: (condition) =>
      evaluate(`new Promise((done, fail) => {
        const check = () => (${condition}) && (observer.disconnect(), done());
        const observer = new MutationObserver(check);
        observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
        for (const element of document.querySelectorAll('textarea, input')) element.addEventListener('change', check);
        setTimeout(() => fail(new Error('never: ' + document.body.innerText)), 60000);
        check();
      })`),
    answer: async ({ path, status }) => {
      page.listen(({ method, params }) => {
        if (method !== 'Fetch.requestPaused') return;
        page.send('Fetch.fulfillRequest', { requestId: params.requestId, responseCode: status });
      });
      await page.send('Fetch.enable', { patterns: [{ urlPattern: `*${path}` }] });
    },
    read: async (expression) => results.push(await evaluate(expression)),
    weak: async () => results.push((await evaluate(`(${measure})()`)).weak),
  };
  for (const step of JSON.parse(text)) {
    const [[action, argument]] = Object.entries(step);
    await actions[action](argument);
  }
}

try {
  const page = await connect(await endpoint());
  await run(page);
  page.close();
  console.log(JSON.stringify({ results, requests, problems }));
} finally {
  browser.kill('SIGKILL');
  await new Promise((done) => (browser.exitCode === null && browser.signalCode === null ? browser.once('exit', done) : done()));
  rmSync(profile, { recursive: true, force: true, maxRetries: 5 });
}
