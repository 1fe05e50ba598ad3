//! Gateways that share a database, the agent Alice who calls them, and the approver of their rules.

use std::sync::Arc;

use admission::principal::{Caller, Era, TokenSubject};
use admission::rules::{Approver, PolicyRule, Posture, Rules, Then};
use admission::signature::{AgentKey, Holder, Keyring};
use evidence::{EvidenceStore, RecordKind, StoredRecord};
use gateway::decision_writer::{
    CallJob, CallOutcomeReport, Clock, DecisionAnswer, DecisionWriter, LogConnection, MessageAnswer,
    MessageJob, OpenedState, RunningWriter, WriterSettings,
};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};
use vap::audit::CallStatus;
use vap::glob::Pattern;
use vap::message::slot::Carrier;
use vap::reason::Reason;
use vap::verdict::VerdictKind;

use crate::agent::{POLICY, SESSION, call, job_without_vap, received};
use crate::setup::{keys, settings};
use crate::site::Site;

pub const AGENT: &str = "did:example:agent";

/// One of several gateways on a shared database: its decision writer under fixed rules.
pub struct SharingGateway {
    pub writer: DecisionWriter,
    pub store: Arc<dyn EvidenceStore>,
    running: RunningWriter,
    rules: Arc<Rules>,
}

impl SharingGateway {
    pub async fn open(store: Arc<dyn EvidenceStore>, site: &Site) -> Self {
        Self::open_at(store, site.log()).await
    }

    pub async fn open_at(store: Arc<dyn EvidenceStore>, log: LogConnection) -> Self {
        let settings = WriterSettings { shared: true, ..settings() };
        let rules = Arc::new(rules());
        let of_route = {
            let rules = rules.clone();
            Arc::new(move |_: &str| Some(rules.clone()))
        };
        let opened =
            DecisionWriter::open(store.clone(), &keys(), log, Clock::system(), settings, of_route).await;
        let (writer, running) = opened.unwrap();
        Self { writer, store, running, rules }
    }

    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// Alice declares a session under this budget.
    pub async fn commit(&self, budget: Value) -> DecisionAnswer {
        self.commit_in(SESSION, budget).await
    }

    /// The same in another session.
    pub async fn commit_in(&self, session: &str, budget: Value) -> DecisionAnswer {
        let commitment = testkit::agent::commitment(AGENT, session, &budget);
        let job = self.message(&signed(&commitment, json!({})));
        ruling_on(self.writer.commitment(job).await)
    }

    /// Alice asks for more.
    pub async fn amend(&self, message: &Value) -> DecisionAnswer {
        ruling_on(self.writer.amendment(self.message(message)).await)
    }

    /// Alice calls a tool with these arguments, and it runs if it may. Says why not, if it may not.
    pub async fn run(&self, arguments: Value) -> Result<(), Reason> {
        let mut response = self.call(arguments).await;
        match response.pass.take() {
            Some(mut pass) => {
                crate::setup::release_request(&mut pass);
                pass.settle(executed()).await;
                Ok(())
            }
            None => Err(reason(&response).unwrap()),
        }
    }

    /// Alice calls a tool with these arguments under an envelope.
    pub async fn call(&self, arguments: Value) -> DecisionAnswer {
        self.call_with(&alice(), &envelope(&arguments), &arguments).await
    }

    pub async fn call_with(&self, caller: &Caller, envelope: &Value, arguments: &Value) -> DecisionAnswer {
        self.call_again(caller, envelope, arguments, None).await
    }

    /// The same with a state of the gateway's own.
    pub async fn call_again(
        &self,
        caller: &Caller,
        envelope: &Value,
        arguments: &Value,
        state: Option<OpenedState>,
    ) -> DecisionAnswer {
        call(&self.writer, CallJob { state, ..self.job(caller, envelope, arguments) }).await
    }

    /// Alice calls a tool that may be called without VAP, without VAP.
    pub async fn call_without_vap(&self) -> DecisionAnswer {
        let plain = job_without_vap(&self.rules.route, "crm.read", &json!({}));
        call(&self.writer, CallJob { caller: alice(), ..plain }).await
    }

    /// A call that is to be decided.
    pub fn job(&self, caller: &Caller, envelope: &Value, arguments: &Value) -> CallJob {
        CallJob {
            caller: caller.clone(),
            envelope: Some(Ok(received(envelope, Carrier::ToolsCall))),
            ..job_without_vap(&self.rules.route, "crm.read", arguments)
        }
    }

    fn message(&self, message: &Value) -> MessageJob {
        let message = Ok(received(message, Carrier::ToolsList));
        MessageJob { route: self.rules.route.clone(), caller: alice(), message, invocation: None }
    }
}

/// The ruling on a message that no judge is asked about.
fn ruling_on(answer: MessageAnswer) -> DecisionAnswer {
    match answer {
        MessageAnswer::Ruled(response) => *response,
        other => panic!("{other:?}"),
    }
}

fn rules() -> Rules {
    let mut rules = Rules::new("/mcp", testkit::GATEWAY, POLICY);
    let key = AgentKey::new(Holder::Agent(AGENT.into()), &agent().public_key().to_jwk(), None, None);
    rules.keyring = Keyring::new(vec![key.unwrap()]).unwrap();
    let when = Some("object.get(input.arguments, \"approved\", false) == true");
    rules.posture = Posture::Restricted;
    rules.restricted.push(Pattern::new("crm.read").unwrap());
    rules.policy.push(PolicyRule::new("approved", None, when, Then::Approve).unwrap());
    let key = AgentKey::new(Holder::Approver, &approver().public_key().to_jwk(), None, None).unwrap();
    rules.approvals.approvers.push(Approver { name: "carol".into(), tools: Vec::new(), keys: vec![key] });
    rules
}

pub fn agent() -> SigningKey {
    testkit::ed25519([1; 32])
}

/// Signs approvals.
pub fn approver() -> SigningKey {
    testkit::ed25519([2; 32])
}

pub fn alice() -> Caller {
    caller_with_token("alice")
}

pub fn caller_with_token(sub: &str) -> Caller {
    let token = TokenSubject { iss: "https://as.example".into(), sub: sub.into(), client_id: None };
    Caller { token: Some(token), ..Caller::unknown(Era::Modern) }
}

pub fn envelope(arguments: &Value) -> Value {
    testkit::agent::intent(SESSION, "crm.read", arguments)
}

/// The message, signed under a header with these members besides `alg` and `kid`.
pub fn signed(message: &Value, more: Value) -> Value {
    testkit::agent::signed(message, &agent(), &more)
}

/// The report of a call that was executed, without a cost.
pub fn executed() -> CallOutcomeReport {
    CallOutcomeReport { status: CallStatus::Executed, cost: None, result: Some("{\"content\":[]}".into()) }
}

pub fn is_served(response: &DecisionAnswer) -> bool {
    assert_eq!(response.verdict.verdict == VerdictKind::Served, response.pass.is_some(), "{response:?}");
    response.pass.is_some()
}

pub fn reason(response: &DecisionAnswer) -> Option<Reason> {
    response.verdict.verification.reason.clone()
}

/// A stream's records, which are numbered from 0 without a gap.
pub async fn records(store: &dyn EvidenceStore, stream: &str) -> Vec<StoredRecord> {
    let records = store.records(stream, 0, 100_000).await.unwrap();
    assert!(records.iter().map(|stored| stored.record.seq).eq(0..records.len() as u64));
    records
}

/// How many of the records are of this kind.
pub fn count_of_kind(records: &[StoredRecord], kind: RecordKind) -> usize {
    records.iter().filter(|stored| stored.record.kind == kind).count()
}
