//! Interpretation of a log's bytes in an archive, and the check that an archive is of this service's own log.

use archive::{ArchiveSummary, EntryEffects, StatementInspector};
use data_encoding::BASE64URL_NOPAD;
use registration::erasure::Erasure;
use registration::{ERASURE_CONTENT_TYPE, POLICY_CONTENT_TYPE};
use scitt::SignedStatement;
use store::fsck::FsckFacts as _;
use store::{CommittedHead, Entry, HeadSignature, LogKey, SignatureKind, StoreError};
use tlog::note::NoteSigner;

use crate::config::Config;
use crate::fsck::facts::LogFacts;
use crate::keys::key_files::{KeyFileError, PrivateKeys, receipt_kid};
use crate::log::content_type::is_type;

/// Interpreter for archives: finds policies and erasures among the entries, and checks signatures as `fsck` does.
pub struct ArchiveFacts(LogFacts);

impl ArchiveFacts {
    /// Creates the interpreter for the log with this origin.
    ///
    /// # Errors
    /// If `origin` is not a valid origin.
    pub fn of(origin: &str) -> Result<Self, StoreError> {
        LogFacts::of(origin).map(Self)
    }
}

impl StatementInspector for ArchiveFacts {
    fn effects_of(&self, entry: &Entry) -> Result<EntryEffects, String> {
        let Some(bytes) = entry.statement.clone() else { return Ok(EntryEffects::default()) };
        let statement = SignedStatement::parse(bytes).map_err(|why| why.to_string())?;
        let named = statement.header().content_type().and_then(|name| name.as_text()).unwrap_or_default();
        if is_type(named, ERASURE_CONTENT_TYPE) {
            let erasure = Erasure::from_payload(statement.payload().unwrap_or_default());
            let erasure = erasure.map_err(|violation| violation.to_string())?;
            return Ok(EntryEffects { is_policy: false, erases: erasure.entries });
        }
        Ok(EntryEffects { is_policy: named == POLICY_CONTENT_TYPE, erases: Vec::new() })
    }

    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String> {
        self.0.check_signature(head, signature, keys)
    }
}

/// Reason why an archive is not the configured log's.
#[derive(Debug, thiserror::Error)]
pub enum ForeignArchive {
    /// The archive is of another log.
    #[error("it holds the log {0}")]
    OtherLog(String),
    /// The newest head is signed by other keys.
    #[error("its newest head is not signed with the configured {0} key, {1}")]
    OtherKey(&'static str, String),
    /// The configured keys cannot be read.
    #[error(transparent)]
    Key(#[from] KeyFileError),
}

/// Checks that the newest head of a verified archive is signed with the configured keys.
///
/// # Errors
/// [`ForeignArchive`] if the origin or a key differs, or the keys cannot be read.
pub fn is_ours(config: &Config, summary: &ArchiveSummary) -> Result<(), ForeignArchive> {
    if summary.origin != config.origin {
        return Err(ForeignArchive::OtherLog(summary.origin.clone()));
    }
    let files = PrivateKeys::of(config)?;
    let signed = |kind: SignatureKind, ours: &dyn Fn(&[u8]) -> bool| {
        let mut of_kind = summary.signatures.iter().filter(|signature| signature.kind == kind);
        of_kind.any(|signature: &HeadSignature| ours(&signature.kid))
    };
    let receipt = receipt_kid(&files.read_receipt(&files.receipt)?);
    if !signed(SignatureKind::Receipt, &|kid| files.find_receipt(kid).is_some()) {
        return Err(ForeignArchive::OtherKey("receipt", BASE64URL_NOPAD.encode(&receipt)));
    }
    let checkpoint = files.read_checkpoint(&files.checkpoint)?;
    if !signed(SignatureKind::Checkpoint, &|kid| files.find_checkpoint(kid).is_some()) {
        return Err(ForeignArchive::OtherKey("checkpoint", checkpoint.key().to_string()));
    }
    Ok(())
}
