//! `tabellion agent`: an agent as its verification receipts show it.

mod view;

use clap::Subcommand;

use crate::console::Failure;
use crate::context::Context;
use view::View;

#[derive(Debug, Subcommand)]
#[command(before_help = "example:  tabellion agent view did:web:agent.example")]
pub enum Agent {
    /// Count an agent's receipts (VRF), each one verified
    #[command(before_help = "example:  tabellion agent view did:web:agent.example")]
    View(View),
}

impl Agent {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        match self {
            Self::View(view) => view.run(context),
        }
    }
}
