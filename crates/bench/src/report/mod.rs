//! Reports of a result: a table for terminals, and an HTML page with plots.

mod html;
mod plot;
mod table;

pub use html::html;
pub use table::text;
