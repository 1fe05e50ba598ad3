//! The claims of the entries so far, for a source that keeps no index of them.
//!
//! Whoever audits from the outside has no table of guards, and needs none to believe in: what the log may hold once is in
//! the entries before, each decided again. This takes memory with every claim. An entry whose bytes are gone made claims that
//! nobody can know any more; from there on, an absence proves nothing.

use std::collections::{BTreeMap, HashMap};

use data_encoding::HEXLOWER;
use merkle::LeafIndex;
use registration::{Answers, Guard, Questions};
use serde::{Deserialize, Serialize};

/// All claims below a leaf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Written", try_from = "Written")]
pub(crate) struct Claims {
    held: HashMap<Vec<u8>, u64>,
    incomplete: bool,
}

/// The form in a state.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Written {
    held: BTreeMap<String, u64>,
    incomplete: bool,
}

impl From<Claims> for Written {
    fn from(claims: Claims) -> Self {
        let held = claims.held.iter().map(|(key, leaf)| (HEXLOWER.encode(key), *leaf)).collect();
        Written { held, incomplete: claims.incomplete }
    }
}

impl TryFrom<Written> for Claims {
    type Error = data_encoding::DecodeError;

    fn try_from(written: Written) -> Result<Self, Self::Error> {
        let read = |(key, leaf): (String, u64)| Ok((HEXLOWER.decode(key.as_bytes())?, leaf));
        let held = written.held.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Claims { held, incomplete: written.incomplete })
    }
}

/// The claims below a leaf of a page: those before the page, and those of the page so far.
#[derive(Debug)]
pub(crate) struct Ahead<'c> {
    before: &'c Claims,
    page: Claims,
}

impl<'c> Ahead<'c> {
    pub(crate) fn of(before: &'c Claims) -> Self {
        Self { before, page: Claims::default() }
    }

    /// Answers what is asked about claims; `false`: something may be wrong, as claims are missing.
    pub(crate) fn answer(&self, questions: &Questions, answers: &mut Answers) -> bool {
        let mut sure = true;
        for guard in &questions.guards {
            match self.holder(guard) {
                Some(leaf) => answers.put_guard(guard.clone(), leaf),
                None => sure &= !self.is_incomplete(),
            }
        }
        sure
    }

    /// Takes up a claim; the leaf that has made it before, if one has.
    pub(crate) fn take(&mut self, guard: &Guard, leaf: LeafIndex) -> Option<LeafIndex> {
        let holder = self.holder(guard);
        if holder.is_none() {
            self.page.held.insert(guard.as_bytes().to_vec(), leaf.get());
        }
        holder
    }

    /// An entry made claims that are not known.
    pub(crate) fn miss(&mut self) {
        self.page.incomplete = true;
    }

    /// What the page adds.
    pub(crate) fn into_page(self) -> Claims {
        self.page
    }

    fn holder(&self, guard: &Guard) -> Option<LeafIndex> {
        let held = self.page.held.get(guard.as_bytes()).or_else(|| self.before.held.get(guard.as_bytes()));
        held.map(|leaf| LeafIndex::new(*leaf))
    }

    fn is_incomplete(&self) -> bool {
        self.before.incomplete || self.page.incomplete
    }
}

impl Claims {
    /// Adds those of a page.
    pub(crate) fn add(&mut self, page: Claims) {
        self.held.extend(page.held);
        self.incomplete |= page.incomplete;
    }
}

#[cfg(test)]
mod tests {
    use merkle::EntryDigest;
    use registration::erasure::permanent_guard;

    use super::*;

    #[test]
    fn claims_are_held_once_and_survive_being_kept() {
        let guard = |n: u8| permanent_guard(&EntryDigest::of(&[n]));
        let mut claims = Claims::default();
        let mut ahead = Ahead::of(&claims);
        assert_eq!(ahead.take(&guard(1), LeafIndex::new(5)), None);
        assert_eq!(ahead.take(&guard(1), LeafIndex::new(6)), Some(LeafIndex::new(5)));
        let page = ahead.into_page();
        claims.add(page);
        let kept = serde_json::to_string(&claims).unwrap();
        assert_eq!(serde_json::from_str::<Claims>(&kept).unwrap(), claims);
        assert!(serde_json::from_str::<Claims>(r#"{"held":{"xy":1},"incomplete":false}"#).is_err());
    }

    #[test]
    fn after_an_entry_that_nobody_can_read_an_absence_proves_nothing() {
        let asked = Questions { digests: Vec::new(), guards: vec![permanent_guard(&EntryDigest::of(b"x"))] };
        let claims = Claims::default();
        let mut ahead = Ahead::of(&claims);
        let mut answers = Answers::none();
        assert!(ahead.answer(&asked, &mut answers));
        ahead.miss();
        assert!(!ahead.answer(&asked, &mut answers));
        ahead.take(&asked.guards[0], LeafIndex::new(3));
        assert!(ahead.answer(&asked, &mut answers));
        assert_eq!(answers.guard(&asked.guards[0]), Some(LeafIndex::new(3)));
    }
}
