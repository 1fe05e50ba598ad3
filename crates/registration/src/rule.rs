//! Rules by name: one enum for each profile, each rule citing where it comes from.

use crate::violation::{Place, RuleName, Violation, cut};

/// Makes the enum of a profile's rules: name, our reading of the document, and the document's section.
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
            /// Every rule, in the order of the document.
            pub const ALL: &'static [$name] = &[$($name::$variant,)+];

            /// The rule's name, which never changes.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $rule,)+ }
            }

            /// Our reading of the document, as the module numbers it; "-" where it leaves no choice.
            pub const fn reading(self) -> &'static str {
                match self { $($name::$variant => $reading,)+ }
            }

            /// The section of the document.
            pub const fn section(self) -> &'static str {
                match self { $($name::$variant => $section,)+ }
            }

            /// The rule, broken in the payload.
            #[allow(dead_code)]
            pub(crate) fn in_payload(
                self,
                pointer: impl Into<String>,
                detail: impl Into<String>,
            ) -> $crate::violation::Violation {
                $crate::rule::in_payload(self.name(), pointer.into(), detail.into())
            }

            /// The rule, broken in the protected header.
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

/// A rule broken by what stands unprotected: `place` begins with the label.
pub(crate) fn in_unprotected(rule: &'static str, place: String, detail: String) -> Violation {
    broken(rule, Place::Unprotected(cut(place).into()), detail)
}

fn broken(rule: &'static str, place: Place, detail: String) -> Violation {
    Violation { rule: RuleName::fixed(rule), place, detail: cut(detail) }
}
