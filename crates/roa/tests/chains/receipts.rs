//! Execution receipts that a gateway writes: each is read again as it was written, by the reader and by the schema.

use roa::aer::{
    CalledTool, DecidedCall, ExecutionReceipt, Mode, Outcome, SignReceiptError, SignedReceipt, input_hash,
};
use roa::chain::Chain;
use roa::denial::{Denial, DenialReason, Dimension, RevocationPosition};
use roa::limits::MAX_RECORDED_TOOL;
use roa::signed::Signed;
use roa::text::Sha256Digest;
use schemars::SchemaGenerator;
use scitt::{Signer, SigningKey};
use serde_json::{Value, json};

use crate::world::*;

/// Signs a receipt, and returns it after it was read again.
fn signed_and_read(receipt: &ExecutionReceipt) -> Value {
    let signed = receipt.sign("gateway-1", &key("gateway-1")).unwrap();
    let read = SignedReceipt::parse(signed.bytes()).unwrap();
    assert_eq!(read, signed);
    assert_eq!(read.receipt(), receipt);
    let key = key("gateway-1").public_key().clone();
    read.verify(|signer| (signer == "gateway-1").then_some(&key).into_iter().collect()).unwrap();
    let schema = SchemaGenerator::default().into_root_schema_for::<SignedReceipt>().to_value();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(read.document()), "{}", read.document());
    read.document().clone()
}

#[test]
fn a_permit_names_the_session_of_the_root_and_the_holder() {
    let chain = chain_of(2);
    let receipt = ExecutionReceipt::permit(decided_call("read"), &verify(&chain).unwrap());
    let json = signed_and_read(&receipt);
    assert_eq!(json["session"], json!({ "session_id": "sess:1", "agent_id": AGENTS[2] }), "R-35");
    assert_eq!(
        json["chain_summary"],
        json!({
            "chain_depth": 2, "root_envelope_id": "env:4a7c9f2b1e8d3a6f", "chain_digest": chain.digest().to_string(),
        })
    );
    assert_eq!(json["policy"], json!({ "policy_id": "incidents", "policy_digest": policy_digest("v2") }));
    assert_eq!(json["action"]["capability"], "mcp:github.read");
    assert_eq!(
        json["action"]["input_hash"],
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "R-34: a call without arguments"
    );
}

#[test]
fn r_17_a_denial_states_reason_code_hop_and_dimension() {
    let chain = chain_of(1);
    let denial =
        Denial::new(DenialReason::ScopeExpansionViolation, "capabilities", "a text that is not recorded")
            .at_hop(1)
            .on(Dimension::Capabilities);
    for receipt in [
        ExecutionReceipt::denial(decided_call("read"), &chain, &denial),
        ExecutionReceipt::denial(decided_call("read"), &verify(&chain).unwrap(), &denial),
    ] {
        let json = signed_and_read(&receipt);
        assert_eq!(json["denial_reason"], "scope_expansion_violation");
        assert_eq!(
            json["denial_detail"],
            json!({ "code": "capabilities", "hop": 1, "dimension": "capabilities" })
        );
        assert!(!json.to_string().contains("not recorded"));
    }
}

#[test]
fn a_revocation_is_stated_with_its_position() {
    let position = RevocationPosition { epoch: 2, sequence: 7 };
    let denial = Denial {
        revocation: Some(position),
        ..Denial::new(DenialReason::EnvelopeRevoked, "revoked", "revoked").at_hop(0)
    };
    let json = signed_and_read(&ExecutionReceipt::denial(decided_call("read"), &chain_of(0), &denial));
    assert_eq!(json["revocation"], json!({ "epoch": 2, "sequence": 7 }));
}

#[test]
fn r_8_a_call_without_a_root_has_all_placeholders() {
    let malformed = Chain::parse(b"[]").unwrap_err();
    for (denial, code) in [(Denial::no_envelope(), "no_envelope"), (malformed, "malformed")] {
        let receipt = ExecutionReceipt::denial_without_root(decided_call("read"), &denial);
        let json = signed_and_read(&receipt);
        assert_eq!(json["denial_reason"], "chain_integrity_violation");
        assert_eq!(json["denial_detail"]["code"], code);
        assert_eq!(json["session"]["session_id"], "none");
        assert_eq!(receipt.chain, None);
    }
}

