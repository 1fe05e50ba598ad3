//! The entries in a file, compared with the leaves that the index names.

use std::collections::{BTreeMap, BTreeSet};

use bundle::BundleVerdict;
use lookup_tree::BlindCode;
use merkle::verify::inclusion;
use merkle::{LeafIndex, RootHash, TreeSize};
use registration::{Lookup, LookupKind};
use scitt::SignedStatement;
use verifier::{Check, CheckName, Code, StatementFacts};

use crate::answer::{ErasedEntry, SearchAnswer};
use crate::pages::ProvenPages;
use crate::statement_terms::{StatementTerms, search_term};
use crate::verdict::{AnswerGap, FoundEntry, failed, passed};

/// The tree of the checkpoint.
#[derive(Clone, Copy)]
pub(crate) struct AnswerTree {
    pub(crate) size: TreeSize,
    pub(crate) root: RootHash,
}

impl AnswerTree {
    /// The tree of the checkpoint in the file; `None` if that cannot be read.
    pub(crate) fn of(evidence: &BundleVerdict) -> Option<Self> {
        let facts = evidence.checkpoint.checkpoint.as_ref()?;
        Some(Self { size: TreeSize::new(facts.tree_size), root: facts.root.parse().ok()? })
    }
}

/// The entries that the answer found, what it leaves open, and the check of the entries in the file.
#[derive(Default)]
pub(crate) struct Comparison {
    pub(crate) found: Vec<FoundEntry>,
    pub(crate) gaps: Vec<AnswerGap>,
    pub(crate) checks: Vec<Check>,
}

/// Compares the entries in the file with the proven leaves.
pub(crate) fn compare(
    answer: &SearchAnswer,
    evidence: &BundleVerdict,
    pages: &ProvenPages,
    tree: AnswerTree,
) -> Comparison {
    let mut entries = FileEntries::read(answer, evidence, pages);
    pages.candidates.iter().for_each(|leaf| entries.compare_candidate(*leaf));
    pages.blind.iter().for_each(|(leaf, code)| entries.explain_blind(*leaf, *code, tree));
    entries.read_later(tree);
    entries.refuse_unneeded();
    entries.conclude()
}

/// An entry in the file.
struct FileEntry<'a> {
    facts: &'a StatementFacts,
    terms: StatementTerms,
}

struct FileEntries<'a> {
    answer: &'a SearchAnswer,
    pages: &'a ProvenPages,
    entries: BTreeMap<LeafIndex, FileEntry<'a>>,
    /// Leaves of the entries that are part of the answer.
    needed: BTreeSet<LeafIndex>,
    found: BTreeSet<LeafIndex>,
    gaps: BTreeMap<LeafIndex, AnswerGap>,
    faults: Vec<(Code, String)>,
}

impl<'a> FileEntries<'a> {
    fn read(answer: &'a SearchAnswer, evidence: &'a BundleVerdict, pages: &'a ProvenPages) -> Self {
        let mut entries = BTreeMap::new();
        for (entry, verdict) in answer.evidence.entries.iter().zip(&evidence.entries) {
            // An entry that is not a statement has failed already.
            let Ok(statement) = SignedStatement::parse(entry.statement.clone()) else { continue };
            let Some(facts) = &verdict.statement else { continue };
            let terms = StatementTerms::read(&statement, entry.payload.as_deref());
            entries.insert(LeafIndex::new(entry.proof.index), FileEntry { facts, terms });
        }
        Self {
            answer,
            pages,
            entries,
            needed: BTreeSet::from([pages.head.leaf]),
            found: BTreeSet::new(),
            gaps: BTreeMap::new(),
            faults: Vec::new(),
        }
    }

    /// Checks that the entry at a leaf which the index names is in the file, and has the proven terms.
    fn compare_candidate(&mut self, leaf: LeafIndex) {
        let Some(entry) = self.entries.get(&leaf) else {
            return self.fault(Code::EntryMissing, format!("the entry at leaf {leaf} is not in the file"));
        };
        let lacks_proven = self.pages.terms.iter().any(|term| !entry.terms.has_key_of(term));
        if lacks_proven && entry.terms.is_whole {
            let why = format!("the entry at leaf {leaf} lacks a term for which the index names it");
            return self.fault(Code::IndexContradicted, why);
        }
        self.take(leaf);
    }

    /// Counts the entry at this leaf as found if it has all terms of the question, and as a gap if it may have them.
    fn take(&mut self, leaf: LeafIndex) {
        self.needed.insert(leaf);
        let Some(entry) = self.entries.get(&leaf) else { return };
        if self.answer.question.terms.iter().all(|term| entry.terms.has(term)) {
            self.found.insert(leaf);
        } else if !entry.terms.is_whole {
            self.unread(leaf, BlindCode::Unreadable);
        }
    }

