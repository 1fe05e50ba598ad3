//! Check that the server keeps the commits that it acknowledges.

use store::StoreError;

use crate::error::store_error;
use crate::session::{self, Server, close};

/// Settings that must not be `off`, each with the harm if it is, for the message.
const NEEDED: [(&str, &str); 3] = [
    ("fsync", "a power cut loses or corrupts committed data"),
    ("full_page_writes", "a power cut can leave torn pages"),
    ("synchronous_commit", "a crash loses commits that were acknowledged"),
];

/// Reads the settings in a new session like the one that commits: they may differ by database and role, and a
/// session keeps those with which it began.
pub(crate) async fn check(server: &Server) -> Result<(), StoreError> {
    let mut connection = server.connect(&session::SEQUENCER).await?;
    let names: Vec<String> = NEEDED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let off = sqlx::query_scalar!(
        r#"SELECT name AS "name!" FROM UNNEST($1::text[]) AS name WHERE current_setting(name) = 'off'"#,
        &names
    )
    .fetch_all(&mut connection)
    .await
    .map_err(store_error)?;
    close(connection).await;
    match NEEDED.iter().find(|(name, _)| off.iter().any(|setting| setting == name)) {
        None => Ok(()),
        Some((name, harm)) => {
            Err(StoreError::Refused(format!("{name} is off on the database server: {harm}; turn it on")))
        }
    }
}
