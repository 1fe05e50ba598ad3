//! Desks of several gateways, and what agents bring to them.

use std::sync::Arc;
use std::time::Duration;

use admission::decide::Status;
use admission::message::slot::{self, Carrier};
use admission::principal::{Caller, Era, TokenSubject};
use admission::reason::Reason;
use admission::rules::{Approver, PolicyRule, Rules, Then};
use admission::signature::{AgentKey, Holder, Keyring};
use admission::verdict::VerdictKind;
use evidence::{EvidenceStore, RecordKind, Stored};
use gateway::desk::{
    CallAnswer, CallJob, Came, Clock, Desk, Keys, Log, MessageAnswer, MessageJob, Running, Settings,
    ShownState, Told,
};
use jose::{jcs, jws};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::site::Site;

pub const AGENT: &str = "did:example:agent";
pub const SESSION: &str = "session-0123456789abcdef";
const POLICY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

/// One gateway's desk.
pub struct Office {
    pub desk: Desk,
    pub store: Arc<dyn EvidenceStore>,
    running: Running,
    rules: Arc<Rules>,
}

impl Office {
    pub async fn open(store: Arc<dyn EvidenceStore>, site: &Site) -> Self {
        Self::open_at(store, site.log()).await
    }

    pub async fn open_at(store: Arc<dyn EvidenceStore>, log: Log) -> Self {
        let keys = Keys {
            evidence: Arc::new(testkit::gateway()),
            verdict: Arc::new(testkit::verifier()),
            jwk_set: testkit::jwk_set_json(),
        };
        let settings = Settings { shared: true, ..Settings::of(testkit::GATEWAY) };
        let rules = Arc::new(rules());
        let of_route = {
            let rules = rules.clone();
            Arc::new(move |_: &str| Some(rules.clone()))
        };
        let opened = Desk::open(store.clone(), &keys, log, Clock::system(), settings, of_route).await;
        let (desk, running) = opened.unwrap();
        Self { desk, store, running, rules }
    }

    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// Alice declares a session under this budget.
    pub async fn commit(&self, budget: Value) -> Told {
        let message =
            slot::read(Some(&signed(&commitment(budget), json!({})).to_string()), None, Carrier::ToolsList);
        let job = self.message(message.map(Option::unwrap));
        message_told(self.desk.commitment(job).await)
    }

    /// Alice asks for more.
    pub async fn amend(&self, message: &Value) -> Told {
        let message = slot::read(Some(&message.to_string()), None, Carrier::ToolsList);
        message_told(self.desk.amendment(self.message(message.map(Option::unwrap))).await)
    }

    /// Alice calls a tool with these arguments, and it runs if it may. Says why not, if it may not.
    pub async fn run(&self, arguments: Value) -> Result<(), Reason> {
        let mut told = self.call(arguments).await;
        match told.pass.take() {
            Some(mut pass) => {
                pass.forwarding();
                pass.settle(ran(None)).await;
                Ok(())
            }
            None => Err(reason(&told).unwrap()),
        }
    }

    /// Alice calls a tool with these arguments, and says so.
    pub async fn call(&self, arguments: Value) -> Told {
        self.call_with(&alice(), &envelope(&arguments), &arguments).await
    }

    pub async fn call_with(&self, caller: &Caller, envelope: &Value, arguments: &Value) -> Told {
        self.call_again(caller, envelope, arguments, None).await
    }

    /// The same with a state of the gateway's own.
    pub async fn call_again(
        &self,
        caller: &Caller,
        envelope: &Value,
        arguments: &Value,
        shown: Option<ShownState>,
    ) -> Told {
        let envelope = slot::read(Some(&envelope.to_string()), None, Carrier::ToolsCall);
        let job = CallJob {
            route: self.rules.route.clone(),
            caller: caller.clone(),
            envelope: Some(envelope.map(Option::unwrap)),
            tool: "crm.read".into(),
            header: None,
            arguments: arguments.to_string(),
            can_wait: true,
            can_ask: false,
            has_roa_envelope: false,
            checked: None,
            asserted_client: None,
            shown,
            aside: None,
        };
        match self.desk.call(job).await {
            CallAnswer::Ruled(told) => *told,
            other => panic!("{other:?}"),
        }
    }

