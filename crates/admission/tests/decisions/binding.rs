//! Whose session it is: readings V-2, V-3, V-7, V-20, V-21, V-32.

use admission::decide::Stream;
use admission::principal::account_key;
use admission::principal::{Caller, Era};
use admission::rules::{PolicyRule, Posture, PrincipalCeiling, Then};
use admission::session::AgreedTerms;
use admission::signature::{AgentKey, AgentSubject, Holder, Keyring};
use jiff::Timestamp;
use scitt::Signer as _;
use serde_json::{Value, json};
use vap::glob::Pattern;
use vap::reason::Reason;

use crate::world::{
    AGENT, GATEWAY, SESSION, Try, World, alice, amendment, commitment, envelope, key, legacy, mallory,
    nobody, signed, world,
};

fn read() -> Try {
    Try::of("crm.read", json!({ "ticket": 9931 }))
}

fn calls() -> Value {
    json!({ "max_calls": 5 })
}

#[test]
fn v_2_whoever_knows_the_session_id_can_neither_spend_nor_amend_nor_replace_it() {
    let mut world = world().with_session(calls());
    let digest = world.session().agreed.digest().to_string();
    assert_eq!(world.denied(&read().by(mallory())), Reason::WrongPrincipal);
    assert_eq!(world.denied(&read().by(nobody())), Reason::WrongPrincipal);
    let more = amendment(&digest, json!({ "increase_budget": { "add_calls": 1 } }));
    let more = signed(&more, &key(1), json!({}));
    assert_eq!(world.commit(&mallory(), &more).reason, Some(Reason::WrongPrincipal));
    assert_eq!(world.commit(&mallory(), &commitment(calls())).reason, Some(Reason::SessionInUse));
    assert_eq!(world.session().running.calls(), 0);
    world.served(&read());
}

#[test]
fn v_2_a_stranger_writes_nothing_into_the_streams_of_others() {
    let mut world = world().with_session(calls());
    let ruling = world.ruled(&read().by(mallory()));
    assert_eq!((ruling.ruling.stream, ruling.ruling.agent_id), (Stream::Unbound, None));
    assert_eq!(ruling.ruling.texts.goal, None);
    assert_eq!(world.ruled(&read()).stream, Stream::Session(SESSION.into()));
    let seqs: Vec<_> = world.records.iter().map(|(stream, _)| stream.as_str()).collect();
    assert_eq!(seqs, [SESSION, "unbound:test", SESSION]);
}

#[test]
fn v_2_a_stranger_without_a_name_does_not_have_the_owner_denied() {
    let mut world = world();
    world.commit(&nobody(), &signed(&commitment(json!({ "max_calls": 9 })), &key(1), json!({})));
    for _ in 0..200 {
        assert_eq!(world.denied(&read().by(nobody())), Reason::WrongPrincipal);
    }
    let own = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({}));
    world.served(&read().by(nobody()).with(own));
}

#[test]
fn v_2_in_the_legacy_era_the_mcp_session_is_equal_too() {
    let mut world = world();
    let with_token = |mcp: &str| Caller { token: alice().token, ..legacy(mcp) };
    world.commit(&with_token("mcp-1"), &commitment(calls()));
    world.served(&read().by(with_token("mcp-1")));
    assert_eq!(world.denied(&read().by(with_token("mcp-2"))), Reason::WrongPrincipal);
    let modern = Caller { era: Era::Modern, ..with_token("mcp-1") };
    assert_eq!(world.denied(&read().by(modern)), Reason::WrongPrincipal);
}

#[test]
fn v_2_an_invented_mcp_session_commits_to_nothing() {
    let mut world = world();
    let invented = Caller { is_session_issued: false, ..legacy("mcp-invented") };
    assert_eq!(world.commit(&invented, &unknown(calls())).reason, Some(Reason::NoPrincipal));
    let ruling = world.commit(&invented, &signed(&commitment(calls()), &key(1), json!({})));
    assert_eq!(ruling.reason, None, "its key says who it is");
    assert_eq!(world.denied(&read().by(invented)), Reason::WrongPrincipal, "and has to, every time");
}

