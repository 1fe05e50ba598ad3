//! `tabellion gateway approval`: shows an approver's questions, and answers them with the approver's own key.

mod verify;

use std::io::{self, Write};
use std::path::PathBuf;

use admission::approval::{Approval as Answered, Decision, Question, SubjectKind};
use admission::limits::MAX_APPROVAL_REASON;
use clap::{Args, Subcommand};
use gateway::approvals::{ApprovalsClient, ClientError, QuestionView};
use scitt::SigningKey;
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::commands::verify::now;
use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure, Report, members, safe};
use crate::context::Context;
use crate::keyfile;
use crate::runtime;
use crate::service::no_http_client;
use crate::show::time;

/// The default of `--url`: a local gateway's listener for approvers.
const URL: &str = "http://127.0.0.1:7402";

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion gateway approval list --key approver.pem")]
pub enum Approval {
    /// List the open questions that you may answer
    List(List),
    /// Show a question with all contents that an answer would sign
    Show(Show),
    /// Sign an answer to a question, and send it to the gateway
    Answer(Answer),
    /// Verify a signed answer offline
    Verify(verify::Verify),
}

/// Which gateway, and who asks.
#[derive(Debug, Args)]
struct GatewayConnection {
    /// The gateway's URL for approvers
    #[arg(long, value_name = "URL", default_value = URL)]
    url: String,
    /// Your private key
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
}

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway approval list --key approver.pem")]
pub struct List {
    #[command(flatten)]
    reached: GatewayConnection,
}

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway approval show 0123… --key approver.pem")]
pub struct Show {
    /// The question
    id: String,
    #[command(flatten)]
    reached: GatewayConnection,
}

#[derive(Debug, Args)]
#[command(before_help = "example:  tabellion gateway approval answer 0123… --key approver.pem")]
pub struct Answer {
    /// The question
    id: String,
    #[command(flatten)]
    reached: GatewayConnection,
    /// Deny instead of approve
    #[arg(long)]
    deny: bool,
    /// The reason, stored with the evidence and not sent to the caller
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Sign only if the question has this digest, from `show`
    #[arg(long, value_name = "DIGEST")]
    digest: Option<String>,
    /// Write question and answer to this file, for `approval verify`
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Approval {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::List(command) => command.run(context),
            Self::Show(command) => command.run(context),
            Self::Answer(command) => command.run(context),
            Self::Verify(command) => command.run(context),
        }
    }
}

impl List {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let gateway = self.reached.connect()?;
        let listed = gateway.ask(gateway.client.list(&gateway.key, now()))?;
        context.console.print(&listed, |out| {
            for question in &listed.questions {
                let (id, what) = (safe(&question.id), in_short(question));
                writeln!(out, "{id}  {}  until {}", safe(&what), time(question.expires))?;
            }
            match listed.questions.is_empty() {
                true => writeln!(out, "nothing waits for {}", safe(&listed.approver)),
                false => Ok(()),
            }
        })
    }
}

impl Show {
    fn run(self, context: &Context) -> Result<(), Failure> {
        let gateway = self.reached.connect()?;
        let shown = gateway.show(&self.id)?;
        context.console.result(&ApprovalView { digest: shown.question.subject.digest().to_string(), shown })
    }
}

impl Answer {
    fn run(self, context: &Context) -> Result<(), Failure> {
        if self.reason.as_deref().is_some_and(|reason| reason.chars().nth(MAX_APPROVAL_REASON).is_some()) {
            let what = format!("a reason has at most {MAX_APPROVAL_REASON} characters");
            return Err(Failure::new(Exit::Usage, "usage", what));
        }
        let gateway = self.reached.connect()?;
        let shown = gateway.show(&self.id)?;
        // The digest is computed from the question that was shown, independently of the gateway.
        let digest = shown.question.subject.digest().to_string();
        if let Some(expected) = self.digest.filter(|expected| *expected != digest) {
            return Err(Failure::new(
                Exit::Refused,
                "approval-differs",
                "the question is not the one that you saw",
            )
            .fact("expected", expected)
            .fact("found", digest)
            .why("nothing was signed"));
        }
        let decision = if self.deny { Decision::Deny } else { Decision::Approve };
        let answer = Answered::of(&shown.question, &shown.approver, decision, self.reason);
        let signed = answer.sign(&gateway.key).map_err(ClientError::Unsigned).map_err(failed)?;
        gateway.ask(gateway.client.answer(&self.id, signed.clone()))?;
        let (question, decision, approver) = (self.id, decision.as_str(), shown.approver);
        let subject = in_short(&shown.question);
        context.console.print(&members! { question, decision, digest, approver, subject }, |out| {
            writeln!(out, "{decision}  {}, signed as {}", safe(&subject), safe(&approver))?;
            writeln!(out, "digest   {digest}")
        })?;
        if let Some(output) = &self.output {
            let evidence = json!({ "question": shown.question, "answer": signed }).to_string();
            files::write(output, evidence.as_bytes(), Access::Ordinary, Existing::Keep)?;
            context.console.note(format!("wrote      {}", output.display()));
        }
        Ok(())
    }
}

