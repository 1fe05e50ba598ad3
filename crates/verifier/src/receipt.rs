//! Verifies that a receipt proves the registration of a statement by a trusted log.
//!
//! With a detached root (the normal case), the log's signature verifies only if statement, path and signature all
//! belong together, and a failure does not show which of them was changed. It is reported as
//! [`Code::ReceiptRootMismatch`]: the receipt is not for this statement. Only an attached root shows which part is
//! wrong.

use data_encoding::BASE64URL_NOPAD;
use merkle::{EntryDigest, LeafHash, RootHash, hash_leaf};
use scitt::{
    Header, PublicKey, Receipt, ReceiptError, ReceiptRefused, SignatureError, SignedStatement, Structure,
};

use crate::time::rfc3339;
use crate::trust::{Candidates, NoCandidate, refuse_ended};
use crate::verdict::{Check, CheckName, CheckState, Code, LeafPosition, ReceiptFacts};
use crate::{CLOCK_SKEW, HeaderProfile, LeafRule, MAX_RECEIPTS, TrustStore, TrustedLog, to_signed};

/// Checks of one receipt, and its contents.
pub(crate) struct ReceiptReport {
    pub(crate) checks: Vec<Check>,
    pub(crate) facts: ReceiptFacts,
}

impl ReceiptReport {
    fn of(facts: ReceiptFacts, checks: Vec<Check>) -> Self {
        Self { checks, facts }
    }

    fn has(&self, state: CheckState) -> bool {
        self.checks.iter().any(|check| check.state == state)
    }
}

/// Subject of a receipt: a statement, or only its entry ID.
#[derive(Clone, Copy)]
pub(crate) struct ReceiptSubject<'a> {
    pub(crate) entry: EntryDigest,
    pub(crate) statement: Option<&'a SignedStatement>,
}

impl ReceiptSubject<'_> {
    /// Returns the leaf hash under this rule. `None` if the rule needs the statement and only the entry ID is known.
    pub(crate) fn leaf(&self, rule: LeafRule) -> Option<LeafHash> {
        match rule {
            LeafRule::Sha256OfStatement => Some(self.entry.leaf_hash()),
            LeafRule::Statement => self.statement.map(|statement| hash_leaf(statement.bytes())),
        }
    }
}

impl<'a> From<&'a SignedStatement> for ReceiptSubject<'a> {
    fn from(statement: &'a SignedStatement) -> Self {
        Self { entry: statement.digest(), statement: Some(statement) }
    }
}

pub(crate) fn check_all(
    subject: ReceiptSubject<'_>,
    receipts: &[&[u8]],
    trust: &TrustStore,
    now: u64,
) -> Vec<ReceiptReport> {
    let mut reports: Vec<ReceiptReport> =
        receipts.iter().take(MAX_RECEIPTS).map(|receipt| check(subject, receipt, trust, now)).collect();
    if receipts.len() > MAX_RECEIPTS {
        let detail = format!("{} receipts, at most {MAX_RECEIPTS} are read", receipts.len());
        let check = Check::failed(CheckName::Receipt, Code::MalformedReceipt, detail);
        reports.push(ReceiptReport::of(ReceiptFacts::default(), vec![check]));
    }
    reports
}

fn check(subject: ReceiptSubject<'_>, bytes: &[u8], trust: &TrustStore, now: u64) -> ReceiptReport {
    let receipt = match Receipt::parse(bytes.to_vec()) {
        Ok(receipt) => receipt,
        Err(why) => return unreadable(&why),
    };
    let facts = facts_of(&receipt);
    let iss = receipt.header().iss();
    let logs = logs_for(iss, trust);
    let attempt = |log| ReceiptAttempt { subject, receipt: &receipt, log, now: to_signed(now) }.run(&facts);
    best(logs.into_iter().map(attempt)).unwrap_or_else(|| {
        let detail = match iss {
            Some(iss) => format!("no trusted log issues receipts as {iss:?}"),
            None => "the receipt names no issuer, and no log with profile rfc9942 is trusted".to_owned(),
        };
        let checks = vec![Check::not_done(CheckName::Receipt, Code::UnknownLog, detail)];
        ReceiptReport::of(facts.clone(), with_rest_not_reached(checks))
    })
}

