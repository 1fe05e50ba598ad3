//! A gateway of one process and no disk: it keeps sessions, accounts and what was used up, and passes every decision on as a
//! record that the log's own reader takes.

use std::collections::{HashMap, HashSet};

use admission::approval::Question;
use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::clarify::{HumanAnswer, ReturnedState, SealedCall};
use admission::decide::{
    self, ApproverQuestion, Authority, CallDecision, CallOutcome, CallPermit, DecisionContext, DecisionState,
    Declaration, EarlierResults, JudgeAnswer, MessageRuling, RandomInputs, Ruling, Settled, Stream, ToolCall,
};
use admission::principal::{Caller, Era, TokenSubject};
use admission::record::{self, RecordPosition};
use admission::rules::Rules;
use admission::session::{Account, ReservationId, Session};
use admission::signature::{AgentKey, Holder, Keyring};
use admission::tool::ToolFault;
use jiff::{SignedDuration, Timestamp};
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};
use testkit::agent;
use vap::audit::AuditRecord;
use vap::audit::CallStatus;
use vap::message::slot::{self, Carrier};
use vap::reason::Reason;
use vap::record_key::StreamKey;
use vap::verdict::{Binding, VerdictKind};

pub const GATEWAY: &str = "https://gw.example";
pub const AGENT: &str = "did:example:agent";
pub const SESSION: &str = "session-0123456789abcdef";
pub const POLICY: &str = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

pub struct World {
    pub rules: Rules,
    pub now: Timestamp,
    pub sample: u32,
    pub sessions: HashMap<String, Option<Session>>,
    pub accounts: HashMap<String, Account>,
    pub used: HashSet<String>,
    /// Stream and bytes of every record.
    pub records: Vec<(String, Vec<u8>)>,
    unbound: u64,
    rolls: u64,
}

/// A call that somebody tries.
#[derive(Clone)]
pub struct Try {
    pub caller: Caller,
    pub envelope: Option<Value>,
    pub tool: String,
    pub header: Option<String>,
    pub arguments: String,
    pub can_ask: bool,
    pub authority: Authority,
    pub tool_fault: Option<ToolFault>,
    pub held: Option<ReservationId>,
    pub judged: Option<JudgeAnswer>,
    pub answer: Option<HumanAnswer>,
    pub ticket: Option<Option<SealedCall>>,
    pub ticket_answer: Option<HumanAnswer>,
    /// A question to an approver, its answer, and whether it was used.
    pub approver_question: Option<(Question, Option<String>, bool)>,
}

pub fn world() -> World {
    let mut rules = Rules::new("/mcp", GATEWAY, POLICY);
    let agent =
        AgentKey::new(Holder::Agent(AGENT.into()), &key(1).public_key().to_jwk(), None, None).unwrap();
    let approver = AgentKey::new(Holder::Approver, &key(9).public_key().to_jwk(), None, None).unwrap();
    rules.keyring = Keyring::new(vec![agent, approver]).unwrap();
    World {
        rules,
        now: "2026-11-22T09:00:00Z".parse().unwrap(),
        sample: u32::MAX,
        sessions: HashMap::new(),
        accounts: HashMap::new(),
        used: HashSet::new(),
        records: Vec::new(),
        unbound: 0,
        rolls: 0,
    }
}

pub fn key(seed: u8) -> SigningKey {
    SigningKey::from_ed25519_seed(&[seed; 32]).unwrap()
}

/// Alice, with an access token, in the modern era.
pub fn alice() -> Caller {
    by_token("alice")
}

pub fn mallory() -> Caller {
    by_token("mallory")
}

pub fn by_token(sub: &str) -> Caller {
    let token = TokenSubject { iss: "https://as.example".into(), sub: sub.into(), client_id: None };
    Caller { token: Some(token), ..nobody() }
}

pub fn nobody() -> Caller {
    Caller::unknown(Era::Modern)
}

pub fn legacy(mcp_session: &str) -> Caller {
    let caller = Caller { route: "/mcp".into(), ..Caller::unknown(Era::Legacy) };
    caller.with_issued_session(Some(mcp_session.into()))
}

pub fn commitment(budget: Value) -> Value {
    agent::commitment(AGENT, SESSION, &budget)
}

pub fn envelope(tool: &str, arguments: Value) -> Value {
    agent::intent(SESSION, tool, &arguments)
}

pub fn amendment(prev: &str, additions: Value) -> Value {
    agent::amendment(SESSION, prev, &additions)
}

/// The message, signed under a header with these members besides `alg` and `kid`.
pub fn signed(message: &Value, key: &SigningKey, more: Value) -> Value {
    agent::signed(message, key, &more)
}

impl Try {
    /// Alice calls a tool and says so.
    pub fn of(tool: &str, arguments: Value) -> Self {
        Try {
            caller: alice(),
            envelope: Some(envelope(tool, arguments.clone())),
            tool: tool.into(),
            header: None,
            arguments: arguments.to_string(),
            can_ask: true,
            authority: Authority::NotRequired,
            tool_fault: None,
            held: None,
            judged: None,
            answer: None,
            ticket: None,
            ticket_answer: None,
            approver_question: None,
        }
    }