/// A client of a gateway, with the approver's key.
struct ConnectedGateway {
    client: ApprovalsClient,
    key: SigningKey,
    runtime: Runtime,
}

impl GatewayConnection {
    fn connect(&self) -> Result<ConnectedGateway, Failure> {
        let key = keyfile::read(&self.key)?;
        let runtime = runtime::single_threaded()?;
        Ok(ConnectedGateway { client: ApprovalsClient::new(&self.url).map_err(failed)?, key, runtime })
    }
}

impl ConnectedGateway {
    fn ask<T>(&self, exchange: impl Future<Output = Result<T, ClientError>>) -> Result<T, Failure> {
        self.runtime.block_on(exchange).map_err(failed)
    }

    fn show(&self, id: &str) -> Result<QuestionView, Failure> {
        if !admission::approval::is_id(id) {
            return Err(Failure::new(Exit::Usage, "usage", "the id of a question is 32 hexadecimal digits"));
        }
        let shown = self.ask(self.client.show(id, &self.key, now()))?;
        match shown.question.id == id {
            true => Ok(shown),
            false => Err(failed(ClientError::Nonsense("it shows another question".to_owned()))),
        }
    }
}

fn failed(error: ClientError) -> Failure {
    match error {
        ClientError::Setup(why) => Failure::new(Exit::Usage, "usage", why),
        ClientError::NoHttpClient(why) => no_http_client(&why),
        ClientError::Unreachable(_) => Failure::new(Exit::TryAgain, "unreachable", error.to_string())
            .hint("tabellion gateway approval list --url URL, with the address of [approvals] listen"),
        ClientError::Refused(_, problem) => {
            let exit = match problem.code.as_str() {
                "no-question" => Exit::NotFound,
                "try-again" => Exit::TryAgain,
                _ => Exit::Refused,
            };
            Failure::new(exit, problem.code, problem.detail)
        }
        ClientError::Nonsense(_) => Failure::new(Exit::Failure, "nonsense", error.to_string()),
        ClientError::Unsigned(_) => Failure::new(Exit::Failure, "cannot-sign", error.to_string()),
    }
}

/// Describes the subject of a question in one line.
fn in_short(question: &Question) -> String {
    let subject = &question.subject;
    match subject.kind {
        SubjectKind::Call => format!("call of {} on {}", subject.name(), subject.route),
        SubjectKind::Commitment | SubjectKind::Amendment => {
            format!("{} on {}", subject.name(), subject.route)
        }
    }
}

#[derive(Serialize)]
struct ApprovalView {
    /// The digest of the subject shown here, which an answer signs.
    digest: String,
    #[serde(flatten)]
    shown: QuestionView,
}

impl Report for ApprovalView {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        let QuestionView { approver, standing, question, .. } = &self.shown;
        let subject = &question.subject;
        writeln!(out, "question    {}   {standing}", safe(&question.id))?;
        writeln!(out, "about       {}", safe(&in_short(question)))?;
        writeln!(out, "gateway     {}", safe(&subject.gateway))?;
        writeln!(out, "session     {}", safe(&subject.session_id))?;
        if let Some(agent) = &question.agent_id {
            writeln!(out, "agent       {}   shown by {}", safe(agent), safe(&question.agent_proven_by))?;
        }
        writeln!(out, "because     {}", safe(&question.because))?;
        let of = if subject.kind == SubjectKind::Call { "arguments" } else { "message" };
        writeln!(out, "{of:12}{}", safe(&subject.content))?;
        writeln!(out, "digest      {}", self.digest)?;
        writeln!(out, "asked       {}   until {}", time(question.asked), time(question.expires))?;
        writeln!(out, "answered by {}", safe(approver))
    }
}
