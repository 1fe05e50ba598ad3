//! A server that would forget what it acknowledged is not used.

use sqlx::PgPool;
use store::StoreError;

use crate::error::store_error;

/// What each setting protects, for the message.
const NEEDED: [(&str, &str); 3] = [
    ("fsync", "a power cut loses or mixes up what was committed"),
    ("full_page_writes", "a power cut can leave torn pages"),
    ("synchronous_commit", "a crash loses commits that were acknowledged"),
];

/// Asks a session like the one that commits: the settings may differ by database and role.
pub(crate) async fn check(pool: &PgPool) -> Result<(), StoreError> {
    let names: Vec<String> = NEEDED.iter().map(|(name, _)| (*name).to_owned()).collect();
    let off = sqlx::query_scalar!(
        r#"SELECT name AS "name!" FROM UNNEST($1::text[]) AS name WHERE current_setting(name) = 'off'"#,
        &names
    )
    .fetch_all(pool)
    .await
    .map_err(store_error)?;
    match NEEDED.iter().find(|(name, _)| off.iter().any(|setting| setting == name)) {
        None => Ok(()),
        Some((name, harm)) => {
            Err(StoreError::Refused(format!("{name} is off on the database server: {harm}; turn it on")))
        }
    }
}
