//! What the gateway adds to an answer's `_meta`, and what it takes out (readings V-4, V-5, S-2).
//!
//! The Verdict goes where the message was, in the shape that the caller used. Whatever an upstream put under one of these
//! names is dropped first: a server that could inject a Verdict could speak for the gateway.

use admission::message::slot::{Key, OWN_KEY, Shape, VAP_KEY};

use serde_json::Value;

use crate::front::Aside;

/// Where the record of a decision is.
pub const EVIDENCE: &str = "dev.tabellion/evidence";
/// What a call cost.
pub const COST: &str = "dev.tabellion/cost";
/// The commitment in force.
pub const COMMITMENT: &str = "dev.tabellion/commitment";
/// The AgentROA receipt of a call.
const AER: &str = "dev.tabellion/aer";

/// What only the gateway says.
const OURS: &[&str] = &[VAP_KEY, OWN_KEY, EVIDENCE, COST, COMMITMENT, AER];

/// Where a message stood in a request, and so where its Verdict goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// By itself, or under a name.
    pub shape: Shape,
    /// The key.
    pub key: Key,
}

/// What is added to one answer.
#[derive(Clone, Debug, Default)]
pub struct Additions(Vec<(&'static str, String)>);

impl Additions {
    /// The Verdict, as it was persisted.
    pub fn verdict(&mut self, place: Place, verdict: &str) {
        let text = place.shape.dress(verdict);
        self.0.extend(place.key.names().iter().map(|name| (*name, text.clone())));
    }

    /// A member of our own.
    pub fn put(&mut self, key: &'static str, json: String) {
        self.0.push((key, json));
    }

    /// The one thing that is echoed of what a caller says about its reasons (S-2): its `turnId`.
    pub fn echo(&mut self, aside: Option<&Aside>) {
        self.0.extend(aside.and_then(|aside| Some((aside.key, aside.invocation.echo()?))));
    }

    /// The members, for splicing.
    #[must_use]
    pub fn members(&self) -> Vec<(&str, &str)> {
        self.0.iter().map(|(key, json)| (*key, json.as_str())).collect()
    }

    /// The same as an object: for `error.data`, where there is no `_meta`.
    #[must_use]
    pub fn object(&self) -> String {
        let members: Vec<_> =
            self.0.iter().map(|(key, json)| format!("{}:{json}", Value::from(*key))).collect();
        format!("{{{}}}", members.join(","))
    }

    /// What is dropped of an upstream's.
    #[must_use]
    pub const fn dropped() -> &'static [&'static str] {
        OURS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(place: Place) -> Vec<(&'static str, String)> {
        let mut additions = Additions::default();
        additions.verdict(place, r#"{"v":1}"#);
        additions.0
    }

    #[test]
    fn v_4_the_verdict_is_told_in_the_shape_and_under_the_key_of_the_message() {
        let place = |shape, key| Place { shape, key };
        assert_eq!(members(Place::default()), [("vap", r#"{"v":1}"#.to_owned())]);
        let nested = r#"{"verdict":{"v":1}}"#.to_owned();
        assert_eq!(members(place(Shape::Nested, Key::Own)), [("dev.tabellion/vap", nested.clone())]);
        let both = [("vap", nested.clone()), ("dev.tabellion/vap", nested)];
        assert_eq!(members(place(Shape::Nested, Key::Both)), both);
    }
}