/// Returns the trusted logs that may have issued a receipt with this `iss`.
pub(crate) fn logs_for<'t>(iss: Option<&'t str>, trust: &'t TrustStore) -> Vec<&'t TrustedLog> {
    let (ours, anonymous): (Vec<_>, Vec<_>) = match iss {
        Some(iss) => {
            (trust.logs_of(iss).collect(), trust.logs.iter().filter(|log| log.iss.is_none()).collect())
        }
        None => (Vec::new(), trust.logs.iter().filter(|log| log.profile == HeaderProfile::Rfc9942).collect()),
    };
    if ours.is_empty() { anonymous } else { ours }
}

/// Returns the best report. Several logs may share an issuer, or the receipt may name none: if one log verifies, it is
/// the right one.
fn best(reports: impl Iterator<Item = ReceiptReport>) -> Option<ReceiptReport> {
    reports.min_by_key(|report| match report.facts.verified {
        true => 0,
        false if report.has(CheckState::Failed) => 1,
        false => 2,
    })
}

fn unreadable(why: &ReceiptError) -> ReceiptReport {
    let check = match why {
        ReceiptError::Malformed(why) => {
            Check::failed(CheckName::Receipt, Code::MalformedReceipt, why.to_string())
        }
        ReceiptError::UnsupportedStructure(_) => {
            Check::not_done(CheckName::Receipt, Code::UnsupportedStructure, why.to_string())
        }
    };
    ReceiptReport::of(ReceiptFacts::default(), with_rest_not_reached(vec![check]))
}

fn with_rest_not_reached(mut checks: Vec<Check>) -> Vec<Check> {
    let names = [CheckName::Inclusion, CheckName::ReceiptSignature, CheckName::ReceiptDates];
    Check::add_not_reached(&mut checks, &names);
    checks
}

/// Verification of one receipt against one log that may have issued it.
struct ReceiptAttempt<'a> {
    subject: ReceiptSubject<'a>,
    receipt: &'a Receipt,
    log: &'a TrustedLog,
    now: i64,
}