#[test]
fn v_2_after_a_restart_a_session_goes_on() {
    let mut world = world();
    world.commit(&legacy("mcp-1"), &commitment(calls()));
    let unseen = |mcp: &str| Caller { is_session_issued: false, ..legacy(mcp) };
    world.served(&read().by(unseen("mcp-1")));
    assert_eq!(world.denied(&read().by(unseen("mcp-2"))), Reason::WrongPrincipal);
    let presumed = unseen("mcp-1").presumed().unwrap();
    assert_eq!(account_key(&presumed, None).as_deref(), Some(world.session().agreed.account()));
    assert_eq!(account_key(&unseen("mcp-1"), None), None);
}

#[test]
fn v_2_servers_that_give_out_the_same_mcp_session_share_no_account() {
    let elsewhere = Caller { route: "/other".into(), ..legacy("mcp-1") };
    assert_ne!(account_key(&legacy("mcp-1"), None), account_key(&elsewhere, None));
}

#[test]
fn v_2_without_any_principal_there_is_no_session() {
    let mut world = world();
    let ruling = world.commit(&nobody(), &unknown(calls()));
    assert_eq!(ruling.reason, Some(Reason::NoPrincipal));
    assert_eq!(world.denied(&read().by(nobody())), Reason::NoCommitment);
    let ruling = world.commit(&nobody(), &signed(&commitment(calls()), &key(1), json!({})));
    assert_eq!(ruling.reason, None);
    assert_eq!(world.denied(&read().by(nobody())), Reason::WrongPrincipal);
}

#[test]
fn v_2_a_session_belongs_to_its_route() {
    let mut world = world().with_session(calls());
    world.rules.route = "/other".into();
    assert_eq!(world.denied(&read()), Reason::NoCommitment);
}

#[test]
fn v_2_an_id_that_has_ended_is_not_used_again() {
    let mut world = world().with_session(calls());
    assert!(world.close());
    assert_eq!(world.denied(&read()), Reason::SessionClosed);
    assert_eq!(world.commit(&alice(), &commitment(calls())).reason, Some(Reason::SessionClosed));
}

#[test]
fn v_2_a_short_id_is_flagged_and_served() {
    let mut world = world();
    let mut short = commitment(calls());
    short["session_id"] = "s-1".into();
    let ruling = world.commit(&alice(), &short);
    assert_eq!(ruling.reason, None);
    assert_eq!(ruling.flags.iter().map(|flag| flag.as_str()).collect::<Vec<_>>(), ["short_session_id"]);
}

#[test]
fn v_3_the_first_commitment_wins_whatever_the_second_says() {
    let mut world = world().with_session(calls());
    let before = world.session().clone();
    assert_eq!(world.commit(&alice(), &commitment(calls())).reason, Some(Reason::SessionInUse));
    let larger = signed(&commitment(json!({ "max_calls": 500 })), &key(1), json!({}));
    assert_eq!(world.commit(&alice(), &larger).reason, Some(Reason::SessionInUse));
    assert_eq!(*world.session(), before);
}

#[test]
fn v_7_what_is_declared_is_what_is_called() {
    let mut world = world().with_session(calls());
    let mismatches = [
        Try { arguments: r#"{"ticket":9932}"#.into(), ..read() },
        Try { arguments: r#"{"ticket":9931,"force":true}"#.into(), ..read() },
        Try { header: Some("crm.write".into()), ..read() },
        Try { tool: "crm.Read".into(), ..read() },
    ];
    for attempt in mismatches {
        assert_eq!(world.denied(&attempt), Reason::CallMismatch, "{} {}", attempt.tool, attempt.arguments);
    }
    world.served(&Try {
        arguments: r#"{ "ticket": 9.931e3 }"#.into(),
        header: Some("crm.read".into()),
        ..read()
    });
}

#[test]
fn v_7_numbers_that_one_double_holds_are_two_calls() {
    let mut world = world().with_session(calls());
    let mut attempt = Try::of("crm.read", json!({ "n": 9_007_199_254_740_993_u64 }));
    attempt.arguments = r#"{"n":9007199254740992}"#.into();
    assert_eq!(world.denied(&attempt), Reason::CallMismatch);
}

#[test]
fn v_21_a_message_with_a_jti_is_taken_once() {
    let mut world = world().with_session(calls());
    let once = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({ "jti": "a" }));
    world.served(&read().with(once.clone()));
    assert_eq!(world.denied(&read().with(once)), Reason::Replayed);
    let without = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({}));
    world.served(&read().with(without.clone()));
    world.served(&read().with(without));
}

