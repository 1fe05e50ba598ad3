//! `tabellion operator`: statements that need the agreement of several operators. One operator writes the proposal to a
//! file (`--write` of the command), the others approve the file, and one of them submits it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use data_encoding::BASE64URL_NOPAD;
use jiff::Timestamp;
use registration::erasure::Erasure;
use registration::operator::{self, Action, Approval, OperatorRule, Pending, SignError};
use registration::{
    ERASURE_CONTENT_TYPE, OPERATOR_ACTION_CONTENT_TYPE, OPERATOR_APPROVAL_CONTENT_TYPE, POLICY_CONTENT_TYPE,
    Policy,
};
use scitt::{SignedStatement, SigningKey};
use serde::{Deserialize, Serialize};

use client::ClientError;

use crate::commands::verify::now;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, safe};
use crate::context::Context;
use crate::keyfile;
use crate::service::{Service, ServiceArgs, nonsense};
use crate::show::time;

/// Default of `--expires`, the validity of approvals, in seconds: one day.
const STANDS: u64 = 24 * 60 * 60;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion operator approve freeze.json --key operator2.pem")]
pub enum Operator {
    /// Approve another operator's action (--write) with a statement on the log
    #[command(before_help = "example:  tabellion operator approve freeze.json --key operator2.pem")]
    Approve(ProposalArgs),
    /// Sign and register an action (--write) that enough operators have approved
    #[command(before_help = "example:  tabellion operator submit freeze.json --key operator.pem")]
    Submit(ProposalArgs),
}

#[derive(Debug, Args)]
pub struct ProposalArgs {
    /// A file from --write
    file: PathBuf,
    /// A key of the log's operator
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    service: ServiceArgs,
}

/// Whether a command signs by itself, or writes what is to be signed.
#[derive(Debug, Args)]
pub struct Signing {
    /// A key of the log's operator
    #[arg(long, value_name = "FILE")]
    key: Option<PathBuf>,
    /// Write the action to a file for other operators' approval instead of signing it
    #[arg(long, value_name = "FILE", conflicts_with = "key")]
    write: Option<PathBuf>,
    /// When approvals of the file expire [default: in 24 hours]
    #[arg(long, value_name = "TIME", requires = "write", hide = true)]
    expires: Option<Timestamp>,
}

/// The action of a command on its payload, selected by `--key` or `--write`.
pub enum Signer {
    /// Sign the payload with this key, and submit it.
    Key(SigningKey),
    /// Write the payload to a file for approval.
    Write(Proposals),
}

/// The file for a proposal, and the expiry of its approvals in Unix seconds.
pub struct Proposals {
    file: PathBuf,
    expires: u64,
}

/// A payload for which operators' approval is requested, as written to a file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Proposal {
    content_type: String,
    /// The payload in canonical JSON.
    payload: String,
    /// The statement's `exp` in Unix seconds.
    expires: u64,
}

impl Signing {
    /// Returns the signer that the flags select. A key file is read here.
    pub fn signer(&self) -> Result<Signer, Failure> {
        if let Some(key) = &self.key {
            return keyfile::read(key).map(Signer::Key);
        }
        let Some(file) = self.write.clone() else {
            return Err(Failure::new(Exit::Usage, "usage", "an operator of the log has to sign").hint(
                "name an operator's key with --key, or write the statement for approval with --write",
            ));
        };
        let expires = match self.expires.map(Timestamp::as_second) {
            Some(at) => u64::try_from(at).ok().filter(|at| *at > now()),
            None => Some(now() + STANDS),
        };
        let expires = expires.ok_or_else(|| {
            Failure::new(Exit::Usage, "usage", "the time at which approvals expire has passed")
        })?;
        Ok(Signer::Write(Proposals { file, expires }))
    }
}

impl Proposals {
    /// Writes a payload to the file, and prints a summary and the next steps.
    pub fn write(&self, context: &Context, content_type: &str, payload: Vec<u8>) -> Result<(), Failure> {
        let payload = String::from_utf8(payload).map_err(nonsense)?;
        let proposal = Proposal { content_type: content_type.to_owned(), payload, expires: self.expires };
        let json = serde_json::to_vec_pretty(&proposal).map_err(nonsense)?;
        files::write(&self.file, &json, Access::Ordinary, Existing::Keep)?;
        context.console.result(&OperatorResult::of(&proposal, None)?)?;
        context.console.note(format!(
            "hand {} to the other operators (tabellion operator approve), then: tabellion operator submit",
            self.file.display()
        ));
        Ok(())
    }
}

impl Operator {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::Approve(named) => named.approve(context),
            Self::Submit(named) => named.submit(context),
        }
    }
}

