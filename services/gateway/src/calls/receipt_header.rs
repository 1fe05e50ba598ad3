//! The response header `AgentROA-Receipt`: a reference to the execution receipt of the call that is answered.
//!
//! The receipt itself is in the answer's body, if that has a place for it. A result without `metadata` and many errors
//! have none, and clients do not show all errors as received; the header is in every answer that begins after the
//! decision.

use admission::decide::VerdictDelivery;
use http::HeaderValue;

use crate::decision_writer::DecisionAnswer;
use crate::relay::Response;
use crate::upstream::headers::RECEIPT;

/// Returns the header's value, an item of structured fields (RFC 9651): the `aer_id` as a string, with the parameter
/// `entry`, the address of the receipt's entry. `None` without a receipt, and if the answers of the caller stay as they
/// are (V-33, advisory).
pub fn receipt_header(decision: &DecisionAnswer) -> Option<HeaderValue> {
    let receipt = decision.receipt.as_ref().filter(|_| decision.delivery != VerdictDelivery::NotSent)?;
    HeaderValue::try_from(format!("\"{}\"; entry=\"{}\"", receipt.aer_id, receipt.audit_ref)).ok()
}

/// Adds the header to a response.
pub fn with_receipt_header(mut response: Response, value: Option<HeaderValue>) -> Response {
    response.headers_mut().extend(value.map(|value| (RECEIPT, value)));
    response
}
