//! The records that the conversation records on the page of a session name as the one before them (`previous-record`), as far
//! as they are not the ones that the log has there.
//!
//! Several chains may be interleaved in one session, such as those of an agent and its subagents. So a record is in its
//! place if the record that it names is registered before it, and no other record of the same issuer follows that one already.
//! A record may be registered several times, with a statement of its own each time: these are copies of one record.

use std::collections::BTreeMap;

use explorer::PreviousRecord;
use registration::LookupKind;
use registration::conversation::AGENT_CONVERSATION;
use serde_json::Value;

use super::delegations::PageReader;
use crate::edge::problem::Problem;
use crate::index::term;
use crate::limits::{RECORD_COPIES, SESSION_PREVIOUS_RECORDS};
use crate::routes::entry_query::sha256_text;
use crate::view::entry_view::EntryView;
use crate::view::pages::views;

/// Finds what is wrong with the records that these entries of a session name, by the leaf of the entry that names it.
pub async fn misplaced(
    reader: PageReader<'_>,
    session: &str,
    entries: &[EntryView],
) -> Result<BTreeMap<u64, PreviousRecord>, Problem> {
    let mut chains =
        PreviousRecords { reader, session, leaves: leaves(entries), followers: BTreeMap::new(), lookups: 0 };
    let mut misplaced = BTreeMap::new();
    for entry in entries {
        let Some(previous) = text(entry, "previous_record") else { continue };
        let found = chains.look_at(entry, previous).await?;
        misplaced.extend(found.map(|record| (entry.index, record)));
    }
    Ok(misplaced)
}

/// The first leaf of each conversation record among these entries, by the digest of the record.
fn leaves(entries: &[EntryView]) -> BTreeMap<&str, u64> {
    let mut leaves = BTreeMap::new();
    for entry in entries {
        if let Some(digest) = text(entry, "content_digest") {
            leaves.entry(digest).or_insert(entry.index);
        }
    }
    leaves
}

fn text<'e>(entry: &'e EntryView, name: &str) -> Option<&'e str> {
    entry.facts.get(name).and_then(Value::as_str)
}

/// Returns whether these are the digests of one record.
fn are_copies(one: Option<&str>, other: Option<&str>) -> bool {
    one.is_some() && one == other
}

/// The chains of conversation records on a page.
struct PreviousRecords<'a> {
    reader: PageReader<'a>,
    session: &'a str,
    leaves: BTreeMap<&'a str, u64>,
    /// The first record of the page that follows a record, by issuer and digest.
    followers: BTreeMap<(Option<&'a str>, String), Follower<'a>>,
    /// Number of records that were looked up because they are not on the page before the entry that names them.
    lookups: usize,
}

/// A record that follows another.
#[derive(Clone, Copy)]
struct Follower<'a> {
    leaf: u64,
    digest: Option<&'a str>,
}

impl<'a> PreviousRecords<'a> {
    /// Finds what is wrong with the record that an entry names. Entries come in the order of their leaves.
    async fn look_at(
        &mut self,
        entry: &'a EntryView,
        previous: &str,
    ) -> Result<Option<PreviousRecord>, Problem> {
        let Some(digest) = sha256_text(previous) else {
            return Ok(Some(PreviousRecord::Missing(previous.to_owned())));
        };
        let issuer = entry.iss.as_deref();
        let own = Follower { leaf: entry.index, digest: text(entry, "content_digest") };
        let earlier = self.followers.get(&(issuer, digest.clone())).copied();
        let earlier = earlier.filter(|other| !are_copies(other.digest, own.digest));
        let misplaced = match self.leaves.get(digest.as_str()).copied() {
            Some(leaf) if leaf < entry.index => earlier.map(|other| PreviousRecord::Followed(other.leaf)),
            // The page may begin after the first copy.
            _ if self.lookups == SESSION_PREVIOUS_RECORDS => return Ok(Some(PreviousRecord::LeftOut)),
            _ => self.look_up(entry, &digest).await?,
        };
        self.followers.entry((issuer, digest)).or_insert(own);
        Ok(misplaced)
    }

    /// Finds what is wrong with a record that is not on the page before an entry that names it.
    async fn look_up(&mut self, entry: &EntryView, digest: &str) -> Result<Option<PreviousRecord>, Problem> {
        self.lookups += 1;
        let copies = self.reader.search(vec![term(LookupKind::PayloadDigest, digest)], RECORD_COPIES).await?;
        let Some(leaf) = copies.first() else {
            return Ok(Some(PreviousRecord::Missing(digest.to_owned())));
        };
        if leaf.get() > entry.index {
            return Ok(Some(PreviousRecord::Later(leaf.get())));
        }
        let mut of_followers = vec![
            term(LookupKind::Digest, digest),
            term(LookupKind::Session, self.session),
            term(LookupKind::ContentType, AGENT_CONVERSATION),
        ];
        of_followers.extend(entry.iss.as_deref().map(|issuer| term(LookupKind::Issuer, issuer)));
        // Each copy of the record has the term of its own digest.
        let found = self.reader.search(of_followers, RECORD_COPIES).await?;
        let is_whole =
            found.len() < RECORD_COPIES || found.last().is_some_and(|leaf| leaf.get() >= entry.index);
        let earlier = found.into_iter().filter(|leaf| leaf.get() < entry.index && !copies.contains(leaf));
        for view in views(&self.reader.app.log, &earlier.collect::<Vec<_>>()).await? {
            let is_follower = text(&view, "previous_record").and_then(sha256_text).as_deref() == Some(digest);
            if is_follower && !are_copies(text(&view, "content_digest"), text(entry, "content_digest")) {
                return Ok(Some(PreviousRecord::Followed(view.index)));
            }
        }
        Ok((!is_whole).then_some(PreviousRecord::LeftOut))
    }
}
