//! Profiles: how much of a payload is understood, by content type.
//!
//! To add one: a kind with its name and content types here, its options in a variant of [`Profile`], and the same in
//! [`Record`](crate::Record).

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

/// How much of a payload is understood, and what the policy chooses about it.
#[derive(Clone, Debug, PartialEq)]
pub enum Profile {
    /// Nothing: bytes.
    Opaque,
    /// A VRF receipt.
    Vrf(VrfOptions),
    /// A wire Verdict of VAP.
    VapVerdict(VerdictOptions),
    /// A VAP gateway's audit record.
    VapAudit(AuditOptions),
    /// A set of public keys.
    JwkSet,
    /// An execution receipt.
    Aer(AerOptions),
    /// A conversation record.
    Conversation(ConversationOptions),
}

/// A profile without its options.
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

    /// What a policy calls it: the value of `profile`, and the table of its options.
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

    /// The content types that are always read so, and by no other profile.
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

    /// The bytes that a statement may have where the policy names no size.
    pub(super) fn default_max_size(&self) -> u64 {
        match self {
            Profile::Conversation(_) => MAX_STATEMENT,
            _ => DEFAULT_MAX_SIZE,
        }
    }

    /// What a policy calls it.
    pub fn name(&self) -> &'static str {
        self.kind().name()
    }

    /// The table of its options with every setting written out; `None` where there are none to choose.
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

    /// The profile of a content type, with the options in its table. The content type decides: none is read in two ways.
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

/// `profile` may be named, and only as what it is.
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
