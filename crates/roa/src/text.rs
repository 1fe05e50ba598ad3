//! Texts with a fixed form: names, identifiers, digests and times.

use std::fmt;

use data_encoding::HEXLOWER;
use jiff::Timestamp;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::limits::{MAX_NAME, MAX_REFERENCE};

/// The error for a text that does not have the form of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("needed: {0}")]
pub struct NotOfForm(pub &'static str);

/// A name or reference: 1 to `MAX` characters without control characters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Text<const MAX: usize = MAX_NAME>(String);

/// A reference: an address, an identifier elsewhere, or a token.
pub type Reference = Text<MAX_REFERENCE>;

impl<const MAX: usize> Text<MAX> {
    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<const MAX: usize> TryFrom<String> for Text<MAX> {
    type Error = NotOfForm;

    fn try_from(text: String) -> Result<Self, NotOfForm> {
        let fits = !text.is_empty() && text.chars().nth(MAX).is_none() && !text.chars().any(char::is_control);
        fits.then_some(Text(text))
            .ok_or(NotOfForm("a text that is not empty, not too long, and has no control characters"))
    }
}

impl<const MAX: usize> std::str::FromStr for Text<MAX> {
    type Err = NotOfForm;

    fn from_str(text: &str) -> Result<Self, NotOfForm> {
        text.to_owned().try_into()
    }
}

impl<const MAX: usize> From<Text<MAX>> for String {
    fn from(text: Text<MAX>) -> String {
        text.0
    }
}

impl<const MAX: usize> fmt::Display for Text<MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<const MAX: usize> JsonSchema for Text<MAX> {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        format!("Text{MAX}").into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "minLength": 1, "maxLength": MAX })
    }
}

/// Declares an identifier whose text has a fixed form, with its pattern for the JSON Schema.
macro_rules! identifier {
    ($(#[$doc:meta])* $name:ident, $pattern:literal, $needed:literal, $fits:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// Returns the text of the identifier.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = NotOfForm;

            fn try_from(text: String) -> Result<Self, NotOfForm> {
                let fits: fn(&str) -> bool = $fits;
                fits(&text).then_some($name(text)).ok_or(NotOfForm($needed))
            }
        }

        impl std::str::FromStr for $name {
            type Err = NotOfForm;

            fn from_str(text: &str) -> Result<Self, NotOfForm> {
                text.to_owned().try_into()
            }
        }

        impl From<$name> for String {
            fn from(identifier: $name) -> String {
                identifier.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

identifier! {
    /// The identifier of an envelope: `env:` and 16 lower-case hex digits (Appendix A.1; R-24).
    EnvelopeId, "^env:[a-f0-9]{16}$", "\"env:\" and 16 lower-case hex digits", |text| has_hex_id(text, "env:")
}

identifier! {
    /// The identifier of an attestation: `ara:` and 16 lower-case hex digits (section 5.1; R-24).
    AttestationId, "^ara:[a-f0-9]{16}$", "\"ara:\" and 16 lower-case hex digits", |text| has_hex_id(text, "ara:")
}

identifier! {
    /// The identifier of an execution receipt: `aer:` and 16 lower-case hex digits (section 6.1; R-24).
    AerId, "^aer:[a-f0-9]{16}$", "\"aer:\" and 16 lower-case hex digits", |text| has_hex_id(text, "aer:")
}

identifier! {
    /// A code: too short and restricted to repeat a text of a caller.
    Code, "^[A-Za-z0-9_.:+-]{1,64}$", "1 to 64 letters, digits and _ . : + -", jose::code::is_code
}

identifier! {
    /// The identifier of an agent, `aha:<organisation>/<unit>/<agent>` (Appendix A.1; R-25).
    AgentId, "^aha:[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+/[a-zA-Z0-9_-]+$", "aha:<organisation>/<unit>/<agent>", is_agent
}

impl AgentId {
    /// Returns the organisation: the first part of the path.
    pub fn organization(&self) -> &str {
        let path = self.0.strip_prefix("aha:").unwrap_or_default();
        path.split('/').next().unwrap_or_default()
    }
}

fn has_hex_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|digits| digits.len() == 16 && is_lower_hex(digits))
}

fn is_lower_hex(digits: &str) -> bool {
    digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

fn is_agent(text: &str) -> bool {
    let in_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(in_part);
    let path =
        text.strip_prefix("aha:").filter(|path| text.len() <= MAX_NAME && path.split('/').count() == 3);
    path.is_some_and(|path| path.split('/').all(is_part))
}

/// A SHA-256 digest, written as `sha256:` and 64 lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Sha256Digest([u8; 32]);

impl Sha256Digest {
    /// A digest that was computed elsewhere.
    pub const fn from_bytes(digest: [u8; 32]) -> Sha256Digest {
        Sha256Digest(digest)
    }

    /// Computes the digest of some bytes.
    pub fn of(bytes: &[u8]) -> Sha256Digest {
        Sha256Digest(Sha256::digest(bytes).into())
    }
}

impl TryFrom<String> for Sha256Digest {
    type Error = NotOfForm;

    fn try_from(text: String) -> Result<Self, NotOfForm> {
        let digits = text.strip_prefix("sha256:").map(str::as_bytes);
        let bytes =
            digits.and_then(|digits| HEXLOWER.decode(digits).ok()).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Sha256Digest).ok_or(NotOfForm("\"sha256:\" and 64 lower-case hex digits"))
    }
}

impl std::str::FromStr for Sha256Digest {
    type Err = NotOfForm;

    fn from_str(text: &str) -> Result<Self, NotOfForm> {
        text.to_owned().try_into()
    }
}

impl From<Sha256Digest> for String {
    fn from(digest: Sha256Digest) -> String {
        digest.to_string()
    }
}

impl fmt::Display for Sha256Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", HEXLOWER.encode(&self.0))
    }
}

