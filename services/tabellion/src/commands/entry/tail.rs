//! `tabellion entry tail`: prints new entries. An interrupted stream is resumed after the last printed entry. The
//! service's answers are not verified here; `tabellion verify` does that.

use clap::Args;
use client::{Begin, ClientError};
use serde_json::Value as Json;
use url::form_urlencoded::Serializer;

use super::EntryTable;
use super::search::Filters;
use crate::console::Failure;
use crate::context::Context;
use crate::service::ServiceArgs;

#[derive(Debug, Args)]
#[command(mut_arg("timeout", |timeout| timeout.hide(true)))]
pub struct Tail {
    /// Start after this leaf index
    #[arg(long, value_name = "LEAF")]
    after: Option<u64>,
    /// Start with the first entry
    #[arg(long, conflicts_with = "after")]
    from_start: bool,
    /// Exit after this number of entries
    #[arg(long, value_name = "ENTRIES")]
    count: Option<u64>,
    #[command(flatten)]
    filters: Filters,
    #[command(flatten)]
    service: ServiceArgs,
}

impl Tail {
    pub fn run(self, context: &Context) -> Result<(), Failure> {
        let begin = match self.after {
            Some(leaf) => Begin::After(leaf),
            None if self.from_start => Begin::Start,
            None => Begin::Now,
        };
        let filters = Serializer::new(String::new()).extend_pairs(self.filters.pairs()).finish();
        let service = self.service.connect(context)?;
        let mut events = service.client.events(begin, &filters).map_err(Failure::from)?;
        let table = EntryTable::of(&context.console);
        context.console.heading(|out| table.heading(out))?;
        let mut left = self.count.unwrap_or(u64::MAX);
        while left > 0 {
            let event = service.block_on(events.next())?;
            let entry: Json = serde_json::from_str(&event.data)
                .map_err(|error| ClientError::Nonsense(format!("leaf {}: {error}", event.index)))?;
            if !context.console.item(&entry, |out| table.row(out, &entry))? {
                return Ok(());
            }
            left -= 1;
        }
        Ok(())
    }
}
