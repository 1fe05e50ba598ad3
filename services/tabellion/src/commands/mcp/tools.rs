//! The tools and the commands that they call.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use clap::{Args, Parser};
use data_encoding::{BASE64, BASE64URL_NOPAD};
use merkle::EntryDigest;
use scitt::SignedStatement;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use tempfile::TempDir;
use verifier::VerificationOutcome;

use super::arguments::{Argument, ArgumentTarget, ToolArguments};
use super::inputs::{file_below, store_content};
use crate::commands::entry::Search;
use crate::commands::register::Register;
use crate::commands::session;
use crate::commands::verify::{Verify, now};
use crate::console::files::{path_flag, path_text};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::service::ServiceArgs;
use crate::trust_file::{self, TrustFile};

/// A tool.
pub struct ToolSpec {
    /// The name, that of the command.
    pub name: &'static str,
    /// What it does, for models and people.
    pub about: &'static str,
    /// True if a call changes nothing.
    pub reads_only: bool,
    /// The arguments.
    pub arguments: &'static [Argument],
    call: fn(&LogTools, ToolArguments) -> Result<ToolResult, Failure>,
}

/// The result of a call.
pub struct ToolResult {
    /// What the command prints with `--json`.
    pub json: Json,
    /// True if the command ends with an exit code other than 0.
    pub is_error: bool,
}

const fn argument(name: &'static str, target: ArgumentTarget, about: &'static str) -> Argument {
    Argument { name, target, about }
}

/// The tools.
pub const TOOLS: &[ToolSpec] = &[
    ToolSpec {
        name: "register",
        about: "Sign a text or a file, register it in the transparency log, wait for its receipt and verify it. \
                Registering the same content again returns the same entry. Registered content is permanent and may be \
                public.",
        reads_only: false,
        arguments: &[
            argument("content", ArgumentTarget::Input, "The text to sign and register"),
            argument("file", ArgumentTarget::Input, "Instead of content: a file below the server's folder"),
            argument(
                "subject",
                ArgumentTarget::Flag("sub"),
                "The subject of the text [default: the file's name]",
            ),
            argument(
                "content_type",
                ArgumentTarget::Flag("content-type"),
                "The media type [default: application/json if the text is JSON, otherwise text/plain]",
            ),
        ],
        call: LogTools::register,
    },
    ToolSpec {
        name: "verify",
        about: "Verify that a statement is authentic and that a trusted log registered it, or everything in an evidence \
                bundle. Trusts only the server's trust file. Returns each check; the result is an error unless all passed.",
        reads_only: true,
        arguments: &[
            argument("statement", ArgumentTarget::Input, "The Transparent Statement or bundle, as base64"),
            argument("file", ArgumentTarget::Input, "Instead of statement: a file below the server's folder"),
            argument(
                "entry",
                ArgumentTarget::Input,
                "Instead of statement: an entry ID of the log, from which statement and receipt are fetched",
            ),
            argument(
                "payload",
                ArgumentTarget::Input,
                "The payload, if the statement does not hold it, as text",
            ),
            argument(
                "payload_file",
                ArgumentTarget::Input,
                "Instead of payload: a file below the server's folder",
            ),
            argument(
                "max_age",
                ArgumentTarget::Flag("max-age"),
                "Require a verification of work not older, such as 30d; not with a bundle",
            ),
        ],
        call: LogTools::verify,
    },
    ToolSpec {
        name: "search",
        about: "Search the log's entries by issuer, subject, type, session, agent, tool, verdict and time. The answer is \
                the log's and not verified.",
        reads_only: true,
        arguments: &[
            argument("issuer", ArgumentTarget::Flag("issuer"), "The issuer (iss)"),
            argument("subject", ArgumentTarget::Flag("subject"), "The subject (sub)"),
            argument("content_type", ArgumentTarget::Flag("content-type"), "The content type"),
            argument("session", ArgumentTarget::Flag("session"), "A session identifier"),
            argument("verdict", ArgumentTarget::Flag("verdict"), "A verdict or decision"),
            argument("tool", ArgumentTarget::Flag("tool"), "The called tool"),
            argument("agent", ArgumentTarget::Criterion("agent"), "The agent"),
            argument("call_id", ArgumentTarget::Criterion("call_id"), "The identifier of a tool call"),
            argument("digest", ArgumentTarget::Criterion("digest"), "A digest in the payload"),
            argument(
                "subject_prefix",
                ArgumentTarget::Criterion("subject_prefix"),
                "The beginning of the subject",
            ),
            argument(
                "from_time",
                ArgumentTarget::Flag("from-time"),
                "Committed at this time or later (RFC 3339, or a day)",
            ),
            argument("to_time", ArgumentTarget::Flag("to-time"), "Committed before this time"),
            argument("newest", ArgumentTarget::Switch("newest"), "Newest entries first"),
            argument("after", ArgumentTarget::Number("after"), "Start after this leaf index"),
            argument(
                "before",
                ArgumentTarget::Number("before"),
                "Stop, or with newest start, before this leaf index",
            ),
            argument(
                "limit",
                ArgumentTarget::Number("limit"),
                "Maximum number of results, 1 to 1000 [default: 100]",
            ),
        ],
        call: LogTools::search,
    },
    ToolSpec {
        name: "session",
        about: "List records, receipts and verdicts of an agent's session in the order of the log. The answer is the \
                log's and not verified.",
        reads_only: true,
        arguments: &[
            argument("session", ArgumentTarget::RequiredInput, "The session identifier"),
            argument("after", ArgumentTarget::Number("after"), "Start after this leaf index"),
            argument(
                "limit",
                ArgumentTarget::Number("limit"),
                "Maximum number of results, 1 to 1000 [default: 100]",
            ),
        ],
        call: LogTools::session,
    },
];

