//! Named rules: the macro `rules!` declares one enum per profile, in which each rule cites its source.

use crate::violation::{Place, RuleName, Violation, cut};

/// Declares the enum of a profile's rules: each with its name, the interpretation of the document that it depends on,
/// and the document's section.
macro_rules! rules {
    (
        $(#[doc = $about:literal])+
        $name:ident {
            $($(#[doc = $doc:literal])+ $variant:ident = $rule:literal, reading $reading:literal, section $section:literal;)+
        }
    ) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name {
            $($(#[doc = $doc])+ #[doc = concat!("\n\n`", $rule, "`; reading ", $reading, ", section ", $section, ".")] $variant,)+
        }

        impl $name {
            /// All rules, in the order of the document.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The rule's name, which never changes.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $rule,)+ }
            }

            /// The interpretation of the document that the rule depends on, as the module numbers it; "-" if the
            /// document is unambiguous.
            pub const fn reading(self) -> &'static str {
                match self { $($name::$variant => $reading,)+ }
            }

            /// The section of the document that states the rule.
            pub const fn section(self) -> &'static str {
                match self { $($name::$variant => $section,)+ }
            }

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