#[test]
fn v_21_an_old_message_and_one_for_somebody_else_are_not_taken() {
    let mut world = world().with_session(calls());
    let with = |header: Value| signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), header);
    let now = world.now.as_second();
    for (header, reason) in [
        (json!({ "iat": now - 61 }), Reason::Stale),
        (json!({ "aud": "https://elsewhere.example" }), Reason::WrongAudience),
    ] {
        assert_eq!(world.denied(&read().with(with(header))), reason);
    }
    world.served(&read().with(with(json!({ "iat": now, "aud": GATEWAY }))));
}

#[test]
fn v_20_only_the_agents_own_key_speaks_in_its_session() {
    let mut world = world().with_session(calls());
    let strange = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(2), json!({}));
    assert_eq!(world.denied(&read().with(strange)), Reason::UnknownKey);
    let approver = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(9), json!({}));
    assert_eq!(world.denied(&read().with(approver)), Reason::KeyNotAuthorised);
}

#[test]
fn v_32_a_session_that_was_denied_has_every_call_denied() {
    let mut world = world();
    world.rules.demands.signed = true;
    let ruling = world.commit(&alice(), &unknown(calls()));
    assert_eq!(ruling.reason, Some(Reason::SignatureRequired));
    let own = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({}));
    assert_eq!(world.denied(&read().with(own)), Reason::NoCommitment);
    let ruling = world.commit(&alice(), &signed(&commitment(calls()), &key(1), json!({})));
    assert_eq!(ruling.reason, None, "the id stayed free");
}

#[test]
fn x_2_what_cannot_be_read_is_denied_for_the_principals_one_session() {
    let mut world = world().with_session(calls());
    let ruling = world.ruled(&read().with(json!({ "vap": "0.1", "type": "intent_call" })));
    assert_eq!(ruling.verdict.session_id, SESSION);
    assert_eq!((ruling.ruling.reason, ruling.ruling.stream), (Some(Reason::Malformed), Stream::Unbound));
    let ruling = world.ruled(&read().by(mallory()).with(json!({ "vap": "0.1", "type": "intent_call" })));
    assert_eq!(ruling.verdict.session_id, "none");
}

#[test]
fn a_denial_leaves_nothing_but_a_count() {
    let mut world: World = world().with_session(calls());
    let at: Timestamp = world.now;
    world.denied(&Try::of("shell.run", json!({})));
    assert_eq!(at, world.now);
    let running = &world.session().running;
    assert_eq!((running.calls(), running.in_flight().len(), running.denied_in_a_row()), (0, 0, 1));
}

/// A commitment of an agent that has no key.
fn unknown(budget: Value) -> Value {
    let mut message = commitment(budget);
    message["principal"]["agent_id"] = "did:example:unknown".into();
    message
}

/// What the last record says of the agent: its name, and how that was shown.
fn named(world: &World) -> (String, String) {
    let record: Value = serde_json::from_slice(&world.records.last().unwrap().1).unwrap();
    let word = |member: &str| record[member].as_str().unwrap_or_default().to_owned();
    (word("agent_id"), word("agent_proven_by"))
}

