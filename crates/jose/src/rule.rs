//! Named rules of a document format: the macro [`rules!`](crate::rules) declares one enum per format.

/// Declares the enum of a format's rules: each with its name, the interpretation of the document that it depends on,
/// and the document's section.
#[macro_export]
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
        }
    };
}
