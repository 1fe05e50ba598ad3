//! The arguments of a call, with their canonical form.

use std::sync::OnceLock;

use jose::json;
use vap::digest::Canon;

/// The arguments of a call. Their canonical form is computed at its first use, and once: it takes time in proportion to
/// their length, so a gateway uses it before it hands the call to the task that decides.
#[derive(Debug, Default)]
pub struct CallArguments {
    text: String,
    canonical: OnceLock<Canon>,
    is_canonical_ambiguous: OnceLock<bool>,
}

impl CallArguments {
    /// Creates arguments from the text of `params.arguments`, or `{}`.
    pub fn new(text: impl Into<String>) -> Self {
        CallArguments { text: text.into(), ..CallArguments::default() }
    }

    /// Returns the text as received.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the canonical form. A text that is not strict JSON represents itself.
    pub fn canonical(&self) -> &Canon {
        self.canonical.get_or_init(|| match json::check_text(&self.text) {
            Ok(checked) => Canon::of(checked),
            Err(_) => Canon { bytes: self.text.as_bytes().to_vec(), raw: true },
        })
    }

    /// Returns whether rules can read the text, and not its canonical form: that writes `1e16` as an integer beyond
    /// 2^53 - 1. As the canonical form, this is computed once.
    pub fn is_canonical_ambiguous(&self) -> bool {
        *self.is_canonical_ambiguous.get_or_init(|| {
            let canonical = str::from_utf8(&self.canonical().bytes).unwrap_or_default();
            canonical != self.text
                && json::check_text(canonical).is_ok_and(|checked| checked.first_ambiguous_number().is_some())
        })
    }
}
