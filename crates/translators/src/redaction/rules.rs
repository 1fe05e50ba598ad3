//! Rules that find secrets and personal data in texts by their form.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::limits::{SECRET_ENTROPY, SECRET_LENGTH};

/// A rule for texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RedactionRule {
    /// User names, passwords and tokens before the host of a URL.
    Userinfo,
    /// Private keys in PEM.
    PrivateKey,
    /// JSON Web Tokens.
    Jwt,
    /// Tokens of well-known services, by their prefixes.
    Token,
    /// Members that are named after secrets, such as `secret` of OpenCode's share objects.
    SecretMember,
    /// The user's name in paths of home directories.
    HomePath,
    /// Long random texts. Off by default, because signatures and identifiers look the same.
    HighEntropy,
}

/// Where a token begins: at a word of ASCII letters, or after an escape or a colour of a terminal, whose last character is
/// a letter or a digit. JSON in a text has escapes (`\n`, `\u001b`), a URL has `%20`, a URL in a URL `%2520`, and `grep` ends each
/// colour with `[K`. The group is text to keep.
macro_rules! token_start {
    () => {
        r"((?-u:\b)|\\(?:[bfnrtv]|u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})|%(?:25)*[0-9A-Fa-f]{2}|\[[0-9;]*[mK])"
    };
}

/// The first line of a private key in PEM.
macro_rules! key_beginning {
    () => {
        "-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----"
    };
}

/// The last line of a private key in PEM.
macro_rules! key_end {
    () => {
        "-----END [A-Z0-9 ]*PRIVATE KEY-----"
    };
}

/// Expression for the first line of a private key in PEM.
pub(super) const KEY_BEGINNING: &str = key_beginning!();
/// Expression for the last line of a private key in PEM.
pub(super) const KEY_END: &str = key_end!();

/// Expressions with their replacements; `$1` is text to keep.
const EXPRESSIONS: [(RedactionRule, &str, &str); 5] = [
    (RedactionRule::Userinfo, r#"(?i)([a-z][a-z0-9+.-]*://)[^\s/"'<>?#\\]+@"#, "$1"),
    (
        RedactionRule::PrivateKey,
        concat!(key_beginning!(), r"[\s\S]*?(?:", key_end!(), r"|\z)"),
        "[redacted:private-key]",
    ),
    (
        RedactionRule::Jwt,
        concat!(token_start!(), r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
        "${1}[redacted:jwt]",
    ),
    (
        RedactionRule::Token,
        concat!(
            token_start!(),
            r"(?:sk-(?:ant|proj|svcacct|admin|or)-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9]{20,}",
            r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{22,}",
            r"|glpat-[A-Za-z0-9_-]{20,}|(?:AKIA|ASIA)[A-Z0-9]{16}|xox[abeprs]-[A-Za-z0-9-]{10,}",
            r"|AIza[A-Za-z0-9_-]{35}|npm_[A-Za-z0-9]{36}|hf_[A-Za-z0-9]{30,}|pypi-[A-Za-z0-9_-]{50,})"
        ),
        "${1}[redacted:token]",
    ),
    (RedactionRule::HomePath, r#"([/\\](?:home|Users)[/\\]+)[^/\\\s"':~]+"#, "$1~"),
];

static COMPILED: LazyLock<BTreeMap<RedactionRule, (Regex, &'static str)>> = LazyLock::new(|| {
    let compile = |(rule, expression, replacement)| Some((rule, (Regex::new(expression).ok()?, replacement)));
    EXPRESSIONS.into_iter().filter_map(compile).collect()
});

static LONG_WORD: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&format!("[A-Za-z0-9+/_=-]{{{SECRET_LENGTH},}}")).ok());

/// Names of members that hold a secret, in lower case without separators. Words before them do not matter, words after
/// them do: `db_password` holds one, `token-usage` does not.
const SECRET_NAMES: [&str; 10] = [
    "secret",
    "secretkey",
    "secretaccesskey",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "authorization",
    "privatekey",
    "token",
];
/// Names that are written as one word although they end in one of [`SECRET_NAMES`].
const JOINED_NAMES: [&str; 5] = ["sharesecret", "clientsecret", "accesstoken", "refreshtoken", "authtoken"];

/// Maximum number of words of a name in [`SECRET_NAMES`].
const LONGEST_NAME: usize = 3;