#[test]
fn r_8_no_envelope_and_no_attestation_uses_a_placeholder() {
    for (pointer, value) in [
        ("/envelope_id", "env:0000000000000000"),
        ("/session/session_id", "none"),
        ("/session/agent_id", "aha:unknown/unknown/unknown"),
        ("/policy/policy_id", "none"),
    ] {
        let mut members = root_members();
        *members.pointer_mut(pointer).unwrap() = value.into();
        let key: SigningKey = key("acme:authorizer:1");
        let signers: [(&str, &dyn Signer); 1] = [("acme:authorizer:1", &key)];
        assert!(Signed::<roa::envelope::Envelope>::sign(&members, &signers).is_err(), "{pointer}");
    }
    let mut members = hop_members(&chain_of(0));
    members["delegated_agent"]["agent_id"] = "aha:unknown/unknown/unknown".into();
    let key: SigningKey = key(AGENTS[0]);
    let signers: [(&str, &dyn Signer); 1] = [(AGENTS[0], &key)];
    assert!(Signed::<roa::attestation::Attestation>::sign(&members, &signers).is_err());
}

#[test]
fn a_denied_call_is_recorded_whatever_its_tool_is_called() {
    for tool in ["", "a\nb", "…", &"x".repeat(MAX_RECORDED_TOOL), &"\u{0}".repeat(100_000)] {
        let denial = Denial::new(DenialReason::CapabilityNotInScope, "capability", "not in scope");
        let receipt = ExecutionReceipt::denial(decided_call(tool), &chain_of(0), &denial);
        let json = signed_and_read(&receipt);
        let recorded = json["action"]["mcp_tool_name"].as_str().unwrap();
        assert!(recorded == tool || recorded.ends_with('…'), "{recorded}");
    }
    assert!(CalledTool::new("git.hub".parse().unwrap(), "read", input_hash(None)).is_err());
}

#[test]
fn r_29_degraded_operation_is_marked() {
    let chain = verify(&chain_of(0)).unwrap();
    for reason in [None, Some("registry_stale".parse().unwrap())] {
        let mode = Mode::Degraded { reason };
        let receipt = ExecutionReceipt::permit(DecidedCall { mode, ..decided_call("read") }, &chain);
        assert_eq!(signed_and_read(&receipt)["enforcement_mode"], "degraded");
    }
}

#[test]
fn a_receipt_that_no_log_would_admit_is_not_signed() {
    let chain = verify(&chain_of(0)).unwrap();
    let receipt = ExecutionReceipt::permit(decided_call(""), &chain);
    let error = receipt.sign("gateway-1", &key("gateway-1")).unwrap_err();
    assert!(matches!(&error, SignReceiptError::Rule(broken) if broken.rule == "aer-text"), "{error}");
    assert_eq!(receipt.outcome, Outcome::Permit);
}

#[test]
fn a_receipt_of_a_fraction_of_a_second_before_1970_breaks_the_rule_of_its_time() {
    let receipt = |time_of_decision: &str| {
        let call = DecidedCall { produced_at: time(time_of_decision), ..decided_call("read") };
        ExecutionReceipt::permit(call, &verify(&chain_of(0)).unwrap()).sign("gateway-1", &key("gateway-1"))
    };
    assert!(receipt("1970-01-01T00:00:00Z").is_ok());
    assert!(matches!(receipt("1969-12-31T23:59:59.5Z"), Err(SignReceiptError::Rule(_))));
}

#[test]
fn r_34_arguments_with_a_number_that_a_double_does_not_represent_are_hashed_as_written() {
    let hash = |text: &str| input_hash(Some(jose::json::check_text(text).unwrap()));
    assert_eq!(hash("{ \"b\": 1.0, \"a\": 2 }"), Sha256Digest::of(b"{\"a\":2,\"b\":1}"));
    let large = "{\"id\": 9007199254740993}";
    assert_eq!(hash(&format!(" {large}\n")), Sha256Digest::of(large.as_bytes()));
    assert_ne!(hash(large), hash("{\"id\": 9007199254740992}"));
}
