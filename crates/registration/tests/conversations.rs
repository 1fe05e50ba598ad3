//! Conversation records from the outside: what is told of them, what stands beside them, and what a policy may choose.

#![allow(clippy::unwrap_used)]

use data_encoding::HEXLOWER;
use lookup_tree::BlindCode;
use lookup_tree::limits::MAX_TERMS;
use registration::conversation::{AGENT_CONVERSATION, ConversationRecord, Form, SessionId};
use registration::{
    Answers, LookupKind, NotPermitted, PayloadHash, Permit, Policy, PolicyInForce, Record, SearchValues,
    SideData, Violation, entry_facts,
};
use scitt::header::HashEnvelope;
use scitt::{SignedStatement, Signer, StatementBuilder, cbor};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use testkit::{
    conversation, conversation_builder, conversation_json, conversation_of, json_as_cbor, recorder,
};

fn decide(
    statement: &SignedStatement,
    beside: SideData<'_>,
    policy: &str,
) -> Result<(Record, Permit), Violation> {
    let in_force = PolicyInForce::new(Policy::from_toml(policy).unwrap(), merkle::LeafIndex::new(0));
    let authenticated = in_force.authenticate(statement, beside).map_err(|error| error.violation())?;
    let record = Record::read(&authenticated)?;
    match in_force.decide(&authenticated, &record, &Answers::none()).into_permit() {
        Ok(permit) => Ok((record, permit)),
        Err(NotPermitted::Refused(refusal)) => Err(refusal.violation),
        Err(NotPermitted::Undecided(undecided)) => panic!("{undecided}"),
    }
}

fn admitted(statement: &SignedStatement) -> (Record, Value) {
    let (record, permit) = decide(statement, SideData::default(), &testkit::policy_toml()).unwrap();
    (record, entry_facts(statement, permit.facts()).into())
}

fn signed(record: &Value) -> SignedStatement {
    conversation_of(record.to_string().into_bytes(), "session-0").sign(&recorder()).unwrap()
}

#[test]
fn rules_are_asked_in_the_order_of_the_registration_policy() {
    let mut record = conversation_json(0);
    record["file-attribution"] = json!({ "files": [{ "path": "/absolute", "conversations": [] }] });
    let refusal = |record: &Value, metadata: Value| {
        let statement = conversation_of(record.to_string().into_bytes(), "session-0")
            .unprotected(100, json_as_cbor(&metadata))
            .encode(&recorder())
            .unwrap();
        let statement = SignedStatement::parse(statement).unwrap();
        decide(&statement, SideData::default(), &testkit::policy_toml()).unwrap_err().rule.as_str().to_owned()
    };
    let trace = json!({ "session-id": "session-0", "agent-vendor": "provider", "trace-format": "ietf-vac-v3.0", "timestamp-start": "2026-02-01T12:00:00Z" });
    assert_eq!(refusal(&record, trace), "conversation-attribution-path");
    assert_eq!(refusal(&record, json!({})), "conversation-trace-metadata");
    record["file-attribution"]["extra"] = json!(1);
    assert_eq!(refusal(&record, json!({})), "conversation-closed-map");
    record["session"]["entries"] = json!(null);
    assert_eq!(refusal(&record, json!({})), "conversation-type");
}

#[test]
fn what_is_odd_is_a_warning_and_no_refusal() {
    let mut record = conversation_json(0);
    record["created"] = json!("2026-02-30T00:00:00Z");
    record["session"]["session-id"] = json!("another");
    record["session"]["session-end"] = json!("2026-01-01T00:00:00Z");
    record["session"]["entries"][1]["parent-id"] = json!("nobody");
    record["session"]["entries"][2]["call-id"] = json!("no-call");
    let (_, facts) = admitted(&signed(&record));
    let expected = [
        "subject-is-not-session at /session/session-id",
        "end-before-start at /session/session-end",
        "no-such-time at /created",
        "unknown-parent at /session/entries/1/parent-id",
        "result-without-call at /session/entries/2",
    ];
    assert_eq!((&facts["warnings"], &facts["warnings_total"]), (&json!(expected), &json!(5)));
    assert_eq!(admitted(&conversation(0, Form::Json)).1.get("warnings"), None);
}