    fn message(&self, message: Result<slot::Received, Box<slot::Unreadable>>) -> MessageJob {
        MessageJob { route: self.rules.route.clone(), caller: alice(), message, aside: None }
    }
}

fn message_told(answer: MessageAnswer) -> Told {
    match answer {
        MessageAnswer::Ruled(told) => *told,
        other => panic!("{other:?}"),
    }
}

fn rules() -> Rules {
    let mut rules = Rules::new("/mcp", testkit::GATEWAY, POLICY);
    let key = AgentKey::new(Holder::Agent(AGENT.into()), &agent().public_key().to_jwk(), None, None);
    rules.keyring = Keyring::new(vec![key.unwrap()]).unwrap();
    let when = Some("object.get(input.arguments, \"approved\", false) == true");
    rules.policy.push(PolicyRule::new("approved", None, when, Then::Approve).unwrap());
    let key = AgentKey::new(Holder::Approver, &approver().public_key().to_jwk(), None, None).unwrap();
    rules.approvals.approvers.push(Approver { name: "carol".into(), tools: Vec::new(), keys: vec![key] });
    rules
}

pub fn agent() -> SigningKey {
    SigningKey::from_ed25519_seed(&[1; 32]).unwrap()
}

/// Signs approvals.
pub fn approver() -> SigningKey {
    SigningKey::from_ed25519_seed(&[2; 32]).unwrap()
}

pub fn alice() -> Caller {
    by_token("alice")
}

pub fn by_token(sub: &str) -> Caller {
    let token = TokenSubject { iss: "https://as.example".into(), sub: sub.into(), client_id: None };
    Caller { token: Some(token), ..Caller::unknown(Era::Modern) }
}

fn commitment(budget: Value) -> Value {
    json!({
        "vap": "0.1", "type": "scope_commitment", "session_id": SESSION,
        "goal": "Answer ticket SUP-9931",
        "scope": { "tools_allow": ["crm.*"] },
        "budget": budget,
        "principal": { "agent_id": AGENT },
    })
}

pub fn envelope(arguments: &Value) -> Value {
    json!({
        "vap": "0.1", "type": "intent_call", "session_id": SESSION,
        "intent": { "rationale": "the ticket says so", "expected_effect": "one ticket is read" },
        "call": { "tool": "crm.read", "arguments": arguments },
    })
}

/// The message, signed under a header with these members besides `alg` and `kid`.
pub fn signed(message: &Value, more: Value) -> Value {
    let mut header = json!({ "alg": "EdDSA", "kid": agent().public_key().jwk_thumbprint() });
    for (name, value) in more.as_object().unwrap() {
        header[name] = value.clone();
    }
    let mut message = message.clone();
    let input = jws::signing_input(&header, &jcs::canonical(&message));
    message["signature"] = jws::detached(&input, &agent().sign(&input).unwrap()).into();
    message
}

/// The call ran. What it cost is the text given.
pub fn ran(cost: Option<&str>) -> Came {
    Came { status: Status::Executed, cost: cost.map(str::to_owned), result: Some("{\"content\":[]}".into()) }
}

pub fn is_served(told: &Told) -> bool {
    assert_eq!(told.verdict.verdict == VerdictKind::Served, told.pass.is_some(), "{told:?}");
    told.pass.is_some()
}

pub fn reason(told: &Told) -> Option<Reason> {
    told.verdict.verification.reason.clone()
}

/// Until it is so. The deadline is generous: a slow machine is no failure.
pub async fn until<F: Future<Output = bool>>(what: &str, so: impl Fn() -> F) {
    for _ in 0..1200 {
        if so().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never: {what}");
}

/// A stream's records: numbered from 0 without a gap, and every served decision with one outcome.
pub async fn records(store: &dyn EvidenceStore, stream: &str) -> Vec<Stored> {
    let records = store.records(stream, 0, 100_000).await.unwrap();
    assert!(records.iter().map(|stored| stored.record.seq).eq(0..records.len() as u64));
    records
}

pub fn of_kind(records: &[Stored], kind: RecordKind) -> usize {
    records.iter().filter(|stored| stored.record.kind == kind).count()
}