/// Who signs, and what is trusted.
pub struct ToolIdentity {
    /// The key and the trust file of `serve --dev` in the working directory.
    pub dev: bool,
    /// The key that signs what is registered.
    pub key: Option<PathBuf>,
    /// The issuer; the key's did:key if `None`.
    pub iss: Option<String>,
    /// The trust file.
    pub trust: Option<PathBuf>,
}

/// What the tools work with.
pub struct LogTools {
    context: Context,
    identity: ToolIdentity,
    service: ServiceArgs,
    folder: Option<PathBuf>,
    state: PathBuf,
    /// Held during a registration: two of the same text would sign two statements.
    registering: Mutex<()>,
}

/// The parser of a command's arguments.
#[derive(Debug, Parser)]
struct Parsed<A: Args> {
    #[command(flatten)]
    command: A,
}

impl LogTools {
    /// Creates the tools. Their files are below `folder`; texts that they register are kept in `state`.
    pub fn new(
        context: Context,
        identity: ToolIdentity,
        service: ServiceArgs,
        folder: Option<PathBuf>,
        state: PathBuf,
    ) -> Result<Self, Failure> {
        if let Some(folder) = folder.as_deref().filter(|folder| !folder.is_dir()) {
            let what = format!("{} is not a folder", folder.display());
            return Err(Failure::new(Exit::NotFound, "file-not-found", what));
        }
        Ok(Self { context, identity, service, folder, state, registering: Mutex::default() })
    }

    /// Calls a tool. Blocks the thread.
    pub fn call(&self, tool: &ToolSpec, given: &Map<String, Json>) -> Result<ToolResult, Failure> {
        (tool.call)(self, ToolArguments::parse(tool.name, tool.arguments, given)?)
    }

    fn register(&self, mut call: ToolArguments) -> Result<ToolResult, Failure> {
        let _one_at_a_time = self.registering.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match (call.take("content"), call.take("file")) {
            (Some(content), None) => {
                let given = |flag: &str| call.flags.iter().find_map(|given| given.strip_prefix(flag));
                store_content(&self.state, &content, given("--sub="), given("--content-type="))?
            }
            (None, Some(name)) => self.file(&name)?,
            _ => return Err(one_of("content and file")),
        };
        let mut flags = call.flags;
        let ToolIdentity { dev, key, iss, trust } = &self.identity;
        if *dev {
            flags.push("--dev".to_owned());
        }
        flags.extend(path_flags("key", key.as_deref())?);
        flags.extend(iss.as_ref().map(|iss| format!("--iss={iss}")));
        flags.extend(path_flags("trust", trust.as_deref())?);
        flags.extend(self.service.to_flags()?);
        let register: Register = parse("register", flags, &[path_text(&file)?])?;
        result(&register.register_one(&self.context)?)
    }

