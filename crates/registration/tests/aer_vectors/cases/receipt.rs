//! What a receipt says: when, what was decided and why, of which call.

use registration::aer::{AerRule, DENIAL_REASONS, NO_POLICY, NO_POLICY_DIGEST, NO_SESSION, UNKNOWN_AGENT};
use serde_json::{Value, json};
use testkit::{denied_aer_json, ed25519, rootless_aer_json};

use super::{breaks, keeps, options_with, plain, remove, set, set_in};
use crate::Case;
use crate::draft::Draft;

pub fn identity() -> Vec<Case> {
    use AerRule::{AgentId, Id, IdUnique, ProducedAt, ProducedAtFuture, RootEnvelope};
    let agent = |agent: &str| set_in("session", "agent_id", json!(agent));
    let time = |time: &str| set("produced_at", json!(time));
    let root = |root: &str| set_in("chain_summary", "root_envelope_id", json!(root));
    let others = ed25519([7; 32]);
    vec![
        keeps(Id, "sixteen-digits", "aer: and 16 hex digits", plain()),
        breaks(
            Id,
            "thirty-two-digits",
            "16 random bytes, as the text could also be read",
            set("aer_id", json!(format!("aer:{}", "a".repeat(32)))),
        ),
        breaks(Id, "upper-case", "hex digits are lower case", set("aer_id", json!("aer:2F5A8C1D4E7B0F3A"))),
        breaks(Id, "no-prefix", "the prefix is missing", set("aer_id", json!("2f5a8c1d4e7b0f3a"))),
        keeps(IdUnique, "another-gateway-s", "another gateway used this aer_id", {
            let did = scitt::Signer::public_key(&others).did_key();
            let mut receipt = testkit::aer_json(0);
            receipt["border_gateway"]["gateway_id"] = json!(did);
            let signature = registration::aer::inner_signature(&receipt, &others).unwrap();
            receipt["signatures"] = json!([signature]);
            Draft::of(receipt).by(others)
        })
        .under(options_with("did_key_gateways", json!(true)))
        .after(plain()),
        breaks(
            IdUnique,
            "second-use",
            "permit and deny under one aer_id",
            Draft::of(denied_aer_json(0, "replay_detected")),
        )
        .after(plain()),
        breaks(
            IdUnique,
            "first-by-its-hash",
            "a permit by its hash, and then a denial in clear",
            Draft::of(denied_aer_json(0, "replay_detected")),
        )
        .after(plain().redacted()),
        breaks(IdUnique, "then-by-its-hash", "the same the other way round", plain().redacted())
            .after(Draft::of(denied_aer_json(0, "replay_detected"))),
        keeps(
            IdUnique,
            "another-by-its-hash",
            "a hash that says it is another receipt's",
            plain().redacted(),
        )
        .after(Draft::changed(|receipt| receipt["aer_id"] = json!("aer:2f5a8c1d4e7b0f3a"))),
        keeps(ProducedAt, "fraction", "a fraction of a second", time("2026-01-01T00:00:00.123Z")),
        breaks(ProducedAt, "no-zone", "a time without a zone", time("2026-01-01T00:00:00")),
        keeps(ProducedAt, "numeric-offset", "UTC, as a number", time("2026-01-01T00:00:00+00:00")),
        breaks(
            ProducedAt,
            "no-offset-known",
            "-00:00 says that it is not known",
            time("2026-01-01T00:00:00-00:00"),
        ),
        breaks(ProducedAt, "another-zone", "not UTC", time("2026-01-01T01:00:00+01:00")),
        breaks(ProducedAt, "no-such-day", "2026 has no 29 February", time("2026-02-29T00:00:00Z")),
        breaks(ProducedAt, "week-date", "ISO 8601 has more forms than one", time("2026-W01-4T00:00:00Z")),
        keeps(ProducedAtFuture, "five-minutes-ahead", "clocks differ", plain()).at(1_767_225_600 - 300),
        breaks(
            ProducedAtFuture,
            "further-ahead",
            "the log's time is 301 seconds before produced_at",
            plain(),
        )
        .at(1_767_225_600 - 301),
        keeps(
            AgentId,
            "three-segments",
            "organisation, unit and agent",
            agent("aha:acme-corp/operations/devops_1"),
        ),
        breaks(AgentId, "did", "a DID is no agent of AgentROA", agent("did:web:agent.example")),
        breaks(AgentId, "two-segments", "the unit is missing", agent("aha:acme/coder")),
        breaks(AgentId, "four-segments", "one segment too many", agent("aha:acme/a/b/c")),
        breaks(AgentId, "empty-segment", "a segment is not empty", agent("aha:acme//coder")),
        breaks(AgentId, "dot", "only letters, digits, - and _", agent("aha:acme.example/a/b")),
        keeps(RootEnvelope, "sixteen-digits", "env: and 16 hex digits", plain()),
        breaks(RootEnvelope, "upper-case", "hex digits are lower case", root("env:4A7C9F2B1E8D3A6F")),
        breaks(RootEnvelope, "delegation", "a delegation is no root", root("ara:9c4e1f8a2b7d3e0f")),
    ]
}

