//! Statements, receipts and everything that is done to them.

mod attacks;
mod certificates;
mod consistency;
mod foreign;
mod fuzz;
mod index;
mod store;
mod vectors;
mod verdicts;
mod witnesses;

use merkle::{CompactRange, EntryDigest, Hash, LeafHash, LeafIndex, RootHash, TreeSize, hash_leaf};
use scitt::transparent::attach;
use scitt::{
    Algorithm, CoseKey, PublicKey, ReceiptHeader, SignedRoot, SignedStatement, Signer, SigningKey,
    StatementBuilder,
};

use crate::*;

const NOW: u64 = 1_795_000_000;
const ISS: &str = "https://issuer.example";
const LOG_ISS: &str = "https://log.example";
const ORIGIN: &str = "log.example";
const PAYLOAD: &[u8] = br#"{"action":"deploy","verdict":"allow"}"#;

fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::generate(algorithm).unwrap()
}

fn listed(key: &dyn Signer) -> CoseKey {
    bare(key.public_key())
}

fn bare(key: &PublicKey) -> CoseKey {
    CoseKey::bare(key.clone())
}

fn builder(issuer: &SigningKey) -> StatementBuilder {
    StatementBuilder::new(PAYLOAD)
        .content_type("application/json")
        .kid(issuer.public_key().thumbprint())
        .iss(ISS)
        .sub("hello.json")
}

/// A log of nine leaves, with the statement at 4.
struct Log {
    key: SigningKey,
    iss: &'static str,
    origin: &'static str,
    rule: LeafRule,
    /// Time of the tree, in Unix seconds.
    iat: u64,
}

impl Log {
    fn new() -> Self {
        let (key, rule) = (key(Algorithm::Es256), LeafRule::default());
        Self { key, iss: LOG_ISS, origin: ORIGIN, rule, iat: NOW - 60 }
    }

    fn leaf(&self, statement: &SignedStatement) -> LeafHash {
        match self.rule {
            LeafRule::Sha256OfStatement => statement.digest().leaf_hash(),
            LeafRule::Statement => hash_leaf(statement.bytes()),
        }
    }

    fn grow(&self, statement: &SignedStatement) -> (RootHash, LeafIndex, TreeSize, Vec<Hash>) {
        let mut leaves: Vec<LeafHash> = (0..9u8).map(|n| EntryDigest::of(&[n]).leaf_hash()).collect();
        leaves[4] = self.leaf(statement);
        let growth = CompactRange::empty().grow(&leaves);
        let index = LeafIndex::new(4);
        (growth.root(), index, TreeSize::new(9), growth.path(index).unwrap())
    }

    fn header(&self, tree_size: TreeSize) -> ReceiptHeader {
        ReceiptHeader {
            alg: self.key.algorithm(),
            kid: self.key.public_key().thumbprint().to_vec(),
            iss: self.iss.to_owned(),
            sub: self.origin.to_owned(),
            iat: self.iat,
            tree_size,
        }
    }

    fn signed(&self, statement: &SignedStatement) -> (SignedRoot, LeafIndex, Vec<Hash>) {
        let (root, index, size, path) = self.grow(statement);
        (self.header(size).sign_root(&self.key, &root).unwrap(), index, path)
    }

    fn receipt(&self, statement: &SignedStatement) -> Vec<u8> {
        let (signed, index, path) = self.signed(statement);
        signed.inclusion_receipt(index, &path)
    }

    fn trusted(&self) -> TrustedLog {
        TrustedLog { leaf_rule: self.rule, ..TrustedLog::new(self.iss, self.origin, vec![listed(&self.key)]) }
    }
}

/// An issuer, a log, a statement, its receipt, and somebody who trusts both.
struct World {
    issuer: SigningKey,
    log: Log,
    statement: SignedStatement,
    receipt: Vec<u8>,
    trust: TrustStore,
}

impl World {
    fn new() -> Self {
        Self::with(Algorithm::EdDsa, |builder| builder)
    }

    fn with(algorithm: Algorithm, change: impl FnOnce(StatementBuilder) -> StatementBuilder) -> Self {
        let (issuer, log) = (key(algorithm), Log::new());
        let statement = change(builder(&issuer)).sign(&issuer).unwrap();
        let receipt = log.receipt(&statement);
        let trust = TrustStore {
            logs: vec![log.trusted()],
            issuers: vec![TrustedIssuer::new(ISS, vec![listed(&issuer)])],
            ..TrustStore::default()
        };
        Self { issuer, log, statement, receipt, trust }
    }

    fn transparent(&self) -> Vec<u8> {
        attach(self.statement.bytes(), &[&self.receipt]).unwrap()
    }

    fn verify(&self) -> StatementVerdict {
        self.verify_payload(None)
    }

    fn verify_payload(&self, payload: Option<&[u8]>) -> StatementVerdict {
        let statement = self.transparent();
        verify(&StatementEvidence { statement: &statement, receipts: &[], payload }, &self.trust, NOW)
    }

    fn verify_bytes(&self, statement: &[u8], receipts: &[&[u8]]) -> StatementVerdict {
        verify(&StatementEvidence { statement, receipts, payload: None }, &self.trust, NOW)
    }
}

#[track_caller]
fn assert_verified(verdict: &StatementVerdict) {
    assert_eq!((verdict.outcome, verdict.reason), (VerificationOutcome::Verified, None), "{verdict:#?}");
    assert_eq!(verdict.outcome.exit_code(), 0);
}

#[track_caller]
fn assert_failed(verdict: &StatementVerdict, code: Code) {
    assert_eq!((verdict.outcome, verdict.reason), (VerificationOutcome::Failed, Some(code)), "{verdict:#?}");
    assert_eq!(verdict.outcome.exit_code(), 3);
    assert_eq!(verdict.decisive().and_then(|check| check.code), Some(code));
}

#[track_caller]
fn assert_not_verified(verdict: &StatementVerdict, code: Code) {
    assert_eq!(
        (verdict.outcome, verdict.reason),
        (VerificationOutcome::NotVerified, Some(code)),
        "{verdict:#?}"
    );
    assert_eq!(verdict.outcome.exit_code(), 4);
    assert!(verdict.decisive().is_some());
}

fn state(verdict: &StatementVerdict, name: CheckName) -> Option<CheckState> {
    verdict.checks_named(name).next().map(|check| check.state)
}
