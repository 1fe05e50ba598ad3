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
}

impl CallArguments {
    /// Creates arguments from the text of `params.arguments`, or `{}`.
    pub fn new(text: impl Into<String>) -> Self {
        CallArguments { text: text.into(), canonical: OnceLock::new() }
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
}
