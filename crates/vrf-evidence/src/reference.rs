//! Verification receipts in the messages of other protocols (section 6.4), and as an in-toto Statement.
//!
//! The draft shows the members for ACP and A2A; MCP and x402 it names without a form, so these use the members of ACP.
//! The receipt itself is not signed: where there is room, the signed statement is included, with which the receiver
//! verifies it offline.

use data_encoding::BASE64;
use registration::vrf::VrfRecord;
use serde_json::{Map, Value, json};

/// A protocol that carries references to receipts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReferenceForm {
    /// Agent2Agent: an artifact of a task.
    A2a,
    /// Model Context Protocol: the `_meta` member of a tool result.
    Mcp,
    /// Agent Commerce Protocol: a delivery memo.
    Acp,
    /// x402: a payment memo.
    X402,
    /// in-toto Statement v1, with the output as its subject.
    InToto,
}

/// A receipt to be referenced.
#[derive(Clone, Copy, Debug)]
pub struct VrfReference<'r> {
    /// The parsed receipt.
    pub record: &'r VrfRecord,
    /// The Signed or Transparent Statement that contains it, or its hash.
    pub statement: &'r [u8],
    /// The URL of the entry at the transparency service.
    pub url: &'r str,
}

/// The key of the receipt in `_meta` of MCP.
const MCP_META: &str = "dev.tabellion/vrf";
/// The type of an in-toto Statement, version 1.
const IN_TOTO_STATEMENT: &str = "https://in-toto.io/Statement/v1";
/// The media type of a receipt in JSON, which also names the predicate of the in-toto Statement.
const VRF_JSON: &str = registration::vrf::VRF_JSON;

impl VrfReference<'_> {
    /// Returns the document that the protocol carries.
    pub fn document(&self, protocol: ReferenceForm) -> Value {
        match protocol {
            ReferenceForm::A2a => self.a2a_artifact(),
            ReferenceForm::Mcp => json!({ "_meta": { MCP_META: self.with_statement() } }),
            ReferenceForm::Acp => json!({ "delivery_memo": self.members() }),
            ReferenceForm::X402 => json!({ "payment_memo": self.with_output() }),
            ReferenceForm::InToto => self.in_toto_statement(),
        }
    }

    fn a2a_artifact(&self) -> Value {
        json!({
            "type": "artifact",
            "mimeType": VRF_JSON,
            "data": BASE64.encode(&self.record.canonical_json()),
            "metadata": self.with_statement(),
        })
    }

    fn in_toto_statement(&self) -> Value {
        let receipt = &self.record.receipt;
        let (algorithm, digest) = receipt.output.split_once(':').unwrap_or_default();
        let name = receipt.task_id.as_deref().unwrap_or(&receipt.receipt_id);
        json!({
            "_type": IN_TOTO_STATEMENT,
            "subject": [{ "name": name, "digest": { algorithm: digest } }],
            "predicateType": "https://tabellion.dev/vrf/v1",
            "predicate": self.with_receipt(),
        })
    }

    /// The members that the draft shows for ACP.
    fn members(&self) -> Map<String, Value> {
        let receipt = &self.record.receipt;
        let members = [
            ("vrf_receipt_id", receipt.receipt_id.as_str()),
            ("vrf_verdict", receipt.verdict.as_str()),
            ("vrf_transparency_url", self.url),
        ];
        members.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
    }

    /// The members with the hash of the verified output, on which a payment can depend.
    fn with_output(&self) -> Map<String, Value> {
        let mut members = self.members();
        members.insert("vrf_output_hash".to_owned(), self.record.receipt.output.as_str().into());
        members
    }

    /// The members with the signed statement in base64.
    fn with_statement(&self) -> Map<String, Value> {
        let mut members = self.members();
        members.insert("vrf_statement".to_owned(), BASE64.encode(self.statement).into());
        members
    }

    /// The members with the signed statement and the receipt.
    fn with_receipt(&self) -> Map<String, Value> {
        let mut members = self.with_statement();
        members.insert("vrf_receipt".to_owned(), self.record.json().clone());
        members
    }
}

#[cfg(test)]
mod tests {
    use registration::vrf::VrfRecord;
    use testkit::vrf;

    use super::*;

    const URL: &str = "https://log.example/entries/ab";

    fn document(protocol: ReferenceForm) -> Value {
        let statement = vrf(1);
        let record = VrfRecord::verify(&statement, None).expect("it keeps the rules");
        VrfReference { record: &record, statement: statement.bytes(), url: URL }.document(protocol)
    }

    fn assert_memo(memo: &Value) {
        assert_eq!(memo["vrf_receipt_id"], testkit::receipt_json(1)["receipt_id"]);
        assert_eq!((&memo["vrf_verdict"], &memo["vrf_transparency_url"]), (&"pass".into(), &URL.into()));
    }

    #[test]
    fn memos_have_the_members_of_the_draft() {
        let acp = document(ReferenceForm::Acp);
        assert_memo(&acp["delivery_memo"]);
        assert_eq!(acp["delivery_memo"].as_object().map(Map::len), Some(3));
        let x402 = document(ReferenceForm::X402);
        assert_memo(&x402["payment_memo"]);
        assert_eq!(x402["payment_memo"]["vrf_output_hash"], testkit::receipt_json(1)["hashes"]["output"]);
    }

    #[test]
    fn an_a2a_artifact_holds_the_receipt_and_the_statement_that_proves_it() {
        let artifact = document(ReferenceForm::A2a);
        assert_eq!((&artifact["type"], &artifact["mimeType"]), (&"artifact".into(), &VRF_JSON.into()));
        let receipt = BASE64.decode(artifact["data"].as_str().expect("text").as_bytes()).expect("base64");
        let receipt: Value = serde_json::from_slice(&receipt).expect("JSON");
        assert_eq!(receipt, testkit::receipt_json(1));
        assert_memo(&artifact["metadata"]);
        assert_statement(&artifact["metadata"]);
    }

    #[test]
    fn a_tool_result_and_an_in_toto_statement_hold_the_statement_too() {
        assert_statement(&document(ReferenceForm::Mcp)["_meta"][MCP_META]);
        let statement = document(ReferenceForm::InToto);
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(statement["_type"], IN_TOTO_STATEMENT);
        assert_eq!(statement["subject"][0]["digest"]["sha256"], digest);
        assert_eq!(statement["predicate"]["vrf_receipt"], testkit::receipt_json(1));
        assert_statement(&statement["predicate"]);
    }

    fn assert_statement(members: &Value) {
        let bytes = BASE64.decode(members["vrf_statement"].as_str().expect("text").as_bytes());
        assert_eq!(bytes.expect("base64"), vrf(1).bytes().to_vec());
    }
}