impl ProposalArgs {
    fn approve(self, context: &Context) -> Result<(), Failure> {
        let (proposal, key) = (Proposal::read(&self.file)?, keyfile::read(&self.key)?);
        let result = OperatorResult::of(&proposal, None)?;
        let service = self.service.connect(context)?;
        let payload = Approval(proposal.pending()).payload();
        let signed = signed(&service, OPERATOR_APPROVAL_CONTENT_TYPE, payload, None, &key)?;
        match service.drive(service.client.submit(signed.bytes())) {
            Ok(_) => context
                .console
                .result(&OperatorResult { statement: Some(signed.digest().to_string()), ..result }),
            Err(ClientError::Refused { problem, .. })
                if problem.get_rule() == Some(OperatorRule::ApprovedOnce.name()) =>
            {
                context.console.note("this operator has approved it already");
                context.console.result(&result)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn submit(self, context: &Context) -> Result<(), Failure> {
        let (proposal, key) = (Proposal::read(&self.file)?, keyfile::read(&self.key)?);
        let service = self.service.connect(context)?;
        let (payload, expires) = (proposal.payload.clone().into_bytes(), Some(proposal.expires));
        let signed = signed(&service, &proposal.content_type, payload, expires, &key)?;
        service.block_on(service.client.submit(signed.bytes()))?;
        context.console.result(&OperatorResult::of(&proposal, Some(signed.digest().to_string()))?)
    }
}

impl Proposal {
    fn read(file: &Path) -> Result<Self, Failure> {
        let unreadable = |error: serde_json::Error| {
            Failure::new(
                Exit::Failure,
                "no-proposal",
                format!("{} was not written by --write", file.display()),
            )
            .fact("because", error.to_string())
        };
        serde_json::from_slice(&files::read(file)?).map_err(unreadable)
    }

    fn pending(&self) -> Pending {
        Pending::of(&self.content_type, self.payload.as_bytes(), self.expires)
    }

    /// Describes the effect of the proposal, in one line per change.
    fn words(&self) -> Result<Vec<String>, String> {
        let payload = self.payload.as_bytes();
        match &*self.content_type {
            POLICY_CONTENT_TYPE => {
                let policy = Policy::from_payload(payload).map_err(|mistakes| mistakes.to_string())?;
                let contents = policy.contents();
                Ok(vec![
                    format!(
                        "puts a policy in force: revision {}, digest {}",
                        contents.revision,
                        policy.digest()
                    ),
                    format!("operators: {}", contents.operators.len()),
                    format!("content types: {}", contents.types.len()),
                ])
            }
            ERASURE_CONTENT_TYPE => {
                let erasure = Erasure::from_payload(payload).map_err(|why| why.to_string())?;
                let entries =
                    erasure.entries.iter().map(|entry| format!("erases the bytes of entry {entry}"));
                Ok(entries.chain([format!("reason: {} ({})", erasure.reason, erasure.rule)]).collect())
            }
            OPERATOR_ACTION_CONTENT_TYPE => {
                Ok(match Action::from_payload(payload).map_err(|why| why.to_string())? {
                    Action::Freeze { reason } => vec![
                        "ends the log for ever: no more entries are added".to_owned(),
                        format!("reason: {reason}"),
                    ],
                    Action::Hold(held) => {
                        vec![format!("holds entry {} for the case {}", held.entry, held.case)]
                    }
                    Action::Release(held) => {
                        vec![format!("ends the hold of entry {} for the case {}", held.entry, held.case)]
                    }
                })
            }
            other => Err(format!("{other} is not a content type that operators approve")),
        }
    }
}

/// Signs an operator statement under the service's current policy.
fn signed(
    service: &Service,
    content_type: &str,
    payload: Vec<u8>,
    expires: Option<u64>,
    key: &SigningKey,
) -> Result<SignedStatement, Failure> {
    sign(&policy_of(service)?, content_type, payload, expires, key)
}

/// Signs a payload with an operator key of this policy.
pub fn sign(
    policy: &Policy,
    content_type: &str,
    payload: Vec<u8>,
    expires: Option<u64>,
    key: &SigningKey,
) -> Result<SignedStatement, Failure> {
    let contents = policy.contents();
    let log = (contents.iss.as_str(), contents.origin.as_str());
    operator::sign(content_type, payload, expires, log, &contents.operators, key).map_err(not_signed)
}

/// Fetches the policy in force from a service.
pub fn policy_of(service: &Service) -> Result<Policy, Failure> {
    let statement = service.block_on(service.client.policy())?;
    Policy::from_payload(statement.payload().unwrap_or_default()).map_err(nonsense)
}

/// Decodes the policy from a signed statement in base64url, as the admin listener returns it.
pub fn policy_in(statement: &str) -> Result<Policy, Failure> {
    let bytes = BASE64URL_NOPAD.decode(statement.as_bytes()).map_err(nonsense)?;
    let statement = SignedStatement::parse(bytes::Bytes::from(bytes)).map_err(nonsense)?;
    Policy::from_payload(statement.payload().unwrap_or_default()).map_err(nonsense)
}

/// Converts a [`SignError`] of an operator statement.
pub fn not_signed(error: SignError) -> Failure {
    match error {
        SignError::NotAnOperator(key) => Failure::new(
            Exit::Usage,
            "not-an-operator",
            "this key is not an operator key of the policy in force",
        )
        .fact("key", key),
        other => Failure::new(Exit::Usage, "cannot-sign", other.to_string()),
    }
}

#[derive(Serialize)]
struct OperatorResult {
    does: Vec<String>,
    content_type: String,
    payload: String,
    expires: String,
    /// The entry ID of the registered statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    statement: Option<String>,
}

impl OperatorResult {
    fn of(proposal: &Proposal, statement: Option<String>) -> Result<Self, Failure> {
        let does = proposal.words().map_err(|why| {
            Failure::new(Exit::Failure, "no-proposal", "the file holds nothing that operators approve")
                .fact("because", why)
        })?;
        let expires = i64::try_from(proposal.expires).map_or_else(|_| proposal.expires.to_string(), time);
        let (content_type, payload) = (proposal.content_type.clone(), proposal.pending().digest());
        Ok(Self { does, content_type, payload, expires, statement })
    }
}

impl Report for OperatorResult {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.does.iter().try_for_each(|line| writeln!(out, "{}", safe(line)))?;
        writeln!(out, "payload    {}\nexpires    {}", self.payload, self.expires)?;
        self.statement.iter().try_for_each(|entry| writeln!(out, "statement  {entry}"))
    }
}
