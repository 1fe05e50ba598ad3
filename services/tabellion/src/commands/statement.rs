//! `tabellion statement`: creates and shows Signed Statements. Nothing is verified here, as the output of `inspect`
//! states.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use scitt::{HashEnvelope, Malformed, SignedStatement, Signer, StatementBuilder};
use serde_json::Value as Json;

use super::issuer::no_key;
use super::signed_output::SignedOutput;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, members};
use crate::context::Context;
use crate::{keyfile, show};

/// The COSE algorithm identifier of SHA-256.
const SHA_256: i64 = -16;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion statement sign --key issuer.pem report.json")]
pub enum Statement {
    /// Sign a file
    #[command(before_help = "example:  tabellion statement sign --key issuer.pem report.json")]
    Sign(Sign),
    /// Show the contents without verifying them
    #[command(before_help = "example:  tabellion statement inspect report.json.cose")]
    Inspect {
        /// A statement, transparent or not
        file: PathBuf,
    },
    /// Print the statement's entry ID, which is the same in every log
    #[command(before_help = "example:  tabellion statement hash report.json.cose")]
    Hash {
        /// A statement, transparent or not
        file: PathBuf,
    },
    /// Remove the receipts and the rest of the unprotected header
    #[command(
        before_help = "example:  tabellion statement strip report.json.transparent.cose -o report.cose"
    )]
    Strip {
        /// A Transparent Statement
        file: PathBuf,
        /// The output file
        #[arg(short, long, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
}

/// How a file becomes a statement.
#[derive(Debug, Args)]
pub struct Sign {
    /// The payload
    file: PathBuf,
    /// The issuer's key
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// The issuer [default: the key's did:key]
    #[arg(long, value_name = "URI")]
    iss: Option<String>,
    /// The subject [default: the file's name]
    #[arg(long, value_name = "TEXT")]
    sub: Option<String>,
    /// The media type [default: by file extension]
    #[arg(long, value_name = "TYPE")]
    content_type: Option<String>,
    /// Detach the payload
    #[arg(long, conflicts_with = "hash")]
    detached: bool,
    /// Sign the payload's SHA-256 (RFC 9995)
    #[arg(long)]
    hash: bool,
    /// The output file [default: FILE.cose]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Statement {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Sign(sign) => sign.run(context),
            Self::Inspect { file } => inspect(context, &read(&file)?),
            Self::Hash { file } => print_entry(context, &read(&file)?),
            Self::Strip { file, output } => {
                files::write(&output, read(&file)?.bytes(), Access::Ordinary, Existing::Keep)
            }
        }
    }
}

impl Sign {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let key = keyfile::read(self.key.as_deref().ok_or_else(no_key)?)?;
        let iss = self.iss.clone().unwrap_or_else(|| key.public_key().did_key());
        let name = name_of(&self.file);
        let content_type = self.content_type.clone().unwrap_or_else(|| media_type_of(&self.file).to_owned());
        let terms =
            Terms { iss: &iss, sub: self.sub.as_deref().unwrap_or(&name), content_type: &content_type };
        let form = Form::chosen(self.detached, self.hash);
        let statement = sign(&key, files::read(&self.file)?, &terms, form)?;
        let output = SignedOutput::of(&self.file, self.output);
        output.write(context, statement.bytes(), || print_entry(context, &statement))
    }
}

/// The claims of a statement about its payload.
#[derive(Clone, Copy, Debug)]
pub struct Terms<'a> {
    /// The issuer, claim `iss`.
    pub iss: &'a str,
    /// The subject, claim `sub`.
    pub sub: &'a str,
    /// The media type of the payload.
    pub content_type: &'a str,
}

/// The form of a statement's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The payload is part of the statement.
    Attached,
    /// The payload is separate.
    Detached,
    /// The payload is the preimage of a SHA-256 digest in the statement (RFC 9995).
    HashEnvelope,
}

impl Form {
    fn chosen(detached: bool, hash: bool) -> Self {
        match (detached, hash) {
            (true, _) => Self::Detached,
            (_, true) => Self::HashEnvelope,
            _ => Self::Attached,
        }
    }
}

