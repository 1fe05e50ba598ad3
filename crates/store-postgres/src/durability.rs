//! Check that the server keeps the commits that it acknowledges.

use sqlx::PgConnection;
use store::StoreError;

use crate::error::of_failure;
use crate::session::{self, Server, close};

/// Opens a session that commits batches, and checks the settings in it: a session keeps those with which it began.
pub(crate) async fn connect(server: &Server) -> Result<PgConnection, StoreError> {
    let mut connection = server.connect(&session::SEQUENCER).await?;
    postgres::check_durability(&mut connection, &session::SEQUENCER).await.map_err(of_failure)?;
    Ok(connection)
}

/// Checks the settings in a new session like the one that commits.
pub(crate) async fn check(server: &Server) -> Result<(), StoreError> {
    close(connect(server).await?).await;
    Ok(())
}