    pub fn by(self, caller: Caller) -> Self {
        Try { caller, ..self }
    }

    pub fn without_vap(self) -> Self {
        Try { envelope: None, ..self }
    }

    pub fn with(self, envelope: Value) -> Self {
        Try { envelope: Some(envelope), ..self }
    }

    /// With a state of ours, and what the person said.
    pub fn bringing(self, ticket: &SealedCall, answer: Option<HumanAnswer>) -> Self {
        Try { ticket: Some(Some(ticket.clone())), ticket_answer: answer, ..self }
    }
}

impl World {
    pub fn random(&mut self) -> RandomInputs {
        self.rolls += 1;
        let mut secret = [0; 32];
        secret[..8].copy_from_slice(&self.rolls.to_be_bytes());
        RandomInputs { sample: self.sample, secret }
    }

    pub fn pass(&mut self, seconds: i64) {
        self.now = self.now.checked_add(SignedDuration::from_secs(seconds)).unwrap();
    }

    pub fn session(&self) -> &Session {
        self.sessions[SESSION].as_ref().unwrap()
    }

    /// Alice's session under this budget, accepted.
    pub fn with_session(mut self, budget: Value) -> World {
        let ruling = self.commit(&alice(), &commitment(budget));
        assert!(ruling.verdict.verdict.is_permit(), "{ruling:?}");
        self
    }

    /// Commits, or amends: a commitment of the agent is signed, for it has a key.
    pub fn commit(&mut self, caller: &Caller, message: &Value) -> Ruling {
        let is_unsigned = message["type"] == "scope_commitment" && message.get("signature").is_none();
        match is_unsigned && message["principal"]["agent_id"] == AGENT {
            true => self.commit_as_it_is(caller, &signed(message, &key(1), json!({}))),
            false => self.commit_as_it_is(caller, message),
        }
    }

    /// The same, unsigned if it is.
    pub fn commit_as_it_is(&mut self, caller: &Caller, message: &Value) -> Ruling {
        match self.declare(caller, message, Carrier::ToolsList, EarlierResults::default()) {
            MessageRuling::Ruled(ruling) => *ruling,
            MessageRuling::Judge { .. } => panic!("the judge is asked"),
        }
    }

    pub fn declare(
        &mut self,
        caller: &Caller,
        message: &Value,
        carrier: Carrier,
        before: EarlierResults<'_>,
    ) -> MessageRuling {
        let read = slot::read(Some(&message.to_string()), None, carrier);
        let read = read.map(|read| Authenticated::new(read.unwrap(), &self.rules.keyring));
        let jti = read.as_ref().ok().and_then(|read| decide::claimed_jti(read));
        let id = message["session_id"].as_str().unwrap_or_default().to_owned();
        let replayed = jti.is_some_and(|jti| self.used.contains(&format!("{id} {jti}")));
        let random = self.random();
        let context = DecisionContext { rules: &self.rules, caller, now: self.now, random };
        let session = self.sessions.entry(id).or_default();
        let account = account_of(caller, session.as_ref());
        let account = self.accounts.entry(account).or_default();
        let books = DecisionState { session, account };
        let message = match &read {
            Ok(received) => Ok(received),
            Err(unreadable) => Err(&**unreadable),
        };
        let is_amendment =
            message.is_ok_and(|received| received.message.kind().as_str() == "scope_amendment");
        let declared = Declaration { message, replayed, can_wait: true, before };
        let ruling = match is_amendment {
            true => decide::amendment(&context, books, &declared),
            false => decide::commitment(&context, books, &declared),
        };
        if let MessageRuling::Ruled(ruling) = &ruling {
            self.keep(ruling);
        }
        ruling
    }

    pub fn call(&mut self, attempt: &Try) -> CallDecision {
        let text = attempt.envelope.as_ref().map(Value::to_string);
        let read = text.as_deref().map(|text| slot::read(Some(text), None, Carrier::ToolsCall));
        let read = read.map(|read| read.map(|read| Authenticated::new(read.unwrap(), &self.rules.keyring)));
        let jti = read.as_ref().and_then(|read| decide::claimed_jti(read.as_ref().ok()?));
        let id = attempt.envelope.as_ref().and_then(|message| message["session_id"].as_str());
        let id = id.unwrap_or_default().to_owned();
        let replayed = jti.is_some_and(|jti| self.used.contains(&format!("{id} {jti}")));
        let returned_state = attempt.ticket.as_ref().map(|ticket| ReturnedState {
            ticket: ticket.as_ref(),
            spent: ticket.as_ref().is_some_and(|ticket| self.used.contains(&ticket.nonce)),
            answer: attempt.ticket_answer,
        });
        let random = self.random();
        let context = DecisionContext { rules: &self.rules, caller: &attempt.caller, now: self.now, random };
        let session = self.sessions.entry(id).or_default();
        let account = account_of(&attempt.caller, session.as_ref());
        let account = self.accounts.entry(account).or_default();
        let envelope = read.as_ref().map(|read| match read {
            Ok(received) => Ok(received),
            Err(unreadable) => Err(&**unreadable),
        });
        let call = ToolCall {
            envelope,
            tool: &attempt.tool,
            header: attempt.header.as_deref(),
            arguments: &CallArguments::new(&*attempt.arguments),
            can_ask: attempt.can_ask,
            can_wait: true,
            authority: &attempt.authority,
            tool_fault: attempt.tool_fault.as_ref(),
            replayed,
            before: EarlierResults {
                held: attempt.held,
                judged: attempt.judged,
                answer: attempt.answer,
                returned_state,
                approver_question: attempt.approver_question.as_ref().map(|(question, answer, spent)| {
                    ApproverQuestion { question, answer: answer.as_deref(), spent: *spent }
                }),
            },
        };
        let ruling = decide::call(&context, DecisionState { session, account }, &call);
        if let CallDecision::Admit(_, ruling) | CallDecision::Refuse(ruling) = &ruling {
            self.keep(ruling);
        }
        ruling
    }