pub fn decision() -> Vec<Case> {
    use AerRule::{Denial, DenialReason, Outcome, Revocation};
    let deny = |reason: &str| denied_aer_json(0, reason);
    let with = |mut receipt: Value, name: &str, value: Value| {
        receipt[name] = value;
        Draft::of(receipt)
    };
    let revocation = json!({ "epoch": 1, "sequence": 7 });
    let reasons = DENIAL_REASONS.map(|reason| {
        keeps(DenialReason, reason, "one of the twelve of section 6.1", Draft::of(deny(reason)))
    });
    let mut cases = vec![
        keeps(Outcome, "permit", "a call that went on", plain()),
        keeps(Outcome, "deny", "a call that did not", Draft::of(deny("capability_not_in_scope"))),
        breaks(Outcome, "allow", "the word of other documents", set("enforcement_outcome", json!("allow"))),
        breaks(
            Outcome,
            "upper-case",
            "the words are lower case",
            set("enforcement_outcome", json!("PERMIT")),
        ),
        keeps(
            Denial,
            "with-detail",
            "a hop and a dimension beside the reason",
            with(
                deny("budget_expansion_denied"),
                "denial_detail",
                json!({ "code": "budget", "hop": 2, "dimension": "usd" }),
            ),
        ),
        breaks(
            Denial,
            "permit-with-reason",
            "a permit has no reason to deny",
            set("denial_reason", json!("replay_detected")),
        ),
        breaks(
            Denial,
            "permit-with-detail",
            "nor a detail of one",
            set("denial_detail", json!({ "code": "budget" })),
        ),
        breaks(Denial, "deny-without-reason", "a denial says why", set("enforcement_outcome", json!("deny"))),
        breaks(
            DenialReason,
            "with-hop",
            "the hop stands in denial_detail, not in the reason",
            Draft::of(deny("SCOPE_EXPANSION_DENIED_HOP_2")),
        ),
        breaks(
            DenialReason,
            "text-s-name",
            "the spelling of section 4.3",
            Draft::of(deny("scope_expansion_denied")),
        ),
        breaks(
            DenialReason,
            "of-our-own",
            "a code of ours stands in denial_detail",
            Draft::of(deny("registry_unavailable")),
        ),
        keeps(
            Revocation,
            "revoked",
            "which revocation denied it",
            with(deny("envelope_revoked"), "revocation", revocation.clone()),
        ),
        breaks(Revocation, "permit", "nothing was revoked", set("revocation", revocation.clone())),
        breaks(
            Revocation,
            "another-reason",
            "an expired envelope is not a revoked one",
            with(deny("envelope_expired"), "revocation", revocation),
        ),
    ];
    cases.extend(reasons);
    cases
}

pub fn degraded() -> Vec<Case> {
    use AerRule::{Degraded, DegradedReason, Mode};
    let degraded = |reason: &str| {
        Draft::changed(|receipt| {
            receipt["enforcement_mode"] = json!("degraded");
            receipt["degraded_reason"] = json!(reason);
        })
    };
    let denied = || {
        let mut receipt = denied_aer_json(0, "invalid_signature");
        receipt["enforcement_mode"] = json!("degraded");
        receipt["degraded_reason"] = json!("registry_unreachable");
        Draft::of(receipt)
    };
    let denied_without_reason = || {
        let mut receipt = denied_aer_json(0, "invalid_signature");
        receipt["enforcement_mode"] = json!("degraded");
        Draft::of(receipt)
    };
    let allowed = || options_with("allow_degraded", json!(true));
    vec![
        keeps(Mode, "normal", "always there, though the example leaves it out", plain()),
        keeps(Mode, "degraded", "decided against cached material", degraded("registry_unreachable"))
            .under(allowed()),
        breaks(Mode, "absent", "as in the example of Appendix B", remove("enforcement_mode")),
        breaks(Mode, "unknown", "no such mode", set("enforcement_mode", json!("fail_open"))),
        keeps(
            Degraded,
            "by-policy",
            "a degraded permit, where the policy says so",
            degraded("registry_unreachable"),
        )
        .under(allowed()),
        keeps(Degraded, "denial", "a denial failed closed: there is nothing to allow", denied()),
        keeps(Degraded, "denial-by-policy", "nor is anything lost by allowing it", denied()).under(allowed()),
        breaks(
            Degraded,
            "not-by-policy",
            "a degraded permit, where the policy does not say so",
            degraded("registry_unreachable"),
        ),
        keeps(DegradedReason, "stale-cache", "why it was degraded", degraded("revocation_cache_stale"))
            .under(allowed()),
        keeps(
            DegradedReason,
            "absent",
            "a degraded decision should say why, and need not (section 8.4.3 c)",
            set("enforcement_mode", json!("degraded")),
        )
        .under(allowed()),
        keeps(DegradedReason, "absent-denial", "nor need a denial", denied_without_reason()),
        breaks(
            DegradedReason,
            "absent-by-policy",
            "a degraded decision says why, where the policy asks for it",
            denied_without_reason(),
        )
        .under(options_with("require_degraded_reason", json!(true))),
        breaks(
            DegradedReason,
            "normal",
            "normal operation has no such reason",
            set("degraded_reason", json!("registry_unreachable")),
        ),
    ]
}

