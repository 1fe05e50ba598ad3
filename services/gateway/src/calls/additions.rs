//! Members that the gateway adds to an answer's `_meta`, and members of an upstream that it removes (readings V-4, V-5,
//! S-2).
//!
//! The Verdict goes where the message was, in the shape that the caller used. Members that an upstream put under one of
//! the gateway's names are removed first: a server that could inject a Verdict could speak for the gateway.

use vap::message::slot::{Key, OWN_KEY, Shape, VAP_KEY};

use serde_json::Value;

use crate::mcp::InvocationMember;

/// The member with the location of a decision's record.
pub const EVIDENCE: &str = "dev.tabellion/evidence";
/// The member with the cost of a call.
pub const COST: &str = "dev.tabellion/cost";
/// The member with the commitment in force.
pub const COMMITMENT: &str = "dev.tabellion/commitment";
/// The member with the AgentROA receipt of a call.
pub const AER: &str = "dev.tabellion/aer";

/// The names that are reserved for the gateway.
const OURS: &[&str] = &[VAP_KEY, OWN_KEY, EVIDENCE, COST, COMMITMENT, AER];

/// The position of a message in a request, which its Verdict takes in the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VerdictSlot {
    /// The shape: the bare message, or an object that holds it under a name.
    pub shape: Shape,
    /// The key in `_meta`.
    pub key: Key,
}

/// The members to add to one answer.
#[derive(Clone, Debug, Default)]
pub struct Additions(Vec<(&'static str, String)>);

impl Additions {
    /// Adds the signed Verdict, as stored, in the shape and under the key of `place`.
    pub fn verdict(&mut self, place: VerdictSlot, verdict: &str) {
        let text = place.shape.dress(verdict);
        self.0.extend(place.key.names().iter().map(|name| (*name, text.clone())));
    }

    /// Adds a member of the gateway.
    pub fn put(&mut self, key: &'static str, json: String) {
        self.0.push((key, json));
    }

    /// Adds the `turnId` of the caller's `AiInvocation`, the only part of it that is echoed (S-2).
    pub fn echo(&mut self, invocation: Option<&InvocationMember>) {
        let Some(InvocationMember { keys, invocation }) = invocation else { return };
        let Some(echo) = invocation.echo() else { return };
        self.0.extend(keys.iter().map(|key| (*key, echo.clone())));
    }

    /// Returns the members, to be spliced into `_meta`.
    #[must_use]
    pub fn members(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(key, json)| (*key, json.as_str())).collect()
    }

    /// Returns the members as a JSON object, for `error.data`: an error has no `_meta`.
    #[must_use]
    pub fn object(&self) -> String {
        let members: Vec<_> =
            self.0.iter().map(|(key, json)| format!("{}:{json}", Value::from(*key))).collect();
        format!("{{{}}}", members.join(","))
    }

    /// Returns the names that are removed from an upstream's answer.
    #[must_use]
    pub const fn dropped() -> &'static [&'static str] {
        OURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(place: VerdictSlot) -> Vec<(&'static str, String)> {
        let mut additions = Additions::default();
        additions.verdict(place, r#"{"v":1}"#);
        additions.0
    }

    #[test]
    fn v_4_the_verdict_is_told_in_the_shape_and_under_the_key_of_the_message() {
        let place = |shape, key| VerdictSlot { shape, key };
        assert_eq!(members(VerdictSlot::default()), [("vap", r#"{"v":1}"#.to_owned())]);
        let nested = r#"{"verdict":{"v":1}}"#.to_owned();
        assert_eq!(members(place(Shape::Nested, Key::Own)), [("dev.tabellion/vap", nested.clone())]);
        let both = [("vap", nested.clone()), ("dev.tabellion/vap", nested)];
        assert_eq!(members(place(Shape::Nested, Key::Both)), both);
    }
}
