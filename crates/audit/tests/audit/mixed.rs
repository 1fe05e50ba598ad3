//! Statements of every content type, in an order in which a log admits them.

use merkle::EntryDigest;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use registration::Policy;
use registration::conversation::Form;
use scitt::header::{CertHash, HashEnvelope};
use scitt::{SignedStatement, SigningKey, StatementBuilder, X5Chain};
use serde_json::json;
use testkit::{ISSUER, KID, es256};

use crate::log::Draft;

/// Who is known by certificate.
const HOLDER: &str = "https://holder.example";
/// A content type whose payloads are checked and not kept.
pub const NOT_KEPT: &str = "application/x-not-kept";

/// A content type about which the policy asks a condition.
const ASKED: &str = "application/x-asked";

/// Makes statements, each one new.
pub struct Mixer {
    n: u64,
    /// The last receipt of a chain, and its number in it.
    chain_end: Option<(EntryDigest, u64)>,
    /// Whether this batch has a receipt of that chain: the next one needs this one in the log.
    linked: bool,
    /// Decisions that wait for their outcome.
    open: Vec<EntryDigest>,
    chain: X5Chain,
    holder: SigningKey,
    root: String,
}

impl Default for Mixer {
    fn default() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.not_before = date_time_ymd(2026, 1, 1);
        params.not_after = date_time_ymd(2030, 1, 1);
        params.subject_alt_names = vec![SanType::URI(HOLDER.try_into().unwrap())];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let certificate = params.signed_by(&key, &root).unwrap();
        let chain = X5Chain::new(vec![certificate.der().to_vec().into()]).unwrap();
        let holder = SigningKey::from_pkcs8_pem(&key.serialize_pem()).unwrap();
        Self { n: 0, chain_end: None, linked: false, open: Vec::new(), chain, holder, root: root.pem() }
    }
}

impl Mixer {
    /// The policy that admits all of them.
    pub fn toml(&self) -> String {
        let more = format!(
            "\n[[type]]\ncontent_type = \"{NOT_KEPT}\"\ndetached = true\nkeep_payload = false\n\n\
             [[type]]\ncontent_type = \"{ASKED}\"\n[[type.rule]]\nname = \"small\"\n\
             when = \"input.size < 1000\"\nthen = \"admit\"\n\n\
             [[anchor]]\nname = \"ca\"\nroots = ['''{}''']\n",
            self.root
        );
        testkit::policy_toml() + &more
    }

    /// The same, resolved.
    pub fn policy(&self) -> Policy {
        Policy::from_toml(&self.toml()).unwrap()
    }

    /// So many statements for one batch: what answers something answers an earlier batch.
    pub fn batch(&mut self, count: usize) -> Vec<Draft> {
        let answered = std::mem::take(&mut self.open);
        self.linked = false;
        let mut answered = answered.into_iter();
        (0..count).map(|_| self.next(&mut answered)).collect()
    }

    fn next(&mut self, answered: &mut impl Iterator<Item = EntryDigest>) -> Draft {
        self.n += 1;
        let n = self.n;
        match n % KINDS {
            0 => testkit::vrf(n).into(),
            1 => testkit::opaque(&format!("note {n}"), &json!({ "n": n })).into(),
            2 => testkit::aer(n).into(),
            3 => testkit::verdict(&numbered(testkit::verdict_json(), n)).into(),
            4 => self.decision().into(),
            5 => match answered.next() {
                Some(decision) => testkit::audit_record(&testkit::outcome_json("s", n, &decision)).into(),
                None => testkit::opaque(&format!("no outcome {n}"), &json!(n)).into(),
            },
            6 => self.detached("application/json"),
            7 => self.detached(NOT_KEPT),
            8 => self.certified().into(),
            9 => enveloped(n).into(),
            10 => testkit::conversation(n, Form::Json).into(),
            11 => testkit::conversation(n, Form::Cbor).into(),
            12 if !std::mem::replace(&mut self.linked, true) => self.link().into(),
            12 => testkit::vrf(n).into(),
            13 => self.attached(ASKED).into(),
            _ => testkit::aer_statement(testkit::denied_aer_json(n, "capability_not_in_scope"))
                .sign(&testkit::gateway())
                .unwrap()
                .into(),
        }
    }

    /// The next receipt of one chain.
    fn link(&mut self) -> SignedStatement {
        let receipt = testkit::receipt(self.n);
        let (receipt, position) = match self.chain_end {
            Some((previous, position)) => (receipt.after(previous, position + 1), position + 1),
            None => (receipt, 0),
        };
        let statement = receipt.sign(&testkit::verifier()).unwrap();
        self.chain_end = Some((statement.digest(), position));
        statement
    }

    fn decision(&mut self) -> SignedStatement {
        let statement = testkit::audit_record(&testkit::decision_json("s", self.n));
        self.open.push(statement.digest());
        statement
    }

    fn attached(&self, content_type: &'static str) -> SignedStatement {
        StatementBuilder::new(json!({ "attached": self.n }).to_string())
            .content_type(content_type)
            .kid(KID)
            .iss(ISSUER)
            .sub("attached")
            .sign(&es256())
            .unwrap()
    }

    fn detached(&self, content_type: &'static str) -> Draft {
        let payload = json!({ "detached": self.n }).to_string();
        let statement = StatementBuilder::new(payload.clone())
            .detached()
            .content_type(content_type)
            .kid(KID)
            .iss(ISSUER)
            .sub("detached")
            .sign(&es256())
            .unwrap();
        Draft { statement, payload: Some(payload.into()) }
    }

    fn certified(&self) -> SignedStatement {
        let hash = scitt::x509::sha256_thumbprint(self.chain.end_entity());
        let hash = CertHash { algorithm: scitt::x509::SHA_256.into(), hash: hash.to_vec().into() };
        let statement = StatementBuilder::new(json!({ "n": self.n }).to_string())
            .content_type("application/json")
            .iss(HOLDER)
            .sub("certified")
            .x5t(&hash)
            .unprotected_x5chain(&self.chain);
        SignedStatement::parse(statement.encode(&self.holder).unwrap()).unwrap()
    }
}

/// How many kinds of statements there are.
pub const KINDS: u64 = 15;

fn numbered(mut verdict: serde_json::Value, n: u64) -> serde_json::Value {
    verdict["verification"]["checks"] = json!(["scope_ok", format!("check_{n}")]);
    verdict
}

fn enveloped(n: u64) -> SignedStatement {
    let envelope = HashEnvelope {
        algorithm: -16,
        preimage_content_type: Some("application/json".into()),
        location: None,
    };
    StatementBuilder::new(EntryDigest::of(&n.to_be_bytes()).as_bytes().to_vec())
        .hash_envelope(&envelope)
        .kid(KID)
        .iss(ISSUER)
        .sub("enveloped")
        .sign(&es256())
        .unwrap()
}
