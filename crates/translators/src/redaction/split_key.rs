//! Private keys in PEM that are spread over several texts of an array, such as the lines of a patch.

use std::sync::LazyLock;

use regex::Regex;

use super::rules::{KEY_BEGINNING, KEY_END, RedactionRule, marker};

static BEGINNING: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEY_BEGINNING).ok());
static END: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEY_END).ok());

/// Whether a private key that an earlier text of an array began has not ended yet.
#[derive(Default)]
pub(super) struct SplitKey {
    is_open: bool,
}

impl SplitKey {
    /// Returns the array's next text with a marker in place of the rest of a key that an earlier text began; `None` if
    /// no key goes on in it. Without an end, all of the text belongs to the key.
    pub(super) fn without_rest(&mut self, text: &str) -> Option<String> {
        let (Some(beginning), Some(end)) = (BEGINNING.as_ref(), END.as_ref()) else { return None };
        let goes_on = self.is_open;
        let rest = match (goes_on, end.find(text)) {
            (true, None) => return Some(marker(RedactionRule::PrivateKey.name())),
            (true, Some(end)) => &text[end.end()..],
            (false, _) => text,
        };
        let last = |expression: &Regex| expression.find_iter(rest).last().map(|found| found.start());
        self.is_open = last(beginning) > last(end);
        goes_on.then(|| format!("{}{rest}", marker(RedactionRule::PrivateKey.name())))
    }
}
