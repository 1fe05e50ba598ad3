//! temporary
use crate::cli::Context;
use crate::console::Failure;
#[derive(Debug, clap::Subcommand)]
pub enum Log {
    /// x
    X,
}
impl Log {
    pub fn run(self, _: &Context) -> Result<(), Failure> {
        Ok(())
    }
}
