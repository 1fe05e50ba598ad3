//! The settings of a content type's profile: its name and its table of options.

use scitt::header::ContentType;
use serde_json::Value;

use crate::opaque::OpaqueProfile;
use crate::profile::TypeProfile;
use crate::profiles::{PROFILES, profile_of};
use crate::section::{Notebook, Section, text};

/// Parses the profile of a content type with its options.
pub(super) fn read(
    section: &mut Section<'_>,
    content_type: Option<&ContentType>,
    notes: &Notebook,
) -> TypeProfile {
    let own = profile_of(content_type);
    check_name(section, own);
    for other in PROFILES.iter().filter(|other| other.name() != own.name() && !other.is_opaque()) {
        if section.optional(other.name(), Ok).is_some() {
            section.note(
                other.name(),
                format!("only {} have these options", other.as_dyn().content_types().join(", ")),
            );
        }
    }
    let empty = Value::Object(serde_json::Map::new());
    let at = section.path(own.name());
    let table = if own.is_opaque() { None } else { section.optional(own.name(), Ok) };
    match Section::open(table.unwrap_or(&empty), &at, notes) {
        Some(mut options) => {
            let profile = own.as_dyn().read_options(&mut options);
            options.close();
            profile
        }
        None => TypeProfile::new(OpaqueProfile),
    }
}

/// Checks that `profile`, if it is set, names the profile of the content type.
fn check_name(section: &mut Section<'_>, own: &TypeProfile) {
    let Some(name) = section.optional("profile", |value| text(value).map(str::to_owned)) else { return };
    let Some(named) = PROFILES.iter().find(|profile| profile.name() == name) else {
        let known: Vec<&str> = PROFILES.iter().map(TypeProfile::name).collect();
        return section.note("profile", format!("{name:?} is not one of {}", known.join(", ")));
    };
    if named.name() != own.name() && own.is_opaque() {
        let types = named.as_dyn().content_types().join(" and ");
        section.note("profile", format!("only {types} are read as {}", named.name()));
    } else if named.name() != own.name() {
        section.note("profile", format!("this content type is always read as {}", own.name()));
    }
}
