//! Redaction of records before they are hashed and signed: secrets and personal data are replaced or left out, and
//! each omission is listed with its rule, count and place (section 5 of the draft: "configurable redaction rules",
//! "selective entry type recording").
//!
//! The texts are searched with expressions of linear time. The rules recognise secrets by their form: they find what
//! has this form, and cannot promise that nothing else is secret.

mod distinct;
mod fields;
mod listing;
mod rules;
mod selection;
mod split_key;
mod walk;

use std::collections::BTreeSet;

use registration::conversation::omission::NEVER_LEFT_OUT;
use serde_json::{Value, json};

pub(crate) use distinct::is_reference;
pub use fields::FieldPattern;
pub use listing::Redactions;
pub use rules::RedactionRule;
pub(crate) use rules::is_marker;
pub use selection::{EntryType, Selection};

/// What to leave out of a record.
#[derive(Clone, Debug)]
pub struct Redaction {
    /// Rules for texts. Default: [`RedactionRule::DEFAULT`].
    pub rules: BTreeSet<RedactionRule>,
    /// Values to leave out by their place.
    pub fields: Vec<FieldPattern>,
    /// Types of entries to keep.
    pub selection: Selection,
}

impl Default for Redaction {
    fn default() -> Self {
        Redaction {
            rules: RedactionRule::DEFAULT.into_iter().collect(),
            fields: Vec::new(),
            selection: Selection::default(),
        }
    }
}

impl Redaction {
    /// Checks that the patterns name nothing that a record cannot be without.
    ///
    /// # Errors
    /// The pattern, and what it names.
    pub fn check(&self) -> Result<(), String> {
        let named = |field: &FieldPattern| {
            let name = NEVER_LEFT_OUT.into_iter().find(|name| field.matches(&[(*name).to_owned()]))?;
            Some(format!("{field} names /{name}, which cannot be left out of a record"))
        };
        self.fields.iter().find_map(named).map_or(Ok(()), Err)
    }

    /// Redacts a record, and lists the omissions. Entries that are not selected are left out first; pointers of the
    /// other omissions are those of the remaining record.
    pub(crate) fn apply(&self, record: &mut Value) -> Redactions {
        let mut found = Redactions::default();
        self.selection.apply(record, &mut found);
        walk::redact(record, &self.rules, &self.fields, &mut found);
        found
    }

    /// Returns whether what is left out of an entry depends on its position among the entries.
    pub(crate) fn depends_on_positions(&self) -> bool {
        self.fields.iter().any(FieldPattern::names_a_position)
    }

    /// A text that differs for different settings.
    pub(crate) fn fingerprint(&self) -> String {
        let rules: Vec<&str> = self.rules.iter().map(|rule| rule.name()).collect();
        let fields: Vec<String> = self.fields.iter().map(ToString::to_string).collect();
        json!([rules, fields, self.selection.to_string()]).to_string()
    }
}
