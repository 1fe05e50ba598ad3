//! Check that the server keeps the commits that it acknowledges.

use store::StoreError;

use crate::error::of_failure;
use crate::session::{self, Server, close};

/// Reads the settings in a new session like the one that commits: a session keeps those with which it began.
pub(crate) async fn check(server: &Server) -> Result<(), StoreError> {
    let mut connection = server.connect(&session::SEQUENCER).await?;
    postgres::check_durability(&mut connection, &session::SEQUENCER).await.map_err(of_failure)?;
    close(connection).await;
    Ok(())
}