#[test]
fn nobody_is_an_agent_that_has_keys_without_signing_as_it() {
    for caller in [alice(), legacy("mcp-1"), nobody()] {
        let mut world = world();
        let ruling = world.commit_as_it_is(&caller, &commitment(calls()));
        assert_eq!(ruling.reason, Some(Reason::SignatureRequired));
        assert_eq!(named(&world).1, "asserted");
        let strange = signed(&commitment(calls()), &key(2), json!({}));
        assert_eq!(world.commit_as_it_is(&caller, &strange).reason, Some(Reason::UnknownKey));
        let own = signed(&commitment(calls()), &key(1), json!({}));
        assert_eq!(world.commit_as_it_is(&caller, &own).reason, None);
        assert_eq!(named(&world), (AGENT.to_owned(), "key".to_owned()));
    }
}

#[test]
fn a_record_says_how_the_agents_name_was_shown() {
    let mut world = world().with_session(calls());
    world.served(&read());
    assert_eq!(named(&world), (AGENT.to_owned(), "session".to_owned()));
    let own = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({}));
    world.served(&read().with(own));
    assert_eq!(named(&world), (AGENT.to_owned(), "key".to_owned()));
    let mut world = self::world();
    assert_eq!(world.commit(&alice(), &unknown(calls())).reason, None);
    assert_eq!(named(&world), ("did:example:unknown".to_owned(), "asserted".to_owned()));
    world.served(&read());
    assert_eq!(named(&world), ("did:example:unknown".to_owned(), "asserted".to_owned()));
}

#[test]
fn a_session_that_began_before_its_agent_had_keys_goes_on_signed_only() {
    let mut world = world();
    let keyring = std::mem::take(&mut world.rules.keyring);
    assert_eq!(world.commit_as_it_is(&alice(), &commitment(calls())).reason, None);
    world.served(&read());
    world.rules.keyring = keyring;
    assert_eq!(world.denied(&read()), Reason::SignatureRequired);
    let own = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({}));
    world.served(&read().with(own));
}

/// The key of this agent under `seed`, valid until `not_after`.
fn key_of(agent_id: &str, seed: u8, not_after: Option<Timestamp>) -> AgentKey {
    let jwk = key(seed).public_key().to_jwk();
    AgentKey::new(Holder::Agent(agent_id.into()), &jwk, None, not_after).unwrap()
}

#[test]
fn a_session_whose_key_was_withdrawn_goes_on_only_with_another_key_of_its_agent() {
    let mut world = world().with_session(calls());
    world.served(&read());
    let ended = key_of(AGENT, 1, Some(world.now));
    let of_another = key_of("did:example:another", 1, None);
    for (keys, reason) in [
        (Vec::new(), Reason::UnknownKey),
        (vec![of_another], Reason::UnknownKey),
        (vec![ended], Reason::KeyNotValidNow),
        (vec![key_of(AGENT, 2, None)], Reason::UnknownKey),
    ] {
        world.rules.keyring = Keyring::new(keys).unwrap();
        assert_eq!(world.denied(&read()), reason);
    }
    let own = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(2), json!({}));
    world.served(&read().with(own));
    world.rules.keyring = Keyring::new(vec![key_of(AGENT, 1, None)]).unwrap();
    world.served(&read());
}

#[test]
fn a_session_whose_key_was_withdrawn_goes_on_with_a_token_of_its_agent() {
    let mut world = known_by_token();
    let without_keys = world.rules.keyring.clone();
    let keys = vec![key_of("did:example:unknown", 3, None)];
    world.rules.keyring = Keyring::new(keys).unwrap().with_subjects(vec![alices_agent()]);
    let message = signed(&unknown(calls()), &key(3), json!({}));
    assert_eq!(world.commit(&alice(), &message).reason, None);
    assert_eq!(named(&world).1, "key");
    world.rules.keyring = without_keys;
    world.served(&read());
    assert_eq!(named(&world).1, "token");
}