impl JsonSchema for Sha256Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Sha256Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^sha256:[a-f0-9]{64}$" })
    }
}

/// A time in UTC, written as `YYYY-MM-DDThh:mm:ss[.f]Z` (RFC 3339; ).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UtcTime(pub Timestamp);

/// The form of a [`UtcTime`], without the fraction of the second.
const TIME_FORM: &[u8] = b"0000-00-00T00:00:00";

impl UtcTime {
    /// Returns the time of Unix seconds; `None` outside the years that can be written.
    pub fn from_unix_seconds(seconds: i64) -> Option<UtcTime> {
        Timestamp::from_second(seconds).ok().map(UtcTime)
    }

    /// Parses a time with the offset `Z` or `+00:00`. `None` for another form, and for times that do not exist.
    pub fn with_offset(text: &str) -> Option<UtcTime> {
        let zulu = text.strip_suffix("+00:00").map(|time| format!("{time}Z"));
        UtcTime::try_from(zulu.unwrap_or_else(|| text.to_owned())).ok()
    }

    /// Returns the time in Unix seconds, without the fraction.
    pub fn unix_seconds(self) -> i64 {
        self.0.as_second()
    }
}

impl TryFrom<String> for UtcTime {
    type Error = NotOfForm;

    fn try_from(text: String) -> Result<Self, NotOfForm> {
        let is_time = |text: &str| {
            let (seconds, rest) = text.split_at_checked(TIME_FORM.len())?;
            let fraction = rest.strip_suffix('Z')?;
            let has_form = seconds.bytes().zip(TIME_FORM).all(|(byte, form)| match form {
                b'0' => byte.is_ascii_digit(),
                other => byte == *other,
            });
            let digits = fraction.strip_prefix('.');
            let fraction_fits = digits.map_or(fraction.is_empty(), |digits| {
                (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
            });
            // Unix time has no leap seconds, so a time in one has no place in it.
            (has_form && fraction_fits && !seconds.ends_with("60")).then(|| text.parse().ok())?
        };
        is_time(&text).map(UtcTime).ok_or(NotOfForm("a time in UTC, YYYY-MM-DDThh:mm:ssZ"))
    }
}

impl From<UtcTime> for String {
    fn from(time: UtcTime) -> String {
        time.0.to_string()
    }
}

impl JsonSchema for UtcTime {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UtcTime".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "format": "date-time", "pattern": "Z$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_have_three_parts_and_an_organisation() {
        let agent = |text: &str| AgentId::try_from(text.to_owned());
        assert_eq!(
            agent("aha:acme-corp/ops/devops_1").map(|agent| agent.organization().to_owned()),
            Ok("acme-corp".into())
        );
        for bad in [
            "",
            "aha:",
            "aha:a/b",
            "aha:a/b/c/d",
            "aha:a//c",
            "aha:a/b/c ",
            "did:key:z6",
            "AHA:a/b/c",
            "aha:a/b/ç",
        ] {
            assert!(agent(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn identifiers_and_digests_have_lower_case_digits_only() {
        assert!(EnvelopeId::try_from("env:4a7c9f2b1e8d3a6f".to_owned()).is_ok());
        for bad in
            ["env:4A7C9F2B1E8D3A6F", "env:4a7c9f2b1e8d3a6", "ara:4a7c9f2b1e8d3a6f", "env:4a7c9f2b1e8d3a6f0"]
        {
            assert!(EnvelopeId::try_from(bad.to_owned()).is_err(), "{bad}");
        }
        let digest = Sha256Digest::of(b"").to_string();
        assert_eq!(Sha256Digest::try_from(digest.clone()), Ok(Sha256Digest::of(b"")));
        // the examples of the draft have 56 digits.
        assert!(Sha256Digest::try_from(digest[..digest.len() - 8].to_owned()).is_err());
        assert!(Sha256Digest::try_from(digest.to_uppercase()).is_err());
    }

    #[test]
    fn times_are_in_utc_and_exist() {
        for good in ["2026-04-08T14:00:00Z", "2024-02-29T23:59:59.999999999Z"] {
            assert!(UtcTime::try_from(good.to_owned()).is_ok(), "{good}");
        }
        for bad in [
            "2026-04-08T14:00:00+00:00",
            "2026-04-08 14:00:00Z",
            "2026-04-08t14:00:00Z",
            "2026-04-08T14:00:00.Z",
            "2026-02-29T00:00:00Z",
            "2026-12-31T23:59:60Z",
            "2026-04-08T24:00:00Z",
            "2026-04-08",
            "",
        ] {
            assert!(UtcTime::try_from(bad.to_owned()).is_err(), "{bad}");
        }
    }
}