#[test]
fn credentials_in_the_address_of_a_repository_are_a_warning() {
    let warnings = |repository: &str| {
        let mut record = conversation_json(0);
        record["vcs"] = json!({ "type": "git", "repository": repository });
        record["session"]["environment"] =
            json!({ "working-dir": "/work", "vcs": { "type": "git", "repository": repository } });
        admitted(&signed(&record)).1["warnings"].clone()
    };
    let expected = json!([
        "credentials-in-url at /vcs/repository",
        "credentials-in-url at /session/environment/vcs/repository"
    ]);
    assert_eq!(warnings("https://x-access-token:ghs_0123@github.example/a/b"), expected);
    assert_eq!(warnings("https://ghp_0123@github.example/a/b.git"), expected);
    for sound in
        ["https://github.example/a/b@2", "ssh://git@github.example/a/b", "git@github.example:a/b.git"]
    {
        assert_eq!(warnings(sound), Value::Null, "{sound}");
    }
}

#[test]
fn the_facts_of_both_forms_say_the_same() {
    let (_, json) = admitted(&conversation(3, Form::Json));
    let (_, mut cbor) = admitted(&conversation(3, Form::Cbor));
    assert_eq!((&json["form"], &cbor["form"]), (&json!("json"), &json!("cbor")));
    assert_eq!(json["session"], "session-3");
    assert_eq!(
        json["entries"],
        json!({
            "assistant": 2, "reasoning": 1, "system_event": 1, "tool_call": 1, "tool_result": 1, "total": 7, "user": 1
        })
    );
    assert_eq!(
        (&json["tools"], &json["agent"], &json["model"]),
        (&json!(["Bash"]), &json!("agent-cli"), &json!("model-1"))
    );
    for own in ["form", "content_digest"] {
        cbor[own] = json[own].clone();
    }
    assert_eq!(json, cbor);
}

fn digest(bytes: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(bytes)))
}

