//! Enumerations of fixed words: the macro [`words!`], and their reading from JSON.

use jose::members::{Members, Rule};

/// The words of an enumeration, and the function that returns the value of a word.
type Words<'w, T> = (&'w [&'w str], fn(&str) -> Option<T>);

/// Parses a member that is one of the words of an enumeration.
pub(crate) fn read_word<T, R: Rule>(
    members: &Members<'_, R>,
    rule: R,
    name: &str,
    (words, from): Words<'_, T>,
) -> Result<T, R::Error> {
    let word = members.word(rule, name, words)?;
    from(word).ok_or_else(|| members.unfit(rule, name, word, &words.join(" or ")))
}

/// Declares an enum whose variants are words of a VAP document.
macro_rules! words {
    ($(#[$meta:meta])+ pub enum $name:ident { $($(#[$about:meta])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$about])+ #[serde(rename = $word)] $variant,)+
        }

        impl $name {
            /// All values, in the order of the document.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];
            /// The words of all values.
            pub const WORDS: [&'static str; [$($word),+].len()] = [$($word),+];

            /// Returns the word.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                }
            }

            /// Returns the value of a word; `None` for other texts.
            pub fn from_word(word: &str) -> Option<$name> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub(crate) use words;