    /// Decides about a call that nobody has to be asked about.
    pub fn ruled(&mut self, attempt: &Try) -> Ruled {
        ruled(self.call(attempt))
    }

    pub fn served(&mut self, attempt: &Try) -> Ruled {
        let ruling = self.ruled(attempt);
        assert_eq!(ruling.verdict.verdict, VerdictKind::Served, "{:?}", ruling.reason);
        assert!(ruling.is_admitted());
        ruling
    }

    pub fn denied(&mut self, attempt: &Try) -> Reason {
        let ruling = self.ruled(attempt);
        assert_eq!(ruling.verdict.verdict, VerdictKind::Denied);
        assert!(!ruling.is_admitted());
        ruling.ruling.reason.unwrap()
    }

    /// A call that is served, and what came of it.
    pub fn ran(&mut self, attempt: &Try, cost: Option<&str>) -> Settled {
        let ruling = self.served(attempt);
        self.settle(ruling.reservation(), CallStatus::Executed, &attempt.tool, cost)
    }

    pub fn settle(
        &mut self,
        id: ReservationId,
        status: CallStatus,
        tool: &str,
        cost: Option<&str>,
    ) -> Settled {
        let session = self.sessions.get_mut(SESSION).unwrap().as_mut().unwrap();
        let account = self.accounts.entry(session.agreed.account().to_owned()).or_default();
        decide::settle(&self.rules, session, account, id, CallOutcome { status, tool, cost }).unwrap()
    }

    pub fn close(&mut self) -> bool {
        let session = self.sessions.get_mut(SESSION).unwrap().as_mut().unwrap();
        let account = self.accounts.entry(session.agreed.account().to_owned()).or_default();
        decide::close(session, account)
    }

    /// What a commit of the gateway does with a decision: use up what it claims, and write its record.
    fn keep(&mut self, ruling: &Ruling) {
        for claim in &ruling.claims {
            self.used.insert(claim.key.clone());
            self.used.insert(format!("{} {}", ruling.verdict.session_id, claim.key));
        }
        let unbound = StreamKey::new([7; 32]);
        let (stream, seq, key) = match &ruling.stream {
            Stream::Session(id) => {
                let session = self.sessions.get_mut(id).unwrap().as_mut().unwrap();
                (id.clone(), session.take_seq(), session.agreed.key().clone())
            }
            Stream::Unbound => {
                self.unbound += 1;
                ("unbound:test".to_owned(), self.unbound - 1, unbound)
            }
        };
        let place = RecordPosition { gateway: GATEWAY, stream: &stream, seq, at: self.now, key: &key };
        let binding = Binding { iat: 1, jti: format!("jti-{seq}"), req: ruling.req.clone() };
        let bytes = record::decided(&place, ruling, Some(&binding), None);
        let read = AuditRecord::read(&bytes)
            .unwrap_or_else(|why| panic!("{why:?} in {}", String::from_utf8_lossy(&bytes)));
        assert_eq!((read.gateway.as_str(), &read.stream), (GATEWAY, &stream));
        assert_eq!(read.to_bytes(), bytes, "what was read is written alike");
        self.records.push((stream, bytes));
    }
}

/// A decision about a call that asks nobody.
#[derive(Debug)]
pub struct Ruled {
    pub ruling: Ruling,
    pub permit: Option<CallPermit>,
}

pub fn ruled(decision: CallDecision) -> Ruled {
    match decision {
        CallDecision::Admit(permit, ruling) => Ruled { ruling: *ruling, permit: Some(permit) },
        CallDecision::Refuse(ruling) => Ruled { ruling: *ruling, permit: None },
        other => panic!("{other:?}"),
    }
}

impl Ruled {
    pub fn is_admitted(&self) -> bool {
        self.permit.is_some()
    }

    pub fn reservation(&self) -> ReservationId {
        self.permit.as_ref().unwrap().reservation().unwrap()
    }
}

impl std::ops::Deref for Ruled {
    type Target = Ruling;

    fn deref(&self) -> &Ruling {
        &self.ruling
    }
}

fn account_of(caller: &Caller, session: Option<&Session>) -> String {
    let own = admission::principal::account_key(caller, None);
    own.or_else(|| session.map(|session| session.agreed.account().to_owned())).unwrap_or_default()
}
