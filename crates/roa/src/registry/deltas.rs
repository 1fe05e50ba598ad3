//! Lists of revocation deltas: a file beside the registry, or the body of an HTTP response.

use jose::json::{self, JsonError, JsonErrorKind};
use serde_json::value::RawValue;

use super::{RegistryError, RevocationDelta};
use crate::limits::{DELTAS, MAX_DELTAS};
use crate::signed::Signed;

/// The newest deltas of a registry, oldest first. Nothing in it is verified yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeltaList(Vec<Signed<RevocationDelta>>);

impl DeltaList {
    /// Parses a JSON array of at most [`MAX_DELTAS`] signed deltas.
    ///
    /// # Errors
    /// [`JsonError`] with the pointer of the delta, or of its member, that is at fault.
    pub fn parse(text: &[u8]) -> Result<DeltaList, JsonError> {
        let objects: Vec<&RawValue> = json::check(text, DELTAS)?.read()?;
        if objects.len() > MAX_DELTAS {
            let kind =
                JsonErrorKind::Shape(format!("{} deltas, at most {MAX_DELTAS} are read", objects.len()));
            return Err(JsonError { pointer: String::new(), offset: 0, kind });
        }
        let deltas = objects.iter().enumerate().map(|(position, object)| {
            let within =
                |error: JsonError| JsonError { pointer: format!("/{position}{}", error.pointer), ..error };
            Signed::parse(object.get().as_bytes()).map_err(within)
        });
        deltas.collect::<Result<_, _>>().map(DeltaList)
    }

    /// Appends a delta, and drops the oldest ones above [`MAX_DELTAS`].
    ///
    /// # Errors
    /// [`RegistryError::OtherRegistry`] or [`RegistryError::Rollback`] if the delta does not come after the newest one.
    pub fn push(&mut self, delta: Signed<RevocationDelta>) -> Result<(), RegistryError> {
        if let Some(newest) = self.0.last().map(Signed::document) {
            let (expected, found) = (&newest.registry_id, &delta.document().registry_id);
            if found != expected {
                return Err(RegistryError::other(expected, found));
            }
            let (current, found) = (newest.version(), delta.document().version());
            if found <= current {
                return Err(RegistryError::Rollback { current, found });
            }
        }
        self.0.push(delta);
        self.0.drain(..self.0.len().saturating_sub(MAX_DELTAS));
        Ok(())
    }

    /// Returns the deltas, oldest first.
    pub fn iter(&self) -> impl Iterator<Item = &Signed<RevocationDelta>> {
        self.0.iter()
    }

    /// Returns the canonical JSON of the list.
    pub fn canonical(&self) -> Vec<u8> {
        let objects: Vec<&[u8]> = self.0.iter().map(Signed::canonical).collect();
        let mut text = vec![b'['];
        text.extend(objects.join(&b','));
        text.push(b']');
        text
    }
}