impl ReceiptAttempt<'_> {
    fn run(&self, facts: &ReceiptFacts) -> ReceiptReport {
        let mut facts = facts.clone();
        facts.log = Some(self.log.name().to_owned());
        let mut checks = Vec::new();
        match check_form(self.receipt, self.log) {
            Ok(check) => checks.push(check),
            Err(check) => return ReceiptReport::of(facts, with_rest_not_reached(vec![check])),
        }
        match self.check_proof() {
            Ok(proven) => {
                checks.extend(self.proven(&proven));
                facts.position = proven.position;
                facts.root = Some(proven.root.to_string());
            }
            Err(refused) => checks.extend(refused),
        }
        checks.push(check_dates(self.receipt, self.now));
        facts.verified = checks.iter().all(|check| check.state == CheckState::Ok);
        ReceiptReport::of(facts, with_rest_not_reached(checks))
    }

    /// Returns a root that a proof leads to from this statement and that a key of the log signed.
    fn check_proof(&self) -> Result<Proven, Vec<Check>> {
        let roots = self.implied_roots()?;
        let attached = self.receipt.attached_root();
        let mut refused = None;
        for (root, position) in
            roots.iter().filter(|(root, _)| attached.is_none_or(|attached| attached == root))
        {
            match self.find_key(root) {
                Ok(key) => {
                    let proven = Proven::new(root, *position, key, self.receipt);
                    self.refuse_ended(&proven, key)?;
                    return Ok(proven);
                }
                Err(why) => refused = Some(why),
            }
        }
        match refused {
            Some(why) => Err(self.explain(why, &roots[0].0)),
            None => Err(self.root_mismatch(&roots[0].0, attached)),
        }
    }

    /// Returns the roots that the proofs lead to, at least one, each with its position if the structure has positions.
    fn implied_roots(&self) -> Result<Vec<(RootHash, Option<LeafPosition>)>, Vec<Check>> {
        match self.receipt.structure() {
            Structure::Rfc9162 => self.implied_by_paths(),
            Structure::CcfLedger => self.implied_by_ledger().map(|root| vec![(root, None)]),
        }
    }

    /// Returns one root per proof. A path that fits no tree is wrong for any statement.
    fn implied_by_paths(&self) -> Result<Vec<(RootHash, Option<LeafPosition>)>, Vec<Check>> {
        if self.receipt.inclusion_proofs().is_empty() {
            return Err(unproven(ReceiptRefused::NoInclusionProof));
        }
        let leaf = self.subject.leaf(self.log.leaf_rule).ok_or_else(needs_statement)?;
        let signed = self.receipt.signed_tree_size().is_some();
        let roots = self.receipt.implied_roots(&leaf).map_err(unproven)?;
        let with_position = roots.into_iter().map(|(proof, root)| {
            let position = LeafPosition { leaf_index: proof.leaf_index, tree_size: proof.tree_size, signed };
            (root, Some(position))
        });
        Ok(with_position.collect())
    }

    /// Returns the root of a CCF ledger's proofs. A leaf names its statement, so that a receipt for another one is
    /// recognized.
    fn implied_by_ledger(&self) -> Result<RootHash, Vec<Check>> {
        self.receipt.implied_ledger_root(&self.subject.entry).map_err(|why| match why {
            ReceiptRefused::OtherStatement(_) => {
                vec![Check::failed(CheckName::Inclusion, Code::ReceiptRootMismatch, why.to_string())]
            }
            _ => unproven(why),
        })
    }

    fn find_key(&self, root: &RootHash) -> Result<&PublicKey, NoCandidate<SignatureError>> {
        let kid = self.receipt.header().kid().map(|kid| kid.as_ref());
        Candidates::of(&self.log.keys, kid).find(|key| self.receipt.verify_root(root, key))
    }

    /// Refuses a key after its end. Ledgers give no tree size, so that their keys have no end to compare.
    fn refuse_ended(&self, proven: &Proven, key: &PublicKey) -> Result<(), Vec<Check>> {
        let Some(position) = proven.position else { return Ok(()) };
        let end = self.log.end_of(key);
        refuse_ended(CheckName::ReceiptSignature, &proven.kid, &end, position.tree_size)
            .map_err(|check| vec![check])
    }

    fn explain(&self, why: NoCandidate<SignatureError>, root: &RootHash) -> Vec<Check> {
        let name = CheckName::ReceiptSignature;
        match why {
            NoCandidate::Unknown => {
                let kid = kid_text(self.receipt.header()).unwrap_or_default();
                let detail = format!("{} is trusted, but not with a key named {kid}", self.log.name());
                vec![Check::not_done(name, Code::UnknownLogKey, detail)]
            }
            NoCandidate::Refused(SignatureError::Invalid) if self.receipt.attached_root().is_none() => {
                self.root_mismatch(root, None)
            }
            NoCandidate::Refused(why) => {
                vec![Check::failed(name, Code::ReceiptSignatureInvalid, why.to_string())]
            }
        }
    }

    fn root_mismatch(&self, root: &RootHash, attached: Option<&RootHash>) -> Vec<Check> {
        let leaf = match self.receipt.structure() {
            Structure::Rfc9162 => {
                let leaf = self.subject.leaf(self.log.leaf_rule);
                leaf.map_or_else(String::new, |leaf| format!("hash {leaf}"))
            }
            Structure::CcfLedger => format!("of statement {}", self.subject.entry),
        };
        let signed = match attached {
            Some(attached) => format!("root {attached} in the receipt"),
            None => "the one that the receipt signs".to_owned(),
        };
        let detail = format!("leaf {leaf} leads to root {root}, which is not {signed}");
        vec![Check::failed(CheckName::Inclusion, Code::ReceiptRootMismatch, detail)]
    }

    fn proven(&self, proven: &Proven) -> [Check; 2] {
        let by = format!("{}, kid {} ({})", self.log.name(), proven.kid, proven.algorithm);
        [
            Check::ok(CheckName::Inclusion, proven.describe_position(self.receipt)),
            Check::ok(CheckName::ReceiptSignature, by),
        ]
    }
}

