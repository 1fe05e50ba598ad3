// Signed statements about what AI agents do, on a transparency log: register, verify offline, record sessions.

export * from './client.js';
export * as core from './core.js';
export {
  attach,
  checkContent,
  checkPolicy,
  generateKey,
  loadKey,
  readStatement,
  readTerms,
  signMessage,
  signStatement,
  strip,
  tryPolicy,
  useCore,
  verify,
  verifyChain,
  verifyConsistency,
  verifyProof,
  verifySearch,
  verifyVerdict,
} from './core.js';
export type {
  ChainDecision,
  ChainPresenter,
  CheckedContent,
  CheckedPolicy,
  PolicyTrial,
  ProofDecision,
  SearchOptions,
  SearchTerms,
  SearchVerdict,
  SignedMessage,
  SignedStatement,
  SigningKey,
  StatementFacts,
  TrialEntry,
  TrustedRegistry,
  VerifyOptions,
} from './core.js';
export * from './dev.js';
export * from './errors.js';
export * from './mcp.js';
export type { ObservedTree } from './monitor.js';
export * from './session.js';
export type { EntryEvent, FollowOptions } from './stream.js';