pub fn action() -> Vec<Case> {
    use AerRule::{Capability, CapabilityAgrees, Digest, ServerId, Text};
    let named = |capability: &str, server: &str, tool: &str| {
        let action = json!({ "capability": capability, "mcp_server_id": server, "mcp_tool_name": tool });
        Draft::changed(|receipt| {
            for (name, value) in action.as_object().unwrap() {
                receipt["action"][name] = value.clone();
            }
        })
    };
    let denied = |capability: &str, tool: &str| {
        let mut receipt = denied_aer_json(0, "capability_not_in_scope");
        receipt["action"]["capability"] = json!(capability);
        receipt["action"]["mcp_tool_name"] = json!(tool);
        Draft::of(receipt)
    };
    let asked = |tool: &str| denied(&format!("mcp:github.{tool}"), tool);
    let input = |digest: &str| set_in("action", "input_hash", json!(digest));
    let digits = |count: usize| "f1".repeat(count / 2);
    vec![
        keeps(
            ServerId,
            "no-dot",
            "a server's name without a dot",
            named("mcp:github-enterprise.get", "github-enterprise", "get"),
        ),
        breaks(
            ServerId,
            "dot",
            "mcp:github.* would match this server too",
            named("mcp:github.enterprise.get", "github.enterprise", "get"),
        ),
        keeps(
            Capability,
            "tool-with-dots",
            "split at the first dot: tools may have them",
            named("mcp:github.repos.get", "github", "repos.get"),
        ),
        breaks(
            Capability,
            "no-scheme",
            "mcp: is missing",
            set_in("action", "capability", json!("github.get_pull_request")),
        ),
        breaks(Capability, "no-tool", "a server alone", set_in("action", "capability", json!("mcp:github"))),
        breaks(
            Capability,
            "empty-tool",
            "a server and nothing",
            set_in("action", "capability", json!("mcp:github.")),
        ),
        keeps(
            Capability,
            "denied-empty-tool",
            "who asks for a tool without a name is denied, and that is told",
            asked(""),
        ),
        breaks(
            Capability,
            "denied-no-server",
            "the server is the gateway's, not the caller's",
            denied("mcp:", ""),
        ),
        keeps(
            Text,
            "denied-257-characters",
            "a denied call may have asked for anything",
            asked(&"é".repeat(257)),
        ),
        keeps(
            Text,
            "denied-control-character",
            "a name that could forge a line, told as it was asked",
            asked("get\n\u{0}"),
        ),
        breaks(
            Text,
            "permit-257-characters",
            "what is permitted has a name",
            named(&format!("mcp:github.{}", "é".repeat(257)), "github", &"é".repeat(257)),
        ),
        breaks(
            Text,
            "permit-control-character",
            "and one that can be shown",
            named("mcp:github.get\n", "github", "get\n"),
        ),
        breaks(
            CapabilityAgrees,
            "denied-another-tool",
            "a denial tells one tool, not two",
            denied("mcp:github.get", ""),
        ),
        keeps(CapabilityAgrees, "same", "server and tool are those of the capability", plain()),
        breaks(
            CapabilityAgrees,
            "another-tool",
            "the capability that was authorised is not the tool that was called",
            set_in("action", "mcp_tool_name", json!("delete_repository")),
        ),
        breaks(
            CapabilityAgrees,
            "another-server",
            "the same tool of another server",
            set_in("action", "mcp_server_id", json!("gitlab")),
        ),
        breaks(
            CapabilityAgrees,
            "another-case",
            "names are compared byte for byte",
            set_in("action", "capability", json!("mcp:GitHub.get_pull_request")),
        ),
        keeps(
            Digest,
            "sixty-four-digits",
            "sha256: and 64 hex digits",
            input(&format!("sha256:{}", digits(64))),
        ),
        breaks(
            Digest,
            "fifty-six-digits",
            "28 bytes, as in every example of Appendix B",
            input(&format!("sha256:{}", digits(56))),
        ),
        breaks(
            Digest,
            "upper-case",
            "digits are lower case",
            input(&format!("sha256:{}", digits(64).to_uppercase())),
        ),
        breaks(Digest, "bare-hex", "the algorithm is missing", input(&digits(64))),
        breaks(
            Digest,
            "sha512",
            "one algorithm",
            set_in("chain_summary", "chain_digest", json!(format!("sha512:{}", digits(128)))),
        ),
        breaks(
            Digest,
            "policy",
            "the policy's digest has the same form",
            set_in("policy", "policy_digest", json!("4.2.1")),
        ),
        breaks(Digest, "plan", "and the plan's", set("plan_hash", json!("sha256:"))),
    ]
}

