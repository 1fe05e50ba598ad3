//! Profiles: the parsers and rules for the payloads of particular content types.
//!
//! A profile implements [`Profile`] for the policy's options and [`ProfileRecord`] for what it parses, in a `profile.rs`
//! in its folder. `profiles.rs` lists all of them.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use scitt::header::{HashEnvelope, Header};
use serde_json::Value;

use crate::answers::{Answers, Questions};
use crate::authenticated::Authenticated;
use crate::demands::PermitDemands;
use crate::facts::Facts;
use crate::limits::DEFAULT_MAX_SIZE;
use crate::section::Section;
use crate::violation::{Place, RuleName, Violation};

/// A profile with the policy's options for it.
pub(crate) trait Profile: Any + fmt::Debug + Send + Sync {
    /// The name in policies: the value of `profile`, and the name of the table of options.
    fn name(&self) -> &'static str;

    /// The content types that this profile parses, and no other one.
    fn content_types(&self) -> &'static [&'static str];

    /// The maximum size in bytes of a statement whose type sets no `max_size`.
    fn default_max_size(&self) -> u64 {
        DEFAULT_MAX_SIZE
    }

    /// The setting that admits a payload's hash instead of the payload.
    fn hash_setting(&self) -> HashSetting {
        HashSetting::Type
    }

    /// Parses the policy's table of options.
    fn read_options(&self, section: &mut Section<'_>) -> TypeProfile;

    /// Serializes all options; `None` if the profile has none.
    fn options(&self) -> Option<Value>;

    /// The content type whose profile, with the policy's options for it, checks the records of this one; `None` for this
    /// profile itself.
    fn checked_by(&self) -> Option<&'static str> {
        None
    }

    /// Parses the payload of a statement with one of the [`content_types`](Self::content_types).
    fn read_record(&self, header: &Header, payload: &[u8]) -> Result<TypedRecord, Violation>;

    /// Parses a statement that contains the hash of such a payload (RFC 9995).
    fn read_hash(
        &self,
        _header: &Header,
        envelope: &HashEnvelope,
        _payload: &[u8],
    ) -> Result<TypedRecord, Violation> {
        check_hash_algorithm(envelope)?;
        Ok(TypedRecord::new(PayloadHash))
    }

    /// Returns whether the policy admits `application/json` as this profile's records.
    fn accepts_json(&self) -> bool {
        false
    }

    /// Parses an opaque payload that only the policy makes one of this profile's records.
    fn read_opaque(&self, _statement: &Authenticated<'_>) -> Result<Option<TypedRecord>, Violation> {
        Ok(None)
    }

    /// Adds the questions to the log that [`check`](Self::check) needs answered.
    fn questions(&self, _statement: &Authenticated<'_>, _record: &TypedRecord, _asked: &mut Questions) {}

    /// Checks a record against the policy's options and the log's answers, and returns its demands.
    fn check(
        &self,
        statement: &Authenticated<'_>,
        record: &TypedRecord,
        log: &Answers,
    ) -> Result<PermitDemands, Violation>;
}

/// The setting under which a policy admits the hash of a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HashSetting {
    /// `hash_envelope` of the content type.
    Type,
    /// An option of the profile. The text is the mistake of a policy that sets `hash_envelope`.
    Option(&'static str),
    /// None: the rules of the profile need the payload.
    None,
}

/// The content of a statement, as its profile parsed it.
pub(crate) trait ProfileRecord: Any + fmt::Debug + Send + Sync {
    /// Adds the facts of the record.
    fn facts(&self, facts: &mut Facts);

    /// The JSON of the payload, if the record keeps all of it.
    fn payload_json(&self) -> Option<&Value> {
        None
    }

    /// The document that a policy's expressions evaluate: the JSON of the payload; null if the record has no typed form.
    fn document(&self) -> Value {
        self.payload_json().cloned().unwrap_or_default()
    }
}

/// The profile of a content type, with the policy's options for it.
#[derive(Clone, Debug)]
pub struct TypeProfile(Arc<dyn Profile>);

impl TypeProfile {
    pub(crate) fn new(profile: impl Profile) -> TypeProfile {
        TypeProfile(Arc::new(profile))
    }

    pub(crate) fn as_dyn(&self) -> &dyn Profile {
        &*self.0
    }

    /// The name of the profile in policies.
    pub fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Returns the options of the profile, such as [`VrfOptions`](crate::vrf::VrfOptions), if they have this type.
    pub fn options_as<T: Any>(&self) -> Option<&T> {
        let options: &dyn Any = &*self.0;
        options.downcast_ref()
    }

    /// Returns whether payloads of this content type are not parsed.
    pub(crate) fn is_opaque(&self) -> bool {
        self.0.content_types().is_empty()
    }
}

impl PartialEq for TypeProfile {
    fn eq(&self, other: &TypeProfile) -> bool {
        (self.0.name(), self.0.options()) == (other.0.name(), other.0.options())
    }
}

/// A record of one of the profiles.
#[derive(Clone, Debug)]
pub struct TypedRecord(Arc<dyn ProfileRecord>);

impl TypedRecord {
    pub(crate) fn new(record: impl ProfileRecord) -> TypedRecord {
        TypedRecord(Arc::new(record))
    }

    pub(crate) fn as_dyn(&self) -> &dyn ProfileRecord {
        &*self.0
    }

    /// Returns the record, such as [`VrfRecord`](crate::vrf::VrfRecord), if it has this type.
    pub fn get<T: Any>(&self) -> Option<&T> {
        let record: &dyn Any = &*self.0;
        record.downcast_ref()
    }
}

/// Refuses a record of another profile.
pub(crate) fn other_record() -> Violation {
    Violation {
        rule: RuleName::fixed("profile"),
        place: Place::protected("3"),
        detail: "the profile of this content type cannot read the statement".to_owned(),
    }
}

/// The hash of a payload that no profile describes further (RFC 9995).
#[derive(Clone, Copy, Debug)]
pub struct PayloadHash;

impl ProfileRecord for PayloadHash {
    fn facts(&self, facts: &mut Facts) {
        facts.put("hash_envelope", true.into());
    }
}

/// Admits SHA-256, SHA-384 and SHA-512, whose digest lengths are checked and whose strength is undisputed.
pub(crate) fn check_hash_algorithm(envelope: &HashEnvelope) -> Result<(), Violation> {
    match envelope.algorithm {
        -16 | -43 | -44 => Ok(()),
        other => Err(Violation {
            rule: RuleName::fixed("hash-envelope-algorithm"),
            place: Place::protected("258"),
            detail: format!(
                "hash algorithm {other} is not one of SHA-256 (-16), SHA-384 (-43), SHA-512 (-44)"
            ),
        }),
    }
}
