//! Profiles: the parsers and checks for payloads of particular content types.
//!
//! To add a profile, add a kind with its name and content types, a variant of [`Profile`] with its options, and a
//! variant of [`Record`](crate::Record).

use scitt::header::ContentType;
use serde_json::Value;

use super::essence;
use super::section::{Notebook, Section, text};
use crate::aer::{self, AerOptions};
use crate::conversation::{AGENT_CONVERSATION, ConversationOptions};
use crate::jwk_set;
use crate::limits::{DEFAULT_MAX_SIZE, MAX_STATEMENT};
use crate::vap::{self, AuditOptions, VerdictOptions};
use crate::vrf::{self, VrfOptions};

/// The profile of a content type, with the policy's options for it.
#[derive(Clone, Debug, PartialEq)]
pub enum Profile {
    /// The payload is not parsed.
    Opaque,
    /// Verification receipts (VRF).
    Vrf(VrfOptions),
    /// Wire Verdicts of VAP.
    VapVerdict(VerdictOptions),
    /// Audit records of a VAP gateway.
    VapAudit(AuditOptions),
    /// JWK Sets of public keys.
    JwkSet,
    /// Execution receipts of AgentROA.
    Aer(AerOptions),
    /// Conversation records.
    Conversation(ConversationOptions),
}

/// A profile without options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Opaque,
    Vrf,
    VapVerdict,
    VapAudit,
    JwkSet,
    Aer,
    Conversation,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Opaque,
        Kind::Vrf,
        Kind::Aer,
        Kind::VapVerdict,
        Kind::VapAudit,
        Kind::JwkSet,
        Kind::Conversation,
    ];

    /// The name in policies: the value of `profile`, and the name of the table of options.
    const fn name(self) -> &'static str {
        match self {
            Kind::Opaque => "opaque",
            Kind::Vrf => "vrf",
            Kind::VapVerdict => "vap_verdict",
            Kind::VapAudit => "vap_audit",
            Kind::JwkSet => "jwk_set",
            Kind::Aer => "aer",
            Kind::Conversation => "conversation",
        }
    }

    /// The content types that this profile parses, and no other one.
    const fn content_types(self) -> &'static [&'static str] {
        match self {
            Kind::Opaque => &[],
            Kind::Vrf => &[vrf::VRF_CBOR, vrf::VRF_JSON],
            Kind::VapVerdict => &[vap::VAP_VERDICT],
            Kind::VapAudit => &[vap::VAP_AUDIT],
            Kind::JwkSet => &[jwk_set::JWK_SET],
            Kind::Aer => &[aer::AER_JSON],
            Kind::Conversation => &[AGENT_CONVERSATION],
        }
    }

    fn of(content_type: Option<&ContentType>) -> Kind {
        let name = content_type.and_then(ContentType::as_text).map(essence).unwrap_or_default();
        let reads = |kind: &Kind| kind.content_types().contains(&name.as_str());
        Kind::ALL.into_iter().find(reads).unwrap_or(Kind::Opaque)
    }

    fn read_options(self, section: &mut Section<'_>) -> Profile {
        match self {
            Kind::Opaque => Profile::Opaque,
            Kind::Vrf => Profile::Vrf(VrfOptions::read(section)),
            Kind::VapVerdict => Profile::VapVerdict(VerdictOptions::read(section)),
            Kind::VapAudit => Profile::VapAudit(AuditOptions::read(section)),
            Kind::JwkSet => Profile::JwkSet,
            Kind::Aer => Profile::Aer(AerOptions::read(section)),
            Kind::Conversation => Profile::Conversation(ConversationOptions::read(section)),
        }
    }
}

impl Profile {
    fn kind(&self) -> Kind {
        match self {
            Profile::Opaque => Kind::Opaque,
            Profile::Vrf(_) => Kind::Vrf,
            Profile::VapVerdict(_) => Kind::VapVerdict,
            Profile::VapAudit(_) => Kind::VapAudit,
            Profile::JwkSet => Kind::JwkSet,
            Profile::Aer(_) => Kind::Aer,
            Profile::Conversation(_) => Kind::Conversation,
        }
    }

    /// The maximum size in bytes of a statement whose type sets no `max_size`.
    pub(super) fn default_max_size(&self) -> u64 {
        match self {
            Profile::Conversation(_) => MAX_STATEMENT,
            _ => DEFAULT_MAX_SIZE,
        }
    }

    /// The name of the profile in policies.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// Serializes all options of the profile; `None` if it has none.
    pub(super) fn options(&self) -> Option<Value> {
        match self {
            Profile::Opaque | Profile::JwkSet => None,
            Profile::Vrf(options) => Some(options.document()),
            Profile::VapVerdict(options) => Some(options.document()),
            Profile::VapAudit(options) => Some(options.document()),
            Profile::Aer(options) => Some(options.document()),
            Profile::Conversation(options) => Some(options.document()),
        }
    }

    /// Parses the profile of a content type with its options. The content type alone determines the profile.
    pub(super) fn read(
        section: &mut Section<'_>,
        content_type: Option<&ContentType>,
        notes: &Notebook,
    ) -> Profile {
        let own = Kind::of(content_type);
        check_name(section, own);
        for other in Kind::ALL.into_iter().filter(|kind| *kind != own && *kind != Kind::Opaque) {
            if section.optional(other.name(), Ok).is_some() {
                section.note(
                    other.name(),
                    format!("only {} have these options", other.content_types().join(", ")),
                );
            }
        }
        let empty = Value::Object(serde_json::Map::new());
        let at = section.path(own.name());
        let table = if own == Kind::Opaque { None } else { section.optional(own.name(), Ok) };
        match Section::open(table.unwrap_or(&empty), &at, notes) {
            Some(mut options) => {
                let profile = own.read_options(&mut options);
                options.close();
                profile
            }
            None => Profile::Opaque,
        }
    }
}

/// Checks that `profile`, if it is set, names the profile of the content type.
fn check_name(section: &mut Section<'_>, own: Kind) {
    let Some(named) = section.optional("profile", |value| text(value).map(str::to_owned)) else { return };
    let Some(named) = Kind::ALL.into_iter().find(|kind| kind.name() == named) else {
        let known: Vec<&str> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        return section.note("profile", format!("{named:?} is not one of {}", known.join(", ")));
    };
    if named != own && own == Kind::Opaque {
        let types = named.content_types().join(" and ");
        section.note("profile", format!("only {types} are read as {}", named.name()));
    } else if named != own {
        section.note("profile", format!("this content type is always read as {}", own.name()));
    }
}
