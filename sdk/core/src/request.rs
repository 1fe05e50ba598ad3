//! The request: an operation with its arguments.

use std::fmt::Display;

use browser_verifier::{EvidenceVerdict, RequestText, VerificationRequest};
use jose::json::{self, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::content::CheckContent;
use crate::delegations::{VerifyChain, VerifyProof};
use crate::error::CoreError;
use crate::keys::{GenerateKey, PublicKeyOf, ReadKey};
use crate::limits::{MAX_REQUEST_BYTES, REQUEST_DEPTH};
use crate::notes::{ReadCheckpoint, ReadCosignature, ReadVerifierKey, VerifyNote};
use crate::policies::{CheckPolicy, TryPolicy};
use crate::receipts::{ReadProblem, ReadReceipt, ReceiptRoot, VerifyConsistency};
use crate::searches::{ReadTerms, VerifySearch};
use crate::statements::{AttachReceipts, ReadStatement, SignStatement, StripReceipts, VerifySignature};
use crate::trees::{TreeRoot, VerifyGrowth, VerifyInclusion};
use crate::vap_messages::{CheckObject, DigestJson, MatchPattern, ReadMessage, SignMessage, VerifyVerdict};

/// Defines the function that performs an operation: each has the name, the type of the arguments and its function.
macro_rules! operations {
    ($($(#[doc = $doc:literal])+ $name:literal => $function:expr,)+) => {
        /// The names of all operations.
        pub const OPERATIONS: &[&str] = &[$($name),+];

        fn perform(operation: &str, arguments: Value) -> Result<Value, CoreError> {
            match operation {
                $($name => $function(read(arguments)?),)+
                _ => Err(unreadable(format!("no operation is named {operation:?}"))),
            }
        }
    };
}

operations! {
    /// Generates a signing key.
    "generate-key" => GenerateKey::generate,
    /// Returns the public key of a signing key.
    "public-key" => PublicKeyOf::describe,
    /// Reads a public key in any form.
    "read-key" => ReadKey::read,
    /// Signs a statement.
    "sign-statement" => SignStatement::sign,
    /// Reads a statement.
    "read-statement" => ReadStatement::read,
    /// Verifies the signature of a statement by one key.
    "verify-signature" => VerifySignature::verify,
    /// Attaches receipts to a statement.
    "attach" => AttachReceipts::attach,
    /// Removes the receipts from a statement.
    "strip" => StripReceipts::strip,
    /// Verifies a bundle, a statement or a checkpoint offline, as `VerificationRequest` describes it.
    "verify" => verify,
    /// Checks a statement against the rules of its content type.
    "check-content" => CheckContent::check,
    /// Reads a registration policy, and lists its mistakes.
    "check-policy" => CheckPolicy::check,
    /// Decides about a statement under a registration policy.
    "try-policy" => TryPolicy::attempt,
    /// Verifies a delegation chain (AgentROA), and decides about a call under it.
    "verify-chain" => VerifyChain::verify,
    /// Verifies an agent's proof that it makes a call (AgentROA).
    "verify-proof" => VerifyProof::verify,
    /// Reads the terms under which a log's index has an entry.
    "read-terms" => ReadTerms::read,
    /// Verifies that the answer of a search is complete.
    "verify-search" => VerifySearch::verify,
    /// Verifies that a known tree is the beginning of the one that a receipt signs.
    "verify-consistency" => VerifyConsistency::verify,
    /// Reads a receipt. Nothing is verified.
    "read-receipt" => ReadReceipt::read,
    /// Verifies one receipt by one key, and returns its root.
    "receipt-root" => ReceiptRoot::verify,
    /// Reads concise problem details (RFC 9290), the error of a transparency service.
    "read-problem" => ReadProblem::read,
    /// Verifies a Merkle inclusion proof.
    "inclusion-proof" => VerifyInclusion::verify,
    /// Verifies a Merkle consistency proof.
    "consistency-proof" => VerifyGrowth::verify,
    /// Computes the root of a tree.
    "tree-root" => TreeRoot::compute,
    /// Verifies a signed note by known keys.
    "verify-note" => VerifyNote::verify,
    /// Reads the text of a checkpoint. Nothing is verified.
    "read-checkpoint" => ReadCheckpoint::read,
    /// Verifies the cosignature of a witness and returns its time.
    "read-cosignature" => ReadCosignature::read,
    /// Reads a verifier key of a signed note.
    "read-verifier-key" => ReadVerifierKey::read,
    /// Checks and signs a VAP message.
    "sign-message" => SignMessage::sign,
    /// Reads a VAP message as a gateway does.
    "read-message" => ReadMessage::read,
    /// Verifies the signature of a Verdict.
    "verify-verdict" => VerifyVerdict::verify,
    /// Checks the form of a VAP object in a statement.
    "check-object" => CheckObject::check,
    /// Computes the digest of a JSON text.
    "digest-json" => DigestJson::compute,
    /// Matches a tool's name with patterns.
    "match-pattern" => MatchPattern::matches,
}

/// An answer in JSON: `result`, or `error` with the members of a [`CoreError`].
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
enum CoreAnswer {
    Result(Value),
    Error(CoreError),
}

/// Answers a request: JSON with the member `result`, or `error` with `code`, `what` and possibly `offset`. Texts in the
/// answer quote the request.
pub fn answer(request: &[u8]) -> Vec<u8> {
    let answered = parse(request).and_then(|(operation, arguments)| perform(&operation, arguments));
    let answer = answered.map_or_else(CoreAnswer::Error, CoreAnswer::Result);
    // Serialization cannot fail: answers consist of text, numbers, booleans, and structures of them.
    serde_json::to_vec(&answer).unwrap_or_default()
}

/// Parses a request into the name of its operation and the arguments. Duplicate members are refused.
fn parse(bytes: &[u8]) -> Result<(String, Value), CoreError> {
    let limits = Limits { bytes: MAX_REQUEST_BYTES, depth: REQUEST_DEPTH };
    let mut request = json::parse_strict(bytes, limits).map_err(unreadable)?;
    match request.as_object_mut().and_then(|members| members.remove("operation")) {
        Some(Value::String(operation)) => Ok((operation, request)),
        _ => Err(unreadable("it names no operation")),
    }
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, CoreError> {
    let error_in = |arguments: &Value| T::deserialize(arguments).err().map(|error| error.to_string());
    T::deserialize(&arguments).map_err(|error| unreadable(located(&error.to_string(), &arguments, &error_in)))
}

/// Puts a JSON pointer to the argument at fault, or to the item of a list, before an error of serde. The argument is found by
/// reading the others: `serde_path_to_error` would add to the WebAssembly module for every operation.
fn located(error: &str, arguments: &Value, error_in: &dyn Fn(&Value) -> Option<String>) -> String {
    let is_error_of = |arguments: &Value| error_in(arguments).is_some_and(|other| other == error);
    // Errors about members that are missing or unknown name them.
    let names_member = ["missing field", "unknown field"].iter().any(|begin| error.starts_with(begin));
    let faulty = arguments.as_object().into_iter().flatten().find(|(name, _)| {
        let mut others = arguments.clone();
        if let Some(members) = others.as_object_mut() {
            members.remove(*name);
        }
        !names_member && !is_error_of(&others)
    });
    let Some((name, argument)) = faulty else { return error.to_owned() };
    // How many of the shorter lists have no such item: the next item is at fault.
    let lengths: Vec<usize> = (0..argument.as_array().map_or(0, Vec::len)).collect();
    let fitting = lengths.partition_point(|length| {
        let mut shorter = arguments.clone();
        shorter[name] = argument.as_array().into_iter().flatten().take(*length).cloned().collect();
        !is_error_of(&shorter)
    });
    let item = fitting.checked_sub(1).map(|at| format!("/{at}")).unwrap_or_default();
    format!("/{}{item}: {error}", json::pointer_step(name))
}

fn unreadable(why: impl Display) -> CoreError {
    CoreError::new("malformed-request", format!("the request cannot be read: {why}"))
}

fn verify(text: RequestText) -> Result<Value, CoreError> {
    let answer = EvidenceVerdict::of(&VerificationRequest::read(&text)?)?;
    serde_json::to_value(answer).map_err(|error| CoreError::new("malformed-request", error))
}
