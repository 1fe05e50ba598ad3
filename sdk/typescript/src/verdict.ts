// What a gateway's Verdict says. Nothing is verified here.

type Members = Record<string, any>;

/** Returns whether a Verdict accepts a commitment or an amendment, as it is or reduced. */
export function isAccepted(verdict: Members): boolean {
  return ['served', 'downgraded'].includes(verdict.verdict);
}

/** Returns whether a Verdict is about a call that was not made. */
export function isNotMade(verdict: Members): boolean {
  return ['denied', 'clarify'].includes(verdict.verdict);
}

/** Returns the code of the reason why a Verdict does not accept a message. */
export function reasonOf(verdict: Members): string {
  const reason = verdict.verification?.reason;
  return typeof reason === 'string' ? reason : 'denied';
}

/** Returns whether a value is a JSON object. */
export function isObject(value: unknown): value is Members {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