    /// Notes what the index says about an entry that may have any term.
    fn explain_blind(&mut self, leaf: LeafIndex, code: BlindCode, tree: AnswerTree) {
        match code {
            BlindCode::Erased => match self.erasure_of(leaf, tree) {
                Ok(gap) => {
                    self.gaps.insert(leaf, gap);
                }
                Err((code, why)) => self.fault(code, why),
            },
            _ if self.found.contains(&leaf) => {}
            _ => {
                self.needed.insert(leaf);
                self.unread(leaf, code);
            }
        }
    }

    fn unread(&mut self, leaf: LeafIndex, why: BlindCode) {
        self.gaps.insert(leaf, AnswerGap::Unread { leaf: leaf.get(), why });
    }

    /// Finds the statement that erased the entry at a leaf.
    fn erasure_of(&mut self, leaf: LeafIndex, tree: AnswerTree) -> Result<AnswerGap, (Code, String)> {
        let missing = |what: String| (Code::EntryMissing, what);
        let erased = self.answer.erased.iter().find(|erased| erased.leaf == leaf);
        let ErasedEntry { entry, path, .. } =
            erased.ok_or_else(|| missing(format!("the erased entry at leaf {leaf} is not in the file")))?;
        inclusion(entry.leaf_hash(), leaf, tree.size, path, tree.root)
            .map_err(|why| (Code::TlogProofMismatch, format!("the erased entry at leaf {leaf}: {why}")))?;
        let id = entry.to_string();
        let erases = search_term(&Lookup::new(LookupKind::Erasure, &id));
        let by = self.entries.iter().find(|(_, entry)| entry.terms.has(&erases)).map(|(by, _)| *by);
        let by =
            by.ok_or_else(|| missing(format!("the statement that erased leaf {leaf} is not in the file")))?;
        self.needed.insert(by);
        Ok(AnswerGap::Erased { leaf: leaf.get(), entry: id, by: by.get() })
    }

    /// Reads the entries after the leaves of the head, up to the checkpoint or the end of the question.
    fn read_later(&mut self, tree: AnswerTree) {
        let wanted = self.answer.question.leaves_within(tree.size.get());
        let mut next = wanted.start.max(LeafIndex::new(self.pages.head.head.size.get()));
        let later: Vec<LeafIndex> = self.entries.keys().copied().filter(|leaf| *leaf >= next).collect();
        for leaf in later.into_iter().filter(|leaf| *leaf < wanted.end) {
            self.not_searched(next, leaf);
            self.take(leaf);
            next = LeafIndex::new(leaf.get() + 1);
        }
        self.not_searched(next, wanted.end);
        // The checkpoint can be older than the question.
        if let Some(to) = self.answer.question.to {
            self.not_searched(self.answer.question.from.max(LeafIndex::new(tree.size.get())), to);
        }
    }

    fn not_searched(&mut self, from: LeafIndex, to: LeafIndex) {
        if from < to {
            self.gaps.insert(from, AnswerGap::NotSearched { from: from.get(), to: to.get() });
        }
    }

    /// Refuses entries that are not part of the answer: a reader could take them for one.
    fn refuse_unneeded(&mut self) {
        let unneeded = self.entries.keys().find(|leaf| !self.needed.contains(leaf)).copied();
        let blind = |leaf: &LeafIndex| self.pages.blind.get(leaf) == Some(&BlindCode::Erased);
        let not_erased = self.answer.erased.iter().map(|erased| erased.leaf).find(|leaf| !blind(leaf));
        if let Some(leaf) = unneeded.or(not_erased) {
            self.fault(Code::EntryUnneeded, format!("the entry at leaf {leaf} is not part of the answer"));
        }
    }

    fn fault(&mut self, code: Code, why: String) {
        self.faults.push((code, why));
    }

    fn conclude(self) -> Comparison {
        let found: Vec<FoundEntry> =
            self.found.iter().filter_map(|leaf| Some(found(*leaf, self.entries.get(leaf)?.facts))).collect();
        let read = self.entries.len();
        let mut checks: Vec<Check> =
            self.faults.into_iter().map(|(code, why)| failed(CheckName::Selection, code, why)).collect();
        if checks.is_empty() {
            let detail = format!("entries read: {read}, with all terms: {}", found.len());
            checks.push(passed(CheckName::Selection, detail));
        }
        Comparison { found, gaps: self.gaps.into_values().collect(), checks }
    }
}

fn found(leaf: LeafIndex, facts: &StatementFacts) -> FoundEntry {
    let StatementFacts { entry, iss, sub, content_type, .. } = facts.clone();
    FoundEntry { leaf: leaf.get(), entry: entry.to_string(), content_type, iss, sub }
}
