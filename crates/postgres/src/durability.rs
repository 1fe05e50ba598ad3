//! Check that the server keeps the commits that it acknowledges.

use sqlx::PgConnection;

use crate::failure::PostgresFailure;
use crate::server::SessionRole;

/// Settings that must not be `off`, each with the harm if it is, for the message.
const NEEDED: [(&str, &str); 3] = [
    ("fsync", "a power cut loses or corrupts committed data"),
    ("full_page_writes", "a power cut can leave torn pages"),
    ("synchronous_commit", "a crash loses commits that were acknowledged"),
];

/// Checks the settings in force in a session, which may differ by database and role.
///
/// # Errors
///
/// [`PostgresFailure::Refused`] if an acknowledged commit can be lost, or if a setting of the role is not in force; any
/// other for the server's.
pub async fn check_durability(session: &mut PgConnection, role: &SessionRole) -> Result<(), PostgresFailure> {
    role.check(session).await?;
    let names: Vec<&str> = NEEDED.iter().map(|(name, _)| *name).collect();
    let select = "SELECT name FROM UNNEST($1::text[]) AS name WHERE current_setting(name) = 'off'";
    let off: Vec<String> = sqlx::query_scalar(select).bind(names).fetch_all(session).await?;
    match NEEDED.iter().find(|(name, _)| off.iter().any(|setting| setting == name)) {
        None => Ok(()),
        Some((name, harm)) => {
            Err(PostgresFailure::Refused(format!("{name} is off on the database server: {harm}; turn it on")))
        }
    }
}
