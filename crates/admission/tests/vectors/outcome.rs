//! What this implementation makes of a vector: the result, or the reason.

use admission::arguments::CallArguments;
use admission::authenticated::Authenticated;
use admission::decide::{
    self, Authority, CallDecision, DecisionContext, DecisionState, EarlierResults, RandomInputs, ToolCall,
};
use admission::effective::{Capped, Effective, SessionCeiling};
use admission::principal::{Caller, Era};
use admission::rules::{PolicyRule, Posture, Rules, Then};
use admission::session::Account;
use admission::signature::{AgentKey, Demands, Freshness, Holder, Keyring};
use data_encoding::HEXLOWER;
use decimal::Decimal;
use jose::jwk::PublicJwk;
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};
use vap::exact;
use vap::glob::{Pattern, allows};
use vap::message::slot::{self, Carrier, Key, Received, Shape};
use vap::message::{Message, MessageType};
use vap::reason::Reason;
use vap::verdict::{Binding, Verdict};

pub fn of(folder: &str, vector: &Value) -> Result<Value, String> {
    match folder {
        "message" => message(vector),
        "arguments" => arguments(vector),
        "pattern" => pattern(vector),
        "chain" => chain(vector).map_err(|reason| reason.to_string()),
        "signature" => signature(vector).map_err(|reason| reason.to_string()),
        "rule" => rule(vector),
        "verdict" => Ok(verdict(vector)),
        other => panic!("{other}"),
    }
}

fn text<'a>(value: &'a Value, member: &str) -> &'a str {
    value[member].as_str().unwrap_or_else(|| panic!("{member} in {value}"))
}

fn message(vector: &Value) -> Result<Value, String> {
    let carrier = Carrier::of_method(text(vector, "method")).unwrap();
    match slot::read(Some(text(vector, "text")), vector["own"].as_str(), carrier) {
        Ok(received) => Ok(told(&received.unwrap())),
        Err(unreadable) => Err(format!(
            "{} (session {}, {}, {})",
            unreadable.reason,
            unreadable.session_id.as_deref().unwrap_or("none"),
            unreadable.in_response_to.as_str(),
            shape(unreadable.shape),
        )),
    }
}

/// What becomes of a call without VAP of which the operator says: deny where `path` is more than `most`.
fn rule(vector: &Value) -> Result<Value, String> {
    let when = format!("input.arguments.{} > {}", text(vector, "path"), vector["most"]);
    let mut rules = Rules::new("/mcp", "https://gw.example", "sha256:00");
    rules.posture = Posture::Restricted;
    rules.restricted.push(Pattern::new("*").unwrap());
    rules.policy.push(PolicyRule::new("large", None, Some(&when), Then::Deny).unwrap());
    let caller = Caller::unknown(Era::Modern);
    let now = jiff::Timestamp::from_second(1_700_000_000).unwrap();
    let context = DecisionContext { rules: &rules, caller: &caller, now, random: RandomInputs::default() };
    let (mut session, mut account) = (None, Account::default());
    let call = ToolCall {
        envelope: None,
        tool: "pay",
        header: None,
        arguments: &CallArguments::new(text(vector, "arguments")),
        can_ask: false,
        can_wait: false,
        authority: &Authority::NotRequired,
        tool_fault: None,
        replayed: false,
        before: EarlierResults::default(),
    };
    let books = DecisionState { session: &mut session, account: &mut account };
    match decide::call(&context, books, &call) {
        CallDecision::Admit(..) => Ok("forwarded".into()),
        CallDecision::Refuse(ruling) => Err(ruling.reason.unwrap().to_string()),
        other => panic!("{other:?}"),
    }
}

fn told(received: &Received) -> Value {
    let mut told = json!({
        "type": received.message.kind().as_str(),
        "session_id": received.message.session_id(),
        "shape": shape(received.shape),
        "key": match received.key { Key::Vap => "vap", Key::Own => "dev.tabellion/vap", Key::Both => "both" },
        "digest": received.digest.as_str(),
    });
    if received.canon_raw {
        told["canon"] = "raw".into();
    }
    told
}

fn shape(shape: Shape) -> &'static str {
    match shape {
        Shape::Flat => "flat",
        Shape::Nested => "nested",
    }
}

fn arguments(vector: &Value) -> Result<Value, String> {
    match exact::equal(text(vector, "declared"), text(vector, "called")) {
        true => Ok(json!("equal")),
        false => Err(Reason::CallMismatch.to_string()),
    }
}

