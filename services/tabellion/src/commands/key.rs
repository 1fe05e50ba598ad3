//! temporary
use crate::cli::Context;
use crate::console::Failure;
#[derive(Debug, clap::Subcommand)]
pub enum Key {
    /// x
    X,
}
impl Key {
    pub fn run(self, _: &Context) -> Result<(), Failure> {
        Ok(())
    }
}
