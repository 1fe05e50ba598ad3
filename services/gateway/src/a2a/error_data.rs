//! The receipt in the `data` of a JSON-RPC error.
//!
//! In A2A 1.0, `data` is an array of typed objects, as the details of `google.rpc.Status`: the receipt is one of them, a
//! `google.protobuf.Struct`. In A2A 0.3, `data` may be any value: the receipt is a member, if it is an object or absent.

use jose::json;
use serde_json::value::RawValue;

use super::RECEIPT;
use crate::frame::object;

/// The type of the object with the receipt (A2A 1.0).
const STRUCT: &str = "type.googleapis.com/google.protobuf.Struct";

/// The form of the data of errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorData {
    /// An object (A2A 0.3).
    Members,
    /// An array of typed objects (A2A 1.0).
    Details,
}

impl ErrorData {
    /// Returns the form for a method: those of A2A 0.3 have a slash, and those of A2A 1.0 have none.
    pub fn of_method(method: &str) -> Self {
        if method.contains('/') { Self::Members } else { Self::Details }
    }

    /// Returns the data with a receipt. `None` if the data has no place for it; `null` counts as absent.
    pub fn with_receipt(self, data: Option<&str>, receipt: &str) -> Option<String> {
        let data = data.filter(|data| *data != "null");
        match self {
            Self::Members => object::put(data.unwrap_or("{}"), &[RECEIPT], receipt),
            Self::Details => {
                let mut details: Vec<Box<RawValue>> = json::read_text(data.unwrap_or("[]")).ok()?;
                let detail = format!("{{\"@type\":\"{STRUCT}\",\"value\":{{\"{RECEIPT}\":{receipt}}}}}");
                details.push(RawValue::from_string(detail).ok()?);
                serde_json::to_string(&details).ok()
            }
        }
    }
}

/// Returns an array of details without those that hold a receipt, which only the gateway adds. `None` if there are none. An
/// array that readers could disagree about is emptied.
pub fn without_receipts(data: &str) -> Option<String> {
    if !data.starts_with('[') {
        return None;
    }
    let Ok(details) = json::read_text::<Vec<Box<RawValue>>>(data) else { return Some("[]".to_owned()) };
    let kept: Vec<_> = details.iter().filter(|detail| !holds_receipt(detail.get())).collect();
    (kept.len() < details.len()).then(|| serde_json::to_string(&kept).ok()).flatten()
}

fn holds_receipt(detail: &str) -> bool {
    [&[][..], &["value"]].iter().any(|path| object::without(detail, path, &[RECEIPT]).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERROR_INFO: &str = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"R"}"#;

    #[test]
    fn a_receipt_is_a_member_of_an_object_and_one_of_the_details_of_an_array() {
        let member = format!("{{\"{RECEIPT}\":1}}");
        for absent in [None, Some("null"), Some("{}")] {
            assert_eq!(ErrorData::Members.with_receipt(absent, "1"), Some(member.clone()));
        }
        let detail = format!("{{\"@type\":\"{STRUCT}\",\"value\":{member}}}");
        for absent in [None, Some("null"), Some("[]")] {
            assert_eq!(ErrorData::Details.with_receipt(absent, "1"), Some(format!("[{detail}]")));
        }
        let added = ErrorData::Details.with_receipt(Some(&format!("[{ERROR_INFO}]")), "1");
        assert_eq!(added, Some(format!("[{ERROR_INFO},{detail}]")));
        for (form, other) in
            [(ErrorData::Members, "[]"), (ErrorData::Members, "\"x\""), (ErrorData::Details, "{}")]
        {
            assert_eq!(form.with_receipt(Some(other), "1"), None, "{other}");
        }
    }

    #[test]
    fn details_with_a_receipt_of_the_agents_own_are_removed() {
        let member = format!("{{\"{RECEIPT}\":1}}").replacen("https", "\\u0068ttps", 1);
        for forged in [format!("{{\"@type\":\"x\",\"value\":{member}}}"), member] {
            let data = format!("[{forged},{ERROR_INFO}]");
            assert_eq!(without_receipts(&data), Some(format!("[{ERROR_INFO}]")), "{data}");
        }
        assert_eq!(without_receipts(&format!("[{ERROR_INFO}]")), None);
        assert_eq!(without_receipts("{}"), None);
        let ambiguous = format!("[{{\"value\":{{\"{RECEIPT}\":1}},\"value\":{{}}}}]");
        assert_eq!(without_receipts(&ambiguous), Some("[]".to_owned()));
    }
}