/// Signs a payload, with the key's thumbprint as `kid`.
pub fn sign(
    key: &dyn Signer,
    payload: Vec<u8>,
    terms: &Terms<'_>,
    form: Form,
) -> Result<SignedStatement, Failure> {
    let builder = match form {
        Form::HashEnvelope => {
            let preimage_content_type = Some(terms.content_type.into());
            let envelope = HashEnvelope { algorithm: SHA_256, preimage_content_type, location: None };
            StatementBuilder::new(*merkle::EntryDigest::of(&payload).as_bytes()).hash_envelope(&envelope)
        }
        Form::Detached => StatementBuilder::new(payload).content_type(terms.content_type).detached(),
        Form::Attached => StatementBuilder::new(payload).content_type(terms.content_type),
    };
    let kid = key.public_key().thumbprint();
    builder.kid(kid).iss(terms.iss).sub(terms.sub).sign(key).map_err(keyfile::cannot_sign)
}

/// Reads a statement from a file, or from standard input for `-`.
pub fn read(file: &Path) -> Result<SignedStatement, Failure> {
    parse(files::read(file)?, &file.display().to_string())
}

/// Parses a statement; `source` is its name in the error message.
pub fn parse(bytes: impl Into<bytes::Bytes>, source: &str) -> Result<SignedStatement, Failure> {
    SignedStatement::parse(bytes).map_err(|error| malformed(source, &error))
}

/// The failure for bytes that are not a Signed Statement, `malformed`.
pub fn malformed(source: &str, error: &Malformed) -> Failure {
    Failure::new(Exit::Failure, "malformed", format!("{source} is not a Signed Statement"))
        .fact("at byte", error.offset.to_string())
        .fact("found", error.kind.to_string())
}

/// Returns the default subject of a file: its name, or `stdin`.
pub fn name_of(file: &Path) -> String {
    let name = file.file_name().filter(|_| !files::is_stream(file));
    name.map_or_else(|| "stdin".into(), |name| name.to_string_lossy().into_owned())
}

/// Returns the media type of a file by its extension.
pub fn media_type_of(file: &Path) -> &'static str {
    match file.extension().and_then(|ending| ending.to_str()) {
        Some("json") => "application/json",
        Some("jsonl" | "ndjson") => "application/x-ndjson",
        Some("cbor") => "application/cbor",
        Some("txt" | "log" | "md") => "text/plain",
        _ => "application/octet-stream",
    }
}

/// Prints the entry ID of a statement.
pub fn print_entry(context: &Context, statement: &SignedStatement) -> Result<(), Failure> {
    let entry = statement.digest().to_string();
    context.console.print(&members! { entry }, |out| writeln!(out, "{entry}"))
}

fn inspect(context: &Context, statement: &SignedStatement) -> Result<(), Failure> {
    let (entry, protected) = (statement.digest().to_string(), show::header(statement.header()));
    let (payload, receipts) = (payload(statement), statement.receipts().len());
    let signature_bytes = statement.signature().len();
    let json = members! { entry, protected, payload, signature_bytes, receipts, verified: false };
    context.console.print(&json, |out| {
        write_parts(out, statement)?;
        writeln!(out, "nothing was verified: `tabellion verify` does that")
    })
}

/// Writes the decoded parts of a statement as lines.
pub fn write_parts(out: &mut dyn Write, statement: &SignedStatement) -> io::Result<()> {
    writeln!(out, "entry      {}\nprotected", statement.digest())?;
    show::members(out, &show::header(statement.header()))?;
    writeln!(out, "payload")?;
    show::members(out, &payload(statement))?;
    let (signature_bytes, receipts) = (statement.signature().len(), statement.receipts().len());
    writeln!(out, "signature  {signature_bytes} bytes\nreceipts   {receipts}")
}

fn payload(statement: &SignedStatement) -> Json {
    let Some(bytes) = statement.payload() else { return serde_json::json!({ "detached": true }) };
    let sha256 = merkle::EntryDigest::of(bytes).to_string();
    match std::str::from_utf8(bytes) {
        Ok(text) => serde_json::json!({ "bytes": bytes.len(), "sha-256": sha256, "text": text }),
        Err(_) => serde_json::json!({ "bytes": bytes.len(), "sha-256": sha256 }),
    }
}
