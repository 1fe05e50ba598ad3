// Opens pages in a headless Chromium, with or without JavaScript, and measures them over the DevTools protocol.
//
//   explorer.mjs CHROMIUM FOLDER with-scripts|without-scripts BASE_URL PATH…
//
// Prints a JSON array with an object for each path, width and colour scheme: status, overflow, contrast, focus, requests to
// other origins. Screenshots go to FOLDER.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const [chromium, folder, scripting, base, ...paths] = process.argv.slice(1);
const { measure } = await import(join(process.env.TABELLION_TEST_SCRIPTS, "measure.mjs"));
const WIDTHS = [320, 1280];
const SCHEMES = ["light", "dark"];
const TABS = 12;

// --- the browser --------------------------------------------------------------------------------

const profile = mkdtempSync(join(tmpdir(), "tabellion-browser."));
const browser = spawn(chromium, [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
  "--remote-debugging-port=0", `--user-data-dir=${profile}`, "about:blank",
], { stdio: ["ignore", "ignore", "pipe"] });

async function address() {
  for await (const line of createInterface({ input: browser.stderr })) {
    const found = line.match(/^DevTools listening on (ws:.*)$/);
    if (found) return found[1];
  }
  throw new Error("the browser did not start");
}

const socket = new WebSocket(await address());
await once(socket, "open");
let lastId = 0;
const waiting = new Map();
const listeners = new Set();
socket.addEventListener("message", ({ data }) => {
  const message = JSON.parse(data);
  if (message.id === undefined) return listeners.forEach((listener) => listener(message));
  const { resolve, reject } = waiting.get(message.id);
  waiting.delete(message.id);
  message.error ? reject(new Error(JSON.stringify(message.error))) : resolve(message.result);
});

function call(method, params = {}, sessionId = undefined) {
  const id = ++lastId;
  socket.send(JSON.stringify({ id, method, params, sessionId }));
  return new Promise((resolve, reject) => waiting.set(id, { resolve, reject }));
}

function event(method, sessionId) {
  return new Promise((resolve) => {
    const listener = (message) => {
      if (message.method !== method || message.sessionId !== sessionId) return;
      listeners.delete(listener);
      resolve(message.params);
    };
    listeners.add(listener);
  });
}

// --- what is measured in the page ---------------------------------------------------------------

/** The focused element with its label or text, and whether its focus can be seen; `null` if none is focused. */
function focused() {
  const element = document.activeElement;
  if (element === document.body) return null;
  const style = getComputedStyle(element);
  const visible = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
  const name = element.getAttribute("aria-label") ?? (element.labels?.[0] ?? element).textContent;
  return { name: `${element.localName} ${name.trim().slice(0, 40)}`, visible };
}

// --- a page -------------------------------------------------------------------------------------

async function opened(path, width, scheme) {
  const { targetId } = await call("Target.createTarget", { url: "about:blank" });
  const { sessionId } = await call("Target.attachToTarget", { targetId, flatten: true });
  const page = (method, params) => call(method, params, sessionId);
  const evaluate = async (what) => {
    const { result, exceptionDetails } = await page("Runtime.evaluate", { expression: `(${what})()`, returnByValue: true });
    if (exceptionDetails) throw new Error(JSON.stringify(exceptionDetails));
    return result.value;
  };
  const requests = [];
  let status = 0;
  const listener = ({ method, params, sessionId: of }) => {
    if (of !== sessionId) return;
    if (method === "Network.requestWillBeSent") requests.push(params.request.url);
    if (method === "Network.responseReceived" && params.type === "Document") status = params.response.status;
  };
  listeners.add(listener);
  await Promise.all([page("Page.enable"), page("Network.enable"), page("Runtime.enable")]);
  await page("Emulation.setScriptExecutionDisabled", { value: scripting === "without-scripts" });
  await page("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: false });
  await page("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
  const loaded = event("Page.loadEventFired", sessionId);
  await page("Page.navigate", { url: base + path });
  await loaded;
  const measured = await evaluate(measure);
  const focus = [];
  for (let tab = 0; tab < TABS; tab++) {
    for (const type of ["keyDown", "keyUp"]) {
      await page("Input.dispatchKeyEvent", { type, key: "Tab", code: "Tab", windowsVirtualKeyCode: 9 });
    }
    const element = await evaluate(focused);
    if (!element) break; // The last element of the page was before.
    focus.push(element);
  }
  const { data } = await page("Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
  const number = String(paths.indexOf(path)).padStart(2, "0");
  const name = `${number}${path.replace(/[^a-z0-9]+/gi, "-").slice(0, 60)}-${width}-${scheme}-${scripting}.png`;
  writeFileSync(join(folder, name), Buffer.from(data, "base64"));
  listeners.delete(listener);
  await call("Target.closeTarget", { targetId });
  const foreign = requests.filter((url) => !url.startsWith(`${base}/`) && !url.startsWith("data:"));
  return { path, width, scheme, status, foreign, focus, screenshot: name, ...measured, overflow: measured.scrollWidth > width };
}

const found = [];
try {
  for (const path of paths) {
    for (const width of WIDTHS) {
      for (const scheme of SCHEMES) found.push(await opened(path, width, scheme));
    }
  }
} finally {
  // The program may be a script that starts the browser: only the browser itself ends all of its processes.
  const ended = once(browser, "exit");
  call("Browser.close"); // It need not answer any more.
  await ended;
  rmSync(profile, { recursive: true, force: true });
}
console.log(JSON.stringify(found));