/// How often a rule has found something in a text.
pub(super) struct Found {
    pub rule: RedactionRule,
    pub count: u64,
}

impl RedactionRule {
    /// All rules.
    pub const ALL: [RedactionRule; 7] = [
        Self::Userinfo,
        Self::PrivateKey,
        Self::Jwt,
        Self::Token,
        Self::SecretMember,
        Self::HomePath,
        Self::HighEntropy,
    ];

    /// The rules for secrets. Rules for personal data and for what only might be a secret are not among them.
    pub const DEFAULT: [RedactionRule; 5] =
        [Self::Userinfo, Self::PrivateKey, Self::Jwt, Self::Token, Self::SecretMember];

    /// The name of the rule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Userinfo => "userinfo",
            Self::PrivateKey => "private-key",
            Self::Jwt => "jwt",
            Self::Token => "token",
            Self::SecretMember => "secret-member",
            Self::HomePath => "home-path",
            Self::HighEntropy => "high-entropy",
        }
    }

    /// Replaces what the rule finds in a text, and returns the number of replacements.
    pub(super) fn replace<'t>(self, text: &'t str) -> (Cow<'t, str>, u64) {
        let mut count = 0;
        let replaced = match (self, COMPILED.get(&self), LONG_WORD.as_ref()) {
            (Self::HighEntropy, _, Some(word)) => word.replace_all(text, |found: &Captures<'_>| {
                let found = &found[0];
                if !is_random(found) {
                    return found.to_owned();
                }
                count += 1;
                "[redacted:high-entropy]".to_owned()
            }),
            (_, Some((expression, replacement)), _) => {
                expression.replace_all(text, |found: &Captures<'_>| {
                    count += 1;
                    let mut kept = String::new();
                    found.expand(replacement, &mut kept);
                    kept
                })
            }
            _ => Cow::Borrowed(text),
        };
        if count == 0 { (Cow::Borrowed(text), 0) } else { (replaced, count) }
    }
}

/// What the list of omissions calls a value that was left out by its place.
pub(super) const FIELD: &str = "field";

/// The text in place of a value that was left out by this rule, or as a [`FIELD`].
pub(super) fn marker(rule: &str) -> String {
    format!("[redacted:{rule}]")
}

/// Returns whether a text is nothing but a marker.
pub(crate) fn is_marker(text: &str) -> bool {
    let rule = text.strip_prefix("[redacted:").and_then(|rest| rest.strip_suffix(']'));
    rule.is_some_and(|rule| rule == FIELD || rule.parse::<RedactionRule>().is_ok())
}

/// Returns whether a member of this name holds a secret: whether its last words are one of the names.
pub(super) fn names_a_secret(member: &str) -> bool {
    let words = words(member);
    let is_secret =
        |name: String| SECRET_NAMES.contains(&name.as_str()) || JOINED_NAMES.contains(&name.as_str());
    (0..words.len()).rev().take(LONGEST_NAME).any(|start| is_secret(words[start..].concat()))
}

/// Splits a name into words in lower case: at separators, before a capital after a small letter (`dbPassword`), and
/// before the last of several capitals (`AWSSecret`).
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| chars[before]);
        let after = chars.get(at + 1);
        let begins = c.is_ascii_uppercase()
            && (before.is_some_and(|before| before.is_ascii_lowercase())
                || after.is_some_and(|after| after.is_ascii_lowercase()));
        if begins || !c.is_ascii_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_ascii_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Returns whether a text looks random: digits, lower and upper case, and much information in each character. Digests
/// in hex have one case only.
fn is_random(text: &str) -> bool {
    let has = |test: fn(&u8) -> bool| text.as_bytes().iter().any(test);
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_lowercase)
        && has(u8::is_ascii_uppercase)
        && entropy(text.as_bytes()) >= SECRET_ENTROPY
}

/// Shannon entropy in bits per byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let length = bytes.len() as f64;
    let share = counts.into_iter().filter(|count| *count > 0).map(|count| f64::from(count) / length);
    -share.map(|share| share * share.log2()).sum::<f64>()
}

impl fmt::Display for RedactionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for RedactionRule {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|rule| rule.name() == name);
        found.ok_or_else(|| format!("the rules are {}", Self::ALL.map(Self::name).join(", ")))
    }
}
