// Errors. Each carries the code that the service, the verifier or the core gave.

/** Base of all errors. `code` is stable; the text is for people and may quote what others wrote. */
export class TabellionError extends Error {
  constructor(
    readonly code: string,
    readonly detail: string,
  ) {
    super(`${detail} [${code}]`);
    this.name = new.target.name;
  }
}

/** Input that cannot be used: a malformed statement, key or message. `offset` is the byte at fault, if known. */
export class CoreError extends TabellionError {
  constructor(
    code: string,
    detail: string,
    readonly offset?: number,
  ) {
    super(code, detail);
  }
}

/** The members of problem details that the service uses. */
export interface Problem {
  title?: string | null;
  detail?: string | null;
  code?: string | null;
  rule?: string | null;
}

/** An error answer of the service. */
export class ServiceError extends TabellionError {
  constructor(
    readonly status: number,
    readonly problem: Problem,
    readonly retryAfter?: number,
  ) {
    const text = problem.detail ?? problem.title ?? `the service answered with status ${status}`;
    super(problem.code ?? `http-${status}`, text);
  }
}

/** The service refuses the request: a retry will not help. */
export class Refused extends ServiceError {}

/** There is no such entry. */
export class NotFound extends Refused {}

/** The service cannot answer now, and the patience is used up, or its operator must act first. */
export class TryAgain extends ServiceError {}

/** No answer was received, or one that violates the protocol. */
export class Unreachable extends TabellionError {
  constructor(detail: string) {
    super('unreachable', detail);
  }
}

/** The registration was accepted and is not finished; `location` is the URL to poll. */
export class StillRunning extends TabellionError {
  constructor(readonly location: string) {
    super('still-running', `still being registered: ${location}`);
  }
}

/** One check of a verdict. */
export interface Check {
  name: string;
  state: 'ok' | 'failed' | 'not-done';
  code?: string | null;
  detail: string;
}

/** A verdict. `outcome` is proven by `checks`, which list all that was checked and what was not. */
export interface Verdict {
  outcome: 'verified' | 'failed' | 'not-verified';
  reason: string | null;
  checks: Check[];
  [more: string]: any;
}

/** Evidence that does not verify. */
export class NotVerified extends TabellionError {
  constructor(readonly verdict: Verdict) {
    super(String(verdict.reason), `not verified: ${reasonIn(verdict)}`);
  }
}

/** Returns what the check says that decided a verdict; in a bundle, after the part that it is about. */
function reasonIn(verdict: Verdict): string {
  const { reason } = verdict;
  for (const [part, checked] of partsOf(verdict)) {
    const check = checked.reason === reason && checked.checks?.find(({ code }) => code === reason);
    if (check) return `${part}${check.detail}`;
  }
  return verdict.outcome;
}

function* partsOf(verdict: Verdict): Generator<[string, Partial<Verdict>]> {
  yield ['', verdict];
  yield ['checkpoint: ', verdict.checkpoint ?? {}];
  for (const [name, parts] of [['policy', verdict.policies ?? []], ['entry', verdict.entries ?? []]]) {
    for (const [at, part] of parts.entries()) yield [`${name} ${at + 1} of ${parts.length}: `, part];
  }
}

/** The log's new checkpoint does not continue the one that was verified before. */
export class SplitView extends TabellionError {
  constructor(
    detail: string,
    readonly evidence: { known: string; seen: string },
  ) {
    super('split-view', detail);
  }
}

/**
 * What the session or the gateway does not allow: a call outside of scope or budget, which was not made, or a commitment or
 * amendment.
 *
 * `code` is the reason, such as `scope_escape`. With `no_verdict`, the server is not a gateway, and what it did is not known.
 */
export class Denied extends TabellionError {}
