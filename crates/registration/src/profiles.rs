//! The table of all profiles.

use std::sync::LazyLock;

use scitt::header::ContentType;

use crate::aer::AerOptions;
use crate::agentroa::{ChainProfile, PolicyDocumentProfile, RegistryOptions};
use crate::content_types::essence;
use crate::conversation::ConversationOptions;
use crate::jwk_set::JwkSetProfile;
use crate::opaque::OpaqueProfile;
use crate::profile::TypeProfile;
use crate::vap::{AuditOptions, VerdictOptions};
use crate::vrf::VrfOptions;

/// The profiles with their default options.
pub(crate) static PROFILES: LazyLock<[TypeProfile; 10]> = LazyLock::new(|| {
    [
        TypeProfile::new(OpaqueProfile),
        TypeProfile::new(VrfOptions::default()),
        TypeProfile::new(AerOptions::default()),
        TypeProfile::new(VerdictOptions::default()),
        TypeProfile::new(AuditOptions::default()),
        TypeProfile::new(JwkSetProfile),
        TypeProfile::new(ConversationOptions::default()),
        TypeProfile::new(RegistryOptions::default()),
        TypeProfile::new(PolicyDocumentProfile),
        TypeProfile::new(ChainProfile),
    ]
});

/// Returns the profile of a content type, which the content type alone determines.
pub(crate) fn profile_of(content_type: Option<&ContentType>) -> &'static TypeProfile {
    let media_type = content_type.and_then(ContentType::as_text).map(essence).unwrap_or_default();
    let parses = |profile: &&TypeProfile| profile.as_dyn().content_types().contains(&media_type.as_str());
    PROFILES.iter().find(parses).unwrap_or(&PROFILES[0])
}