fn pattern(vector: &Value) -> Result<Value, String> {
    let patterns = |member: &str| -> Vec<Pattern> {
        let list = vector[member].as_array().into_iter().flatten();
        list.map(|pattern| Pattern::new(pattern.as_str().unwrap()).unwrap()).collect()
    };
    match allows(&patterns("allow"), &patterns("deny"), text(vector, "tool")) {
        true => Ok(json!("allowed")),
        false => Err(Reason::ScopeEscape.to_string()),
    }
}

/// Each amendment names `@` for the digest of what is in force when it comes.
fn chain(vector: &Value) -> Result<Value, Reason> {
    let ceiling = ceiling(&vector["ceiling"]);
    let Ok(Message::ScopeCommitment(commitment)) = Message::read(text(vector, "commitment")) else {
        panic!()
    };
    let mut links = vec![Effective::of(&commitment, &ceiling)?];
    for amendment in vector["amendments"].as_array().into_iter().flatten() {
        let now = &links.last().unwrap().effective;
        let amendment = amendment.as_str().unwrap().replace("\"@\"", &format!("\"{}\"", now.digest()));
        let amendment = match Message::read(&amendment) {
            Ok(Message::ScopeAmendment(amendment)) => amendment,
            Ok(other) => panic!("{other:?}"),
            Err(flaw) => return Err(flaw.reason),
        };
        links.push(now.amended(&amendment, &ceiling)?);
    }
    Ok(links.iter().map(link).collect())
}

fn link(capped: &Capped) -> Value {
    json!({
        "effective": capped.effective.text(),
        "digest": capped.effective.digest().as_str(),
        "verdict": if capped.changed { "downgraded" } else { "served" },
    })
}

fn ceiling(ceiling: &Value) -> SessionCeiling {
    let limits = ceiling["limits"].as_object().into_iter().flatten();
    SessionCeiling {
        max_calls: ceiling["max_calls"].as_u64(),
        deadline: ceiling["deadline"].as_str().map(|text| text.parse().unwrap()),
        limits: limits
            .map(|(meter, most)| (meter.clone(), Decimal::read(&most.to_string()).unwrap()))
            .collect(),
        ..SessionCeiling::default()
    }
}

fn signature(vector: &Value) -> Result<Value, Reason> {
    let message = text(vector, "text");
    let kind: Value = serde_json::from_str(message).unwrap();
    let carrier = match MessageType::from_word(text(&kind, "type")).unwrap() {
        MessageType::ScopeCommitment => Carrier::Initialize,
        MessageType::IntentCall => Carrier::ToolsCall,
        MessageType::ScopeAmendment => Carrier::Amend,
    };
    let received = slot::read(Some(message), None, carrier).map_err(|unreadable| unreadable.reason)?.unwrap();
    let keys = vector["keys"].as_array().unwrap().iter().map(key).collect();
    let demand = |name: &str| vector["demands"][name].as_bool().unwrap();
    let demands = Demands {
        signed: demand("signed"),
        amendments_signed: demand("amendments_signed"),
        freshness: if demand("freshness") { Freshness::Required } else { Freshness::Optional },
        audience: text(&vector["demands"], "audience").to_owned(),
    };
    let keyring = Keyring::new(keys).unwrap();
    let read = Authenticated::new(received, &keyring);
    let held =
        read.signer(text(vector, "agent_id"), &keyring, &demands, text(vector, "now").parse().unwrap())?;
    Ok(held.map_or_else(|| json!("unsigned"), |signed| json!({ "signed_by": signed.thumbprint })))
}

fn key(key: &Value) -> AgentKey {
    let holder = key["agent_id"].as_str().map_or(Holder::Approver, |id| Holder::Agent(id.to_owned()));
    let time = |member: &str| key[member].as_str().map(|text| text.parse().unwrap());
    let jwk = PublicJwk::from_value(&key["jwk"]).unwrap();
    AgentKey::new(holder, &jwk, time("not_before"), time("not_after")).unwrap()
}

fn verdict(vector: &Value) -> Value {
    let verdict: Verdict = serde_json::from_value(vector["verdict"].clone()).unwrap();
    let binding: Binding = serde_json::from_value(vector["binding"].clone()).unwrap();
    let seed: [u8; 32] = HEXLOWER.decode(text(vector, "seed").as_bytes()).unwrap().try_into().unwrap();
    let signer = SigningKey::from_ed25519_seed(&seed).unwrap();
    json!({
        "jwk": signer.public_key().to_jwk().to_value(),
        "signed": verdict.sign(&signer, &binding).unwrap(),
    })
}