/// Checks that the receipt has the headers of the log's profile, and that its `sub` is the log's origin.
pub(crate) fn check_form(receipt: &Receipt, log: &TrustedLog) -> Result<Check, Check> {
    let header = receipt.header();
    if log.profile == HeaderProfile::Rfc9943 {
        let identity = header
            .require_scitt()
            .map_err(|why| Check::failed(CheckName::Receipt, Code::ReceiptIncomplete, why.to_string()))?;
        if let Some(origin) = log.origin.as_deref().filter(|origin| *origin != identity.sub) {
            let detail = format!("the receipt is for log {:?}, not {origin:?}", identity.sub);
            return Err(Check::failed(CheckName::Receipt, Code::ReceiptSubjectMismatch, detail));
        }
    }
    Ok(Check::ok(CheckName::Receipt, log.name()))
}

/// Checks the `exp`, `nbf` and `iat` claims of the receipt.
pub(crate) fn check_dates(receipt: &Receipt, now: i64) -> Check {
    let name = CheckName::ReceiptDates;
    let Some(claims) = receipt.header().claims() else { return Check::ok(name, "undated") };
    if let Some(exp) = claims.exp().filter(|exp| *exp <= now) {
        return Check::failed(name, Code::ReceiptExpired, format!("ended at {}", rfc3339(exp)));
    }
    let latest = now.saturating_add(CLOCK_SKEW);
    let begins = claims.nbf().max(claims.iat());
    match begins.filter(|begins| *begins > latest) {
        Some(begins) => {
            let detail = format!("dated {}, and now is {}", rfc3339(begins), rfc3339(now));
            Check::failed(name, Code::ReceiptNotYetValid, detail)
        }
        None => Check::ok(
            name,
            claims.iat().map_or_else(|| "undated".into(), |iat| format!("issued at {}", rfc3339(iat))),
        ),
    }
}

/// A verified proof.
struct Proven {
    root: RootHash,
    position: Option<LeafPosition>,
    kid: String,
    algorithm: &'static str,
}

impl Proven {
    fn new(root: &RootHash, position: Option<LeafPosition>, key: &PublicKey, receipt: &Receipt) -> Self {
        let header = receipt.header();
        Self {
            root: *root,
            position,
            kid: kid_text(header).unwrap_or_else(|| BASE64URL_NOPAD.encode(&key.thumbprint())),
            algorithm: header.algorithm().map_or("?", |algorithm| algorithm.name()),
        }
    }

    /// Describes the position of the statement, as far as the structure gives it.
    fn describe_position(&self, receipt: &Receipt) -> String {
        match (&self.position, receipt.ledger_transaction()) {
            (Some(position), _) => position.to_string(),
            (None, Some(transaction)) => {
                format!("in the ledger as of transaction {}", short(&transaction))
            }
            (None, None) => "in the ledger".to_owned(),
        }
    }
}

fn unproven(why: impl ToString) -> Vec<Check> {
    vec![Check::failed(CheckName::Inclusion, Code::ReceiptProofInvalid, why.to_string())]
}

/// Shortens a name from an untrusted message.
fn short(name: &str) -> &str {
    const SHOWN: usize = 64;
    &name[..name.floor_char_boundary(SHOWN)]
}

fn needs_statement() -> Vec<Check> {
    let detail = "this log's leaves are of whole statements, and only the hash of this one is at hand";
    vec![Check::not_done(CheckName::Inclusion, Code::NotReached, detail)]
}

fn facts_of(receipt: &Receipt) -> ReceiptFacts {
    let header = receipt.header();
    ReceiptFacts {
        verified: false,
        log: header.iss().map(str::to_owned),
        kid: kid_text(header),
        algorithm: header.algorithm().map(|algorithm| algorithm.name()),
        structure: Some(receipt.structure().name()),
        position: None,
        transaction: receipt.ledger_transaction(),
        root: None,
        iat: header.iat(),
    }
}

pub(crate) fn kid_text(header: &Header) -> Option<String> {
    header.kid().map(|kid| BASE64URL_NOPAD.encode(kid))
}