#[test]
fn a_record_is_found_by_its_session_tools_calls_and_digests() {
    for form in [Form::Json, Form::Cbor] {
        let statement = conversation(5, form);
        let payload = statement.payload().unwrap();
        admitted(&statement);
        let all = SearchValues::read(statement.header(), Some(payload)).lookups;
        let of = |kind| {
            all.iter().filter(|found| found.kind == kind).map(|found| found.value.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(LookupKind::Session), ["session-5"]);
        assert_eq!(of(LookupKind::Tool), ["Bash"]);
        assert_eq!(of(LookupKind::CallId), ["call-5"]);
        assert_eq!(of(LookupKind::Agent), ["agent-cli", "model-1"]);
        let digests = of(LookupKind::Digest);
        let input = digest(br#"{"command":"cargo test","timeout":60}"#);
        for expected in [input, digest(b"5 passed"), digest(payload)] {
            assert!(digests.contains(&expected), "{expected} in {digests:?}");
        }
        let dropped = SearchValues::read(statement.header(), None);
        assert!(dropped.lookups.iter().any(|found| found.kind == LookupKind::Subject));
        assert!(dropped.lookups.iter().all(|found| found.kind != LookupKind::CallId));
        assert_eq!(dropped.blind, [BlindCode::Unreadable]);
    }
}

#[test]
fn a_result_that_is_an_object_is_found_by_the_digest_of_its_canonical_json() {
    let mut record = conversation_json(0);
    let entries = record["session"]["entries"].as_array_mut().unwrap();
    entries
        .push(json!({ "type": "tool-result", "call-id": "other", "output": { "b": [1, true], "a": null } }));
    for payload in [record.to_string().into_bytes(), json_as_cbor(&record).encode()] {
        let statement = conversation_of(payload, "session-0").sign(&recorder()).unwrap();
        admitted(&statement);
        let found = SearchValues::read(statement.header(), statement.payload()).lookups;
        let expected = digest(br#"{"a":null,"b":[1,true]}"#);
        assert!(
            found.iter().any(|found| found.kind == LookupKind::Digest && found.value == expected),
            "{found:?}"
        );
    }
}

#[test]
fn a_session_of_bytes_is_found_as_base64url() {
    let mut value = json_as_cbor(&conversation_json(0));
    let cbor::Value::Map(members) = &mut value else { panic!("a map") };
    let session = members.iter_mut().find(|(name, _)| name.value == "session".into()).unwrap();
    let cbor::Value::Map(members) = &mut session.1.value else { panic!("a map") };
    let id = members.iter_mut().find(|(name, _)| name.value == "session-id".into()).unwrap();
    id.1.value = vec![0xfb, 0xff].into();
    let statement = conversation_of(value.encode(), "b64u:-_8").sign(&recorder()).unwrap();
    let (record, facts) = admitted(&statement);
    assert_eq!((&facts["session"], facts.get("warnings")), (&json!("b64u:-_8"), None));
    let record = record.typed::<ConversationRecord>().expect("a conversation record");
    assert_eq!(record.session.id, SessionId::Bytes(vec![0xfb, 0xff]));
}

#[test]
fn an_expression_sees_every_tool_of_a_record() {
    let mut record = conversation_json(0);
    let call = |n: u32| json!({ "type": "tool-call", "name": format!("tool-{n}"), "input": null });
    record["session"]["entries"] = (0..100).map(call).collect();
    let (read, facts) = admitted(&signed(&record));
    assert_eq!(read.document()["tools"].as_array().unwrap().len(), 100);
    assert_eq!((facts["tools"].as_array().unwrap().len(), &facts["tools_total"]), (64, &json!(100)));
    assert_eq!(read.document()["tools"][0], json!({ "name": "tool-0", "calls": 1 }));
    assert_eq!(read.document()["session"]["id"], "session-0");
}

#[test]
fn more_calls_than_are_indexed_are_told() {
    let mut record = conversation_json(0);
    let call = |n: u32| json!({ "type": "tool-call", "name": "t", "call-id": n.to_string(), "input": n });
    record["session"]["entries"] = (0..3000).map(call).collect();
    let statement = signed(&record);
    let (_, facts) = admitted(&statement);
    assert_eq!(facts["lookups_truncated"], true);
    let found = SearchValues::read(statement.header(), statement.payload());
    assert_eq!((found.lookups.len(), found.blind), (MAX_TERMS, vec![BlindCode::TooManyTerms]));
}

#[test]
fn trace_metadata_refuses_and_never_admits_and_is_not_stored() {
    let digest = |statement: &SignedStatement| HEXLOWER.encode(&Sha256::digest(statement.payload().unwrap()));
    let plain = conversation(0, Form::Json);
    let trace = |hash: String| {
        json_as_cbor(
            &json!({ "session-id": "session-0", "agent-vendor": "provider", "trace-format": "ietf-vac-v3.0",
            "timestamp-start": "2026-02-01T12:00:00Z", "content-hash": hash }),
        )
    };
    let with = |hash: String| {
        let bytes =
            conversation_builder(0, Form::Json).unprotected(100, trace(hash)).encode(&recorder()).unwrap();
        SignedStatement::parse(bytes).unwrap()
    };
    let good = with(digest(&plain));
    assert!(good.unprotected(100).is_some());
    assert_eq!(good.bytes(), plain.bytes(), "what is stored is the same with and without");
    assert_eq!(
        admitted(&good).1,
        admitted(&plain).1,
        "and so is the decision, when it is made again from the log"
    );
    let bad = decide(&with("00".repeat(32)), SideData::default(), &testkit::policy_toml()).unwrap_err();
    assert_eq!(bad.place.to_string(), "unprotected/100/content-hash");
    assert_eq!(bad.rule.as_str(), "conversation-trace-content-hash");
}

#[test]
fn a_payload_may_come_beside_the_statement_and_its_facts_are_stored() {
    let payload = conversation_json(0).to_string().into_bytes();
    let statement = conversation_builder(0, Form::Json).detached().sign(&recorder()).unwrap();
    let beside = SideData { payload: Some(&payload), ..SideData::default() };
    let (_, permit) = decide(&statement, beside, &testkit::policy_toml()).unwrap();
    let attached = admitted(&conversation(0, Form::Json)).1;
    assert_eq!(
        serde_json::from_str::<Value>(permit.facts()).unwrap()["content_digest"],
        attached["content_digest"]
    );
}

#[test]
fn a_record_may_be_registered_by_its_hash() {
    let redacted = |content_type: &str| {
        let iss = recorder().public_key().did_key();
        let builder =
            StatementBuilder::new(Sha256::digest(b"a record").to_vec()).hash_envelope(&HashEnvelope {
                algorithm: -16,
                preimage_content_type: Some(content_type.into()),
                location: None,
            });
        builder.kid(iss.as_bytes()).iss(&iss).sub("session-0").sign(&recorder()).unwrap()
    };
    let (record, _) =
        decide(&redacted(AGENT_CONVERSATION), SideData::default(), &testkit::policy_toml()).unwrap();
    assert!(record.typed::<PayloadHash>().is_some());
    let refusal = decide(&redacted("application/json"), SideData::default(), &taking_json()).unwrap_err();
    assert_eq!(refusal.rule.as_str(), "conversation-form", "{refusal}");
}

#[test]
fn trace_metadata_beside_a_hash_envelope_may_only_repeat_its_digest() {
    let digest = Sha256::digest(b"a record").to_vec();
    let with = |hash: &[u8], algorithm: &str| {
        let metadata = json!({ "session-id": "session-0", "agent-vendor": "provider", "trace-format": "ietf-vac-v3.0",
            "timestamp-start": "2026-02-01T12:00:00Z", "content-hash": HEXLOWER.encode(hash), "content-hash-alg": algorithm });
        let iss = recorder().public_key().did_key();
        let envelope = HashEnvelope {
            algorithm: -16,
            preimage_content_type: Some(AGENT_CONVERSATION.into()),
            location: None,
        };
        let builder =
            StatementBuilder::new(digest.clone()).hash_envelope(&envelope).kid(iss.as_bytes()).iss(&iss);
        let bytes =
            builder.sub("session-0").unprotected(100, json_as_cbor(&metadata)).encode(&recorder()).unwrap();
        decide(&SignedStatement::parse(bytes).unwrap(), SideData::default(), &testkit::policy_toml())
            .map(|_| ())
    };
    with(&digest, "sha-256").unwrap();
    with(&Sha256::digest(&digest), "sha-256")
        .expect("the hash of the payload's bytes, as the document has it");
    for (hash, algorithm) in [(&[0; 32][..], "sha-256"), (&[0; 64], "sha-512"), (&digest, "blake3")] {
        let refusal = with(hash, algorithm).unwrap_err();
        assert_eq!(refusal.rule.as_str(), "conversation-trace-content-hash", "{algorithm}");
    }
}

/// The tests' policy, whose plain JSON is conversation records.
fn taking_json() -> String {
    let mut document: toml::Table = toml::from_str(&testkit::policy_toml()).unwrap();
    let types = document["type"].as_array_mut().unwrap();
    types.retain(|rule| rule["content_type"].as_str() != Some("application/json"));
    let ours =
        types.iter_mut().find(|rule| rule["content_type"].as_str() == Some(AGENT_CONVERSATION)).unwrap();
    let options = toml::Table::from_iter([("accept_application_json".to_owned(), true.into())]);
    ours.as_table_mut().unwrap().insert("conversation".to_owned(), options.into());
    document.to_string()
}

#[test]
fn a_record_under_application_json_is_taken_where_the_policy_says_so_and_only_if_it_is_one() {
    let as_json = |record: &Value| {
        let builder =
            conversation_of(record.to_string().into_bytes(), "session-0").content_type("application/json");
        builder.sign(&recorder()).unwrap()
    };
    let statement = as_json(&conversation_json(0));
    let (_, permit) = decide(&statement, SideData::default(), &taking_json()).unwrap();
    assert_eq!(serde_json::from_str::<Value>(permit.facts()).unwrap()["session"], "session-0");
    assert_eq!(permit.rule().as_str(), AGENT_CONVERSATION);
    let lookups = SearchValues::read(statement.header(), statement.payload()).lookups;
    assert!(lookups.iter().any(|found| found.kind == LookupKind::Session && found.value == "session-0"));
    let refusal = decide(&as_json(&json!({ "a": 1 })), SideData::default(), &taking_json()).unwrap_err();
    assert_eq!(refusal.rule.as_str(), "conversation-member");
}

#[test]
fn a_policy_that_reads_plain_json_in_two_ways_is_mistaken() {
    let twice = taking_json() + "\n[[type]]\ncontent_type = \"application/json\"\n";
    let mistakes = Policy::from_toml(&twice).unwrap_err().to_string();
    assert!(mistakes.contains("accept_application_json"), "{mistakes}");
    let taken = taking_json().replace("accept_application_json = true", "trace_metadata_label = 394");
    assert!(Policy::from_toml(&taken).unwrap_err().to_string().contains("394"));
}
