//! Entries as clients read them.

pub mod entry_facts;
pub mod entry_view;
pub mod pages;
