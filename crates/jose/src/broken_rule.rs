//! The error of readers with named rules ([`rules!`](crate::rules)): a broken rule, its place and details.

/// A rule that an object breaks. Objects are not repaired: the first broken rule refuses the object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rule}: {detail} (at {})", if pointer.is_empty() { "the top level" } else { pointer })]
pub struct BrokenRule {
    /// The name of the rule.
    pub rule: &'static str,
    /// JSON pointer (RFC 6901) to the value that breaks it; empty for the whole object.
    pub pointer: String,
    /// Details for display, which may contain a shortened and escaped value of the object.
    pub detail: String,
}
