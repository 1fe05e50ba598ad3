// One observation of a log: its newest checkpoint is genuine, and its tree continues the one that was seen before.

import { call, verify } from './core.js';
import { CoreError, NotVerified, SplitView, Unreachable } from './errors.js';
import { type Http, json, text } from './http.js';

/** A verified tree of a log. It is what the next observation must be given. */
export interface ObservedTree {
  origin: string;
  size: number;
  root: string;
  /** The signed checkpoint: evidence, should the log ever contradict it. */
  checkpoint: string;
}

/**
 * Verifies the newest checkpoint and, if a tree is known, that the log only grew since then.
 *
 * Throws NotVerified for a checkpoint that no trusted key signed or that lacks the quorum of the witness policy, and SplitView
 * if the trees contradict each other. Returns the larger of the two trees.
 */
export async function observe(http: Http, trust: string, known?: ObservedTree, witnessPolicy?: string): Promise<ObservedTree> {
  const { body } = await http.retrying('checkpoint', { Accept: '*/*' });
  const verdict = await verify(body, trust, { witnessPolicy });
  if (verdict.outcome !== 'verified') throw new NotVerified(verdict);
  const { origin, tree_size: size, root } = verdict.checkpoint;
  const seen = { origin, size, root, checkpoint: text(body) };
  if (!known) return seen;
  await checkGrowth(http, known, seen);
  return seen.size >= known.size ? seen : known;
}

async function checkGrowth(http: Http, known: ObservedTree, seen: ObservedTree): Promise<void> {
  if (seen.origin !== known.origin) throw new Unreachable(`the service serves ${seen.origin}, and not ${known.origin}`);
  const [older, newer] = seen.size < known.size ? [seen, known] : [known, seen];
  const evidence = { known: known.checkpoint, seen: seen.checkpoint };
  if (older.size === newer.size) {
    if (older.root === newer.root) return;
    throw new SplitView(`two trees of size ${older.size} have different roots`, evidence);
  }
  if (known.size === 0) return;
  // Every tree continues the empty one, so a proof would show nothing.
  if (seen.size === 0) throw new SplitView(`the tree of size ${known.size} is gone: the log shows an empty one`, evidence);
  const path = `v1/proof/consistency?first=${older.size}&second=${newer.size}`;
  const proof = json(await http.retrying(path, { Accept: 'application/json' }));
  try {
    await call('consistency-proof', {
      older_size: older.size,
      older_root: older.root,
      newer_size: newer.size,
      newer_root: newer.root,
      path: proof?.path,
    });
  } catch (error) {
    if (!(error instanceof CoreError)) throw error;
    if (error.code !== 'proof-invalid') throw new Unreachable(`the service's answer is not a consistency proof: ${error.detail}`);
    const detail = `the tree of size ${newer.size} does not continue that of size ${older.size}: ${error.detail}`;
    throw new SplitView(detail, evidence);
  }
}