#[test]
fn an_approvers_signature_does_not_keep_a_session_whose_key_was_withdrawn() {
    let mut world = world().with_session(calls());
    let approver = AgentKey::new(Holder::Approver, &key(9).public_key().to_jwk(), None, None).unwrap();
    world.rules.keyring = Keyring::new(vec![approver]).unwrap();
    let digest = world.session().agreed.digest().to_string();
    let more = amendment(&digest, json!({ "increase_budget": { "add_calls": 1 } }));
    let more = signed(&more, &key(9), json!({}));
    assert_eq!(world.commit(&alice(), &more).reason, Some(Reason::UnknownKey));
}

#[test]
fn an_older_state_of_a_session_names_no_key_and_is_read() {
    let world = world().with_session(calls());
    let stored = serde_json::to_string(&world.session().agreed).unwrap();
    let signed_by = format!(r#""signed_by":"{}","#, key(1).public_key().jwk_thumbprint());
    let read = |text: &str| serde_json::from_str::<AgreedTerms>(text).unwrap();
    assert_eq!(read(&stored), world.session().agreed);
    assert!(stored.contains(&signed_by), "{stored}");
    assert_eq!(read(&stored.replace(&signed_by, "")).signed_by(), None);
}

#[test]
fn i_12_a_rule_on_the_agents_name_sees_names_that_were_shown_and_no_others() {
    let rule = |when: &str, then| PolicyRule::new("named", None, Some(when), then).unwrap();
    let deny_rest = || PolicyRule::new("rest", None, None, Then::Deny).unwrap();
    let mut trusted = world();
    trusted.rules.policy =
        vec![rule(&format!("input.principal.agent_id == {AGENT:?}"), Then::Allow), deny_rest()];
    let mut trusted = trusted.with_session(calls());
    trusted.served(&read());
    // The same name, where nobody can show it: without keys it is a word.
    let mut asserted = world();
    asserted.rules.keyring = Default::default();
    asserted.rules.policy =
        vec![rule(&format!("input.principal.agent_id == {AGENT:?}"), Then::Allow), deny_rest()];
    assert_eq!(asserted.commit_as_it_is(&alice(), &commitment(calls())).reason, None);
    assert_eq!(asserted.denied(&read()).as_str(), "policy:rest");
    // A list of agents that are refused is not avoided by a name that nobody can show.
    asserted.rules.policy = vec![rule(r#"input.principal.agent_id == "did:example:bad""#, Then::Deny)];
    assert_eq!(asserted.denied(&read()).as_str(), "policy:named");
    asserted.rules.policy = vec![rule(r#"input.principal.proven_by == "asserted""#, Then::Deny)];
    assert_eq!(asserted.denied(&read()).as_str(), "policy:named");
    trusted.rules.policy = vec![rule(r#"input.principal.proven_by != "key""#, Then::Deny)];
    assert_eq!(trusted.denied(&read()).as_str(), "policy:named");
    let own = signed(&envelope("crm.read", json!({ "ticket": 9931 })), &key(1), json!({}));
    trusted.served(&read().with(own));
}

#[test]
fn where_all_sessions_of_a_principal_are_bounded_an_mcp_session_is_no_principal() {
    let mut world = world();
    let limits = Default::default();
    world.rules.principal_ceiling = Some(PrincipalCeiling { max_calls: Some(2), limits, window: None });
    let denied = world.commit(&legacy("mcp-1"), &unknown(calls()));
    assert_eq!(denied.reason, Some(Reason::NoPrincipal));
    // Whoever signs, or has a token, is the same in every MCP session.
    let ledger_of = |caller: Caller| {
        let mut world = self::world();
        world.rules.principal_ceiling =
            Some(PrincipalCeiling { max_calls: Some(2), limits: Default::default(), window: None });
        assert_eq!(world.commit(&caller, &commitment(calls())).reason, None);
        world.session().agreed.ledger().unwrap().to_owned()
    };
    assert_eq!(ledger_of(legacy("mcp-1")), ledger_of(legacy("mcp-2")));
    let by_token = |mcp: &str| Caller { token: alice().token, ..legacy(mcp) };
    assert_eq!(ledger_of(by_token("mcp-1")), ledger_of(by_token("mcp-2")));
    assert_ne!(ledger_of(by_token("mcp-1")), ledger_of(legacy("mcp-1")));
}

#[test]
fn a_session_that_only_an_mcp_session_owns_admits_nothing_once_principals_are_bounded() {
    let mut world = world();
    assert_eq!(world.commit(&legacy("mcp-1"), &unknown(calls())).reason, None);
    world.served(&read().by(legacy("mcp-1")));
    let limits = Default::default();
    world.rules.principal_ceiling = Some(PrincipalCeiling { max_calls: Some(9), limits, window: None });
    assert_eq!(world.denied(&read().by(legacy("mcp-1"))), Reason::NoPrincipal);
}

/// The agent that Alice's token is given to.
fn alices_agent() -> AgentSubject {
    AgentSubject {
        agent_id: "did:example:unknown".into(),
        issuer: "https://as.example".into(),
        subject: "alice".into(),
    }
}

/// An agent without a key, which Alice's token is given to.
fn known_by_token() -> World {
    let mut world = world();
    world.rules.keyring = std::mem::take(&mut world.rules.keyring).with_subjects(vec![alices_agent()]);
    world
}

#[test]
fn an_agent_that_is_known_by_a_token_is_named_by_that_token_and_no_other() {
    let mut world = known_by_token();
    for other in [mallory(), legacy("mcp-1"), Caller { token: mallory().token, ..legacy("mcp-1") }] {
        assert_eq!(world.commit(&other, &unknown(calls())).reason, Some(Reason::TokenNotOfAgent));
        assert_eq!(named(&world).1, "asserted");
    }
    let another_name = world.commit(&alice(), &commitment(calls()));
    assert_eq!(another_name.reason, Some(Reason::TokenNotOfAgent), "the token is another agent's");
    assert_eq!(world.commit(&alice(), &unknown(calls())).reason, None);
    assert_eq!(named(&world), ("did:example:unknown".to_owned(), "token".to_owned()));
    world.served(&read());
    assert_eq!(named(&world), ("did:example:unknown".to_owned(), "token".to_owned()));
}

#[test]
fn a_rule_sees_the_agent_that_a_token_belongs_to_with_vap_and_without() {
    let mut world = known_by_token();
    world.rules.posture = Posture::Restricted;
    world.rules.restricted = vec![Pattern::new("*").unwrap()];
    let allow = "input.principal.agent_id == \"did:example:unknown\"; input.principal.proven_by == \"token\"";
    world.rules.policy = vec![
        PolicyRule::new("known", None, Some(allow), Then::Allow).unwrap(),
        PolicyRule::new("rest", None, None, Then::Deny).unwrap(),
    ];
    assert!(world.ruled(&read().without_vap()).is_admitted());
    assert_eq!(named(&world), ("did:example:unknown".to_owned(), "token".to_owned()));
    assert_eq!(world.denied(&read().without_vap().by(mallory())).as_str(), "policy:rest");
    assert_eq!(world.commit(&alice(), &unknown(calls())).reason, None);
    world.served(&read());
}

#[test]
fn a_session_whose_token_is_not_assigned_to_its_agent_any_more_is_denied() {
    let mut world = known_by_token();
    assert_eq!(world.commit(&alice(), &unknown(calls())).reason, None);
    world.served(&read());
    world.rules.keyring = world.rules.keyring.clone().with_subjects(Vec::new());
    assert_eq!(world.denied(&read()), Reason::TokenNotOfAgent);
}

#[test]
fn a_session_that_began_before_its_agent_was_known_by_a_token_needs_that_token() {
    let mut world = world();
    assert_eq!(world.commit(&mallory(), &unknown(calls())).reason, None);
    world.served(&read().by(mallory()));
    world.rules.keyring = known_by_token().rules.keyring;
    assert_eq!(world.denied(&read().by(mallory())), Reason::TokenNotOfAgent);
}