pub fn rootless() -> Vec<Case> {
    use AerRule::NoRoot;
    let changed = |change: fn(&mut Value)| {
        let mut receipt = rootless_aer_json(0);
        change(&mut receipt);
        Draft::of(receipt)
    };
    let plain = |_: &mut Value| {};
    vec![
        keeps(NoRoot, "no-envelope", "a call with no envelope is denied and has its receipt", changed(plain)),
        keeps(
            NoRoot,
            "malformed",
            "so has one whose envelope cannot be read",
            changed(|receipt| receipt["denial_detail"]["code"] = json!("malformed")),
        ),
        keeps(NoRoot, "malformed-hop", "a bad delegation under a good root is no such case", {
            let mut receipt = denied_aer_json(0, "chain_integrity_violation");
            receipt["denial_detail"] = json!({ "code": "malformed", "hop": 1 });
            Draft::of(receipt)
        }),
        breaks(
            NoRoot,
            "permit",
            "nothing permits a call without a root",
            changed(|receipt| {
                receipt["enforcement_outcome"] = json!("permit");
                let receipt = receipt.as_object_mut().unwrap();
                receipt.remove("denial_reason");
                receipt.remove("denial_detail");
            }),
        ),
        breaks(
            NoRoot,
            "another-reason",
            "without a root the chain is at fault and nothing else",
            changed(|receipt| receipt["denial_reason"] = json!("envelope_expired")),
        ),
        breaks(
            NoRoot,
            "no-code",
            "absent or unreadable: the code says which",
            changed(|receipt| drop(receipt.as_object_mut().unwrap().remove("denial_detail"))),
        ),
        breaks(
            NoRoot,
            "another-code",
            "two codes and no others",
            changed(|receipt| receipt["denial_detail"]["code"] = json!("unknown_agent")),
        ),
        breaks(
            NoRoot,
            "a-session",
            "whose session it is nobody could check",
            changed(|receipt| receipt["session"]["session_id"] = json!("sess:8b3d0e7f2a1c9b4e")),
        ),
        breaks(
            NoRoot,
            "an-agent",
            "nor which agent asked",
            changed(|receipt| receipt["session"]["agent_id"] = json!("aha:acme/engineering/coder-7")),
        ),
        breaks(
            NoRoot,
            "a-policy",
            "no policy was bound",
            changed(|receipt| receipt["policy"]["policy_id"] = json!("devops-v4")),
        ),
        breaks(
            NoRoot,
            "a-policy-digest",
            "so none has a digest",
            changed(|receipt| {
                receipt["policy"]["policy_digest"] = json!(format!("sha256:{}", "a3".repeat(32)))
            }),
        ),
        breaks(
            NoRoot,
            "a-depth",
            "no root, no hops",
            changed(|receipt| receipt["chain_summary"]["chain_depth"] = json!(1)),
        ),
        breaks(
            NoRoot,
            "a-chain",
            "the chain is empty",
            changed(|receipt| {
                receipt["chain_summary"]["chain_digest"] = json!(format!("sha256:{}", "9f".repeat(32)))
            }),
        ),
        breaks(
            NoRoot,
            "reserved-session",
            "none is reserved",
            set_in("session", "session_id", json!(NO_SESSION)),
        ),
        breaks(
            NoRoot,
            "reserved-agent",
            "a known root has a known agent",
            set_in("session", "agent_id", json!(UNKNOWN_AGENT)),
        ),
        breaks(NoRoot, "reserved-policy", "and a policy", set_in("policy", "policy_id", json!(NO_POLICY))),
        breaks(
            NoRoot,
            "reserved-policy-digest",
            "with a digest",
            set_in("policy", "policy_digest", json!(NO_POLICY_DIGEST)),
        ),
        breaks(NoRoot, "reserved-code", "no_envelope with an envelope", {
            let mut receipt = denied_aer_json(0, "chain_integrity_violation");
            receipt["denial_detail"] = json!({ "code": "no_envelope" });
            Draft::of(receipt)
        }),
    ]
}
