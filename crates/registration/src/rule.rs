//! Named rules: the macro `rules!` declares one enum per profile, in which each rule cites its source.

use jose::BrokenRule;

use crate::violation::{Place, RuleName, Violation, cut};

/// Declares the enum of a profile's rules ([`jose::rules!`]), and the violations of its rules.
macro_rules! rules {
    ($(#[doc = $about:literal])+ $name:ident { $($rules:tt)+ }) => {
        jose::rules! { $(#[doc = $about])+ $name { $($rules)+ } }

        impl $name {
            /// Returns a [`Violation`](crate::Violation) of the rule in the payload.
            #[allow(dead_code)]
            pub(crate) fn in_payload(
                self,
                pointer: impl Into<String>,
                detail: impl Into<String>,
            ) -> $crate::violation::Violation {
                $crate::rule::in_payload(self.name(), pointer.into(), detail.into())
            }

            /// Returns a [`Violation`](crate::Violation) of the rule in the protected header.
            #[allow(dead_code)]
            pub(crate) fn in_header(
                self,
                labels: &'static str,
                detail: impl Into<String>,
            ) -> $crate::violation::Violation {
                $crate::rule::in_header(self.name(), labels, detail.into())
            }
        }
    };
}

pub(crate) use rules;

pub(crate) fn in_payload(rule: &'static str, pointer: String, detail: String) -> Violation {
    broken(rule, Place::payload(cut(pointer)), detail)
}

pub(crate) fn in_header(rule: &'static str, labels: &'static str, detail: String) -> Violation {
    broken(rule, Place::protected(labels), detail)
}

/// Returns a violation in an unprotected header parameter: `place` begins with its label.
pub(crate) fn in_unprotected(rule: &'static str, place: String, detail: String) -> Violation {
    broken(rule, Place::Unprotected(cut(place).into()), detail)
}

fn broken(rule: &'static str, place: Place, detail: String) -> Violation {
    Violation { rule: RuleName::fixed(rule), place, detail: cut(detail) }
}

impl From<BrokenRule> for Violation {
    fn from(broken: BrokenRule) -> Violation {
        in_payload(broken.rule, broken.pointer, broken.detail)
    }
}
