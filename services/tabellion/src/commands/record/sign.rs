//! `tabellion record sign`: signs a record, and repeats its session, vendor and times in the unprotected
//! trace-metadata.

use std::path::{Path, PathBuf};

use clap::Args;
use registration::Violation;
use registration::conversation::{
    AGENT_CONVERSATION, ConversationRecord, ConversationRule, check_trace_metadata,
};
use registration::limits::CONVERSATION_ITEMS;
use scitt::cbor::Value as Cbor;
use scitt::limits::STATEMENT_BYTES;
use scitt::{Algorithm, SignedStatement, Signer, SigningKey, StatementBuilder};
use serde_json::Value;

use super::document;
use crate::commands::signed_output::SignedOutput;
use crate::commands::statement;
use crate::console::{Exit, Failure, files};
use crate::context::Context;
use crate::keyfile;

/// The unprotected label of trace-metadata (section 3.11.2 of the draft), until one is registered.
const TRACE_METADATA: i64 = 100;
/// The name of the record's own format in trace-metadata.
const TRACE_FORMAT: &str = "ietf-vac-v3.0";

#[derive(Debug, Args)]
pub struct Sign {
    /// The record (JSON)
    file: PathBuf,
    /// The recorder's key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    /// The recorder, who is never the model's vendor [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// The output file [default: FILE.cose]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Sign {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let recorder = Recorder::read(&self.key, self.iss)?;
        let (statement, message) = recorder.sign(&files::read(&self.file)?, &self.file)?;
        let output = SignedOutput::of(&self.file, self.output);
        output.write(context, &message, || statement::print_entry(context, &statement))
    }
}

/// The key and the name of who records.
pub struct Recorder {
    key: SigningKey,
    iss: String,
}

impl Recorder {
    /// Reads the key; the name defaults to its did:key.
    pub fn read(key: &Path, iss: Option<String>) -> Result<Self, Failure> {
        let key = keyfile::read(key)?;
        let iss = iss.unwrap_or_else(|| key.public_key().did_key());
        Ok(Recorder { key, iss })
    }

    /// A recorder with a key of its own, for checks.
    fn unnamed() -> Result<Self, Failure> {
        let key = SigningKey::generate(Algorithm::EdDsa).map_err(keyfile::cannot_sign)?;
        let iss = key.public_key().did_key();
        Ok(Recorder { key, iss })
    }

    /// Signs a record that keeps the rules of the profile. Returns the statement, and its encoding with the unprotected
    /// header. A record without a start has no trace-metadata, which would need one.
    pub fn sign(&self, record: &[u8], file: &Path) -> Result<(SignedStatement, Vec<u8>), Failure> {
        let document = document::parse(record, file)?;
        let session = &document["session"];
        let builder = StatementBuilder::new(record)
            .content_type(AGENT_CONVERSATION)
            .kid(self.key.public_key().thumbprint())
            .iss(&self.iss)
            .sub(session["session-id"].as_str().unwrap_or_default());
        let builder = match trace_metadata(session, record) {
            Some(metadata) => builder.unprotected(TRACE_METADATA, metadata),
            None => builder,
        };
        let message = builder.encode(&self.key).map_err(keyfile::cannot_sign)?;
        if message.len() > STATEMENT_BYTES {
            let most = format!("{STATEMENT_BYTES} bytes");
            return Err(too_large(file, &format!("{} bytes", message.len()), most));
        }
        let statement = statement::parse(message.clone(), &file.display().to_string())?;
        check(&statement, record).map_err(|violation| {
            if violation.rule.as_str() == ConversationRule::Items.name() {
                return too_large(file, "too many values", format!("{CONVERSATION_ITEMS} values"));
            }
            broken(&violation).ending_with(Exit::Failure)
        })?;
        Ok((statement, message))
    }

    /// Returns the content of a file, if it is this message with another valid signature of the recorder: each ECDSA
    /// signature of a message differs.
    pub fn signed_before(&self, statement: &SignedStatement, message: &[u8], file: &Path) -> Option<Vec<u8>> {
        let earlier = files::read(file).ok()?;
        // The signature is the last item of a COSE_Sign1.
        let signed = message.len() - statement.signature().len();
        let is_alike = earlier.len() == message.len() && earlier[..signed] == message[..signed];
        let other = is_alike.then(|| SignedStatement::parse(earlier.clone()))?.ok()?;
        other.verify_with(self.key.public_key(), None).is_ok().then_some(earlier)
    }
}

fn too_large(file: &Path, size: &str, most: String) -> Failure {
    let what = format!("{} cannot be a statement: it would have {size}", file.display());
    Failure::new(Exit::Failure, "record-too-large", what)
        .fact("at most", most)
        .hint("leave something out, with --without tool-result or --redact-field /session/entries/**/native")
}

/// Checks that a record can be signed. The rules concern signed records, so a key for this purpose signs it.
pub fn check_unsigned(record: &[u8], file: &Path) -> Result<(), Failure> {
    Recorder::unnamed()?.sign(record, file).map(drop)
}

/// Checks the rules of the profile that need no log, and that the trace-metadata agrees.
fn check(statement: &SignedStatement, record: &[u8]) -> Result<(), Violation> {
    ConversationRecord::read(statement.header(), record)?.soundness()?;
    check_trace_metadata(statement, None).map(|_| ())
}

/// The failure for a record that breaks a rule of the profile.
pub fn broken(violation: &Violation) -> Failure {
    Failure::new(
        Exit::VerificationFailed,
        violation.rule.as_str(),
        "this is not a conforming conversation record",
    )
    .fact("rule", violation.rule.as_str())
    .fact("where", violation.place.to_string())
    .fact("found", violation.detail.clone())
}

fn trace_metadata(session: &Value, record: &[u8]) -> Option<Cbor<'static>> {
    let text = |value: &Value| value.as_str().map(|text| Cbor::from(text.to_owned()));
    let time = |name: &str| match &session[name] {
        Value::String(time) => Some(Cbor::from(time.clone())),
        Value::Number(time) => time.as_i64().map(Cbor::from),
        _ => None,
    };
    let members = [
        ("session-id", text(&session["session-id"])),
        ("agent-vendor", text(&session["agent-meta"]["model-provider"])),
        ("trace-format", Some(Cbor::from(TRACE_FORMAT.to_owned()))),
        ("timestamp-start", Some(time("session-start")?)),
        ("timestamp-end", time("session-end")),
        ("content-hash", Some(Cbor::from(merkle::EntryDigest::of(record).to_string()))),
    ];
    let present = members.into_iter().filter_map(|(name, value)| Some((Cbor::from(name.to_owned()), value?)));
    Some(Cbor::map(present))
}
