//! A log with fixed keys, whose signatures never change, and the bundle of its entries.

use bundle::{
    AdmittedBy, BundleClaims, BundleEntry, BundleProof, BundleSelection, EvidenceBundle, SelectedBy, VERSION,
};
use merkle::{CompactRange, EntryDigest, LeafIndex, TreeGrowth, TreeSize};
use scitt::{CoseKey, ReceiptHeader, SignedStatement, Signer, SigningKey, StatementBuilder};
use testkit::{KID, LOG_ISS, NOW, ORIGIN};
use tlog::checkpoint::Checkpoint;
use tlog::cosignature::cosign;
use tlog::note::{LocalKey, NoteSigner};
use verifier::{TrustStore, TrustedIssuer, TrustedLog};

/// The issuer of the entries.
pub const AGENT: &str = "https://agent.example";
/// The detached payload of the last entry.
pub const DETACHED: &[u8] = br#"{"report":"ten pages"}"#;

/// Statements in the order of their leaves: the policy, an entry of another issuer, and three entries of a session.
pub struct TestLog {
    pub statements: Vec<SignedStatement>,
    growth: TreeGrowth,
}

impl TestLog {
    pub fn new() -> Self {
        let entry = |sub: &str, payload: &str| statement(sub, payload).sign(&agent()).unwrap();
        let statements = vec![
            testkit::policy_statement(),
            testkit::vrf(1),
            entry("session-1", r#"{"call":"search"}"#),
            entry("session-1", r#"{"call":"deploy"}"#),
            statement("session-1", std::str::from_utf8(DETACHED).unwrap()).detached().sign(&agent()).unwrap(),
        ];
        let leaves: Vec<_> = statements.iter().map(|statement| statement.digest().leaf_hash()).collect();
        Self { growth: CompactRange::empty().grow(&leaves), statements }
    }

    fn size(&self) -> TreeSize {
        TreeSize::new(self.statements.len() as u64)
    }

    fn digest(&self, leaf: usize) -> EntryDigest {
        self.statements[leaf].digest()
    }

    /// The checkpoint with the cosignatures of these witnesses.
    fn checkpoint(&self, witnesses: &[u8]) -> String {
        let checkpoint = Checkpoint::new(ORIGIN.parse().unwrap(), self.size(), self.growth.root()).unwrap();
        let mut note = checkpoint.sign(&checkpoint_key()).unwrap();
        for number in witnesses {
            note.add(cosign(&witness(*number), note.text(), NOW - u64::from(*number)).unwrap()).unwrap();
        }
        note.to_string()
    }

    fn receipt(&self, leaf: LeafIndex) -> Vec<u8> {
        let key = receipt_key();
        let header = ReceiptHeader {
            alg: key.algorithm(),
            kid: key.public_key().thumbprint().to_vec(),
            iss: LOG_ISS.to_owned(),
            sub: ORIGIN.to_owned(),
            iat: NOW - 60,
            tree_size: self.size(),
        };
        let signed = header.sign_root(&key, &self.growth.root()).unwrap();
        signed.inclusion_receipt(leaf, &self.growth.path(leaf).unwrap())
    }

    fn entry(&self, leaf: usize) -> BundleEntry {
        let index = LeafIndex::new(leaf as u64);
        let statement = &self.statements[leaf];
        BundleEntry {
            admitted_by: (leaf > 0).then(|| AdmittedBy { policy: 0, rule: "application/json".to_owned() }),
            payload: statement.is_detached().then(|| DETACHED.to_vec()),
            proof: BundleProof { index: leaf as u64, path: self.growth.path(index).unwrap() },
            receipt: self.receipt(index),
            statement: statement.bytes().to_vec(),
        }
    }

    /// The bundle of the session, with two cosignatures.
    pub fn bundle(&self) -> EvidenceBundle {
        EvidenceBundle {
            version: VERSION,
            checkpoint: self.checkpoint(&[1, 2]),
            claims: BundleClaims {
                created_at: "2026-11-01T00:00:00Z".to_owned(),
                log_url: "https://log.example/".to_owned(),
                trust: trust().to_toml(),
                witness_policy: Some(witness_policy()),
            },
            entries: (2..5).map(|leaf| self.entry(leaf)).collect(),
            policies: vec![self.entry(0)],
            selections: vec![BundleSelection {
                by: SelectedBy::Session,
                entries: (2..5).map(|leaf| self.digest(leaf)).collect(),
                indexed_to: 5,
                name: "session-1".to_owned(),
            }],
        }
    }
}

fn statement(sub: &str, payload: &str) -> StatementBuilder {
    StatementBuilder::new(payload).content_type("application/json").kid(KID).iss(AGENT).sub(sub)
}

fn agent() -> SigningKey {
    testkit::ed25519([0x41; 32])
}

fn receipt_key() -> SigningKey {
    testkit::ed25519([0x42; 32])
}

fn checkpoint_key() -> LocalKey {
    LocalKey::new(ORIGIN.parse().unwrap(), ed25519_dalek::SigningKey::from_bytes(&[0x43; 32])).unwrap()
}

fn witness(number: u8) -> LocalKey {
    let secret = ed25519_dalek::SigningKey::from_bytes(&[0x50 + number; 32]);
    LocalKey::cosigner(format!("w{number}.example").parse().unwrap(), secret).unwrap()
}

/// Three witnesses, of which two must have cosigned.
pub fn witness_policy() -> String {
    let witnesses: String = (1..=3).map(|n| format!("witness w{n} {}\n", witness(n).key())).collect();
    format!("{witnesses}group two 2 w1 w2 w3\nquorum two\n")
}

/// A reader who trusts the log and the issuer of the session, and does not know the operator.
pub fn trust() -> TrustStore {
    let key = |key: &SigningKey| CoseKey { kid: None, ..CoseKey::bare(key.public_key().clone()) };
    let agent_key =
        CoseKey { kid: Some(KID.as_bytes().to_vec()), ..CoseKey::bare(agent().public_key().clone()) };
    let mut log = TrustedLog::new(LOG_ISS, ORIGIN, vec![key(&receipt_key())]);
    log.checkpoint_keys.push(checkpoint_key().key().to_string());
    TrustStore {
        logs: vec![log],
        issuers: vec![TrustedIssuer::new(AGENT, vec![agent_key])],
        ..TrustStore::default()
    }
}