    fn verify(&self, mut call: ToolArguments) -> Result<ToolResult, Failure> {
        let texts = TempDir::new()?;
        let store = |name: &str, bytes: &[u8]| -> Result<PathBuf, Failure> {
            let file = texts.path().join(name);
            std::fs::write(&file, bytes)?;
            Ok(file)
        };
        let (statement, receipt) = match (call.take("statement"), call.take("file"), call.take("entry")) {
            (Some(encoded), None, None) => (store("statement", &base64(&encoded)?)?, None),
            (None, Some(name), None) => (self.file(&name)?, None),
            (None, None, Some(entry)) => {
                let (statement, receipt) = self.fetch(&entry)?;
                (store("statement", statement.bytes())?, Some(store("receipt", &receipt)?))
            }
            _ => return Err(one_of("statement, file and entry")),
        };
        let payload = match (call.take("payload"), call.take("payload_file")) {
            (Some(text), None) => Some(store("payload", text.as_bytes())?),
            (None, Some(name)) => Some(self.file(&name)?),
            (None, None) => None,
            _ => return Err(one_of("payload and payload_file")),
        };
        let mut flags = call.flags;
        flags.extend(path_flags("trust", self.trust())?);
        flags.extend(path_flags("payload", payload.as_deref())?);
        flags.extend(path_flags("receipt", receipt.as_deref())?);
        let verify: Verify = parse("verify", flags, &[path_text(&statement)?])?;
        let verified = verify.verify(&self.context)?;
        let is_error = verified.outcome() != VerificationOutcome::Verified;
        Ok(ToolResult { is_error, ..result(&verified)? })
    }

    /// Returns the named trust file; `None` for the default one.
    fn trust(&self) -> Option<&Path> {
        let dev = self.identity.dev.then(|| Path::new(trust_file::DEV));
        self.identity.trust.as_deref().or(dev)
    }

    /// Fetches the statement of an entry, and the receipt that dates its registration.
    fn fetch(&self, entry: &str) -> Result<(SignedStatement, Bytes), Failure> {
        let digest: EntryDigest = entry.parse().map_err(|_| {
            Failure::new(Exit::Usage, "not-an-entry", format!("{entry} is not an entry ID"))
                .why("an entry ID is 64 lowercase hexadecimal digits: the SHA-256 of the statement")
        })?;
        let service = self.service.connect(&self.context)?;
        let trust = TrustFile::find(&self.context, self.trust())?.store;
        let statement = service.block_on(service.client.statement(&digest))?;
        let receipt = service.block_on(service.client.dated_receipt(&statement, &trust, now()))?;
        Ok((statement, receipt))
    }

    fn search(&self, call: ToolArguments) -> Result<ToolResult, Failure> {
        let flags = call.flags.into_iter().chain(self.service.to_flags()?).collect();
        let search: Search = parse("search", flags, &[])?;
        result(&search.find(&self.context)?)
    }

    fn session(&self, mut call: ToolArguments) -> Result<ToolResult, Failure> {
        let session = call.take("session").unwrap_or_default();
        let flags = call.flags.into_iter().chain(self.service.to_flags()?).collect();
        let show: session::Show = parse("session", flags, &[session])?;
        result(&show.find(&self.context)?)
    }

    fn file(&self, name: &str) -> Result<PathBuf, Failure> {
        file_below(self.folder.as_deref(), name)
    }
}

/// Parses the arguments of a command. `positional` are not flags, however they begin.
fn parse<A: Args>(command: &str, flags: Vec<String>, positional: &[String]) -> Result<A, Failure> {
    let words = std::iter::once(command.to_owned()).chain(flags);
    let words = words.chain(["--".to_owned()]).chain(positional.iter().cloned());
    Parsed::<A>::try_parse_from(words).map(|parsed| parsed.command).map_err(|error| {
        let text = error.render().to_string();
        let what = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        Failure::new(Exit::Usage, "usage", what)
    })
}

fn result(report: &impl Serialize) -> Result<ToolResult, Failure> {
    let json = serde_json::to_value(report)
        .map_err(|error| Failure::new(Exit::Failure, "io", format!("the result is not JSON: {error}")))?;
    Ok(ToolResult { json, is_error: false })
}

/// Decodes base64 in either alphabet, with or without padding and line breaks.
fn base64(text: &str) -> Result<Vec<u8>, Failure> {
    let plain: String = text.chars().filter(|c| !c.is_ascii_whitespace()).collect();
    let unpadded = plain.trim_end_matches('=').replace('+', "-").replace('/', "_");
    let decoded = BASE64.decode(plain.as_bytes()).or_else(|_| BASE64URL_NOPAD.decode(unpadded.as_bytes()));
    decoded.map_err(|error| {
        Failure::new(Exit::Usage, "usage", "the argument statement must be base64")
            .fact("because", error.to_string())
    })
}

fn one_of(arguments: &str) -> Failure {
    Failure::new(Exit::Usage, "usage", format!("give one of the arguments {arguments}"))
}

fn path_flags<'p>(flag: &str, path: impl IntoIterator<Item = &'p Path>) -> Result<Vec<String>, Failure> {
    path.into_iter().map(|path| path_flag(flag, path)).collect()
}
