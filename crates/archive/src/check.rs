//! [`Checker`]: checks that each record of an archive is consistent with the records before it.
//!
//! The same checks apply when an archive is written and when it is read.

use std::collections::HashMap;

use independent_root::{IndependentRoot, hash_leaf};
use merkle::{CompactRange, EntryDigest, RootHash, TreeSize};
use store::custody::CASE_BYTES;
use store::{
    CLOCK_CORRECTION, Collateral, CommittedHead, Cosignature, Entry, GuardRow, HeadSignature, Hold, LogKey,
    Report, SeenRow, SignatureKind, Source,
};

use crate::end_record::EndRecord;
use crate::limits::{BATCH_BYTES, BATCH_ENTRIES, ITEMS, KEYS};
use crate::{ArchiveHeader, ArchiveRecord, ArchiveSummary, RecordCounts};

/// Interpretation of statements and signatures, provided by the caller: an archive treats both as bytes.
pub trait StatementInspector: Send + Sync {
    /// Returns the effects of an entry on others, or the reason why a log cannot contain it.
    fn effects_of(&self, entry: &Entry) -> Result<EntryEffects, String>;

    /// Checks a signature over a head with one of `keys`; returns the reason if it is invalid.
    fn check_signature(
        &self,
        head: &CommittedHead,
        signature: &HeadSignature,
        keys: &[LogKey],
    ) -> Result<(), String>;
}

/// Effects of an entry on others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryEffects {
    /// `true` if the entry is a policy, in force from here on.
    pub is_policy: bool,
    /// Entries that this entry declares as erased.
    pub erases: Vec<EntryDigest>,
}

/// Size of the batch that has no head yet.
#[derive(Default)]
struct BatchSize {
    entries: usize,
    /// Total size of the statements.
    bytes: usize,
}

/// A requested tree size, and the root of its head once found.
struct WantedRoot {
    size: TreeSize,
    root: Option<RootHash>,
}

/// Accepts records in order and finds the first one that contradicts its predecessors.
pub struct Checker<'a> {
    inspector: &'a dyn StatementInspector,
    /// Kind of the last record; the kinds of the history (entries, heads, signatures, cosignatures) count as one.
    section: u8,
    header: Option<ArchiveHeader>,
    keys: Vec<LogKey>,
    tree: CompactRange,
    /// Root of the same entries by another implementation.
    independent: IndependentRoot,
    head: Option<CommittedHead>,
    batch: BatchSize,
    /// `true` if the batch begins with a clock correction, so that its time may precede the last head's.
    corrects_clock: bool,
    /// Entries without a statement that no other entry declares as erased yet, with their indexes.
    unexplained: HashMap<EntryDigest, u64>,
    /// The policy that admitted the last entry; `policy`: the newest policy among the entries.
    admitted_under: u64,
    policy: Option<u64>,
    signatures: Vec<HeadSignature>,
    witnesses: Vec<Vec<u8>>,
    checkpoint: Option<String>,
    last_hold: u64,
    last_seen: Option<[u8; 16]>,
    last_guard: Option<Vec<u8>>,
    counts: RecordCounts,
    end: Option<EndRecord>,
    /// See [`wanting`](Self::wanting).
    wanted: Option<WantedRoot>,
}

impl<'a> Checker<'a> {
    /// Creates a checker that expects [`ArchiveRecord::Header`] first.
    pub fn new(inspector: &'a dyn StatementInspector) -> Self {
        Self {
            inspector,
            section: 0,
            header: None,
            keys: Vec::new(),
            tree: CompactRange::empty(),
            independent: IndependentRoot::default(),
            head: None,
            batch: BatchSize::default(),
            corrects_clock: false,
            unexplained: HashMap::new(),
            admitted_under: 0,
            policy: None,
            signatures: Vec::new(),
            witnesses: Vec::new(),
            checkpoint: None,
            last_hold: 0,
            last_seen: None,
            last_guard: None,
            counts: RecordCounts::default(),
            end: None,
            wanted: None,
        }
    }

    /// Requests the root of the head of this size, for [`ArchiveSummary::wanted_root`].
    #[must_use]
    pub fn wanting(self, size: Option<TreeSize>) -> Self {
        Self { wanted: size.map(|size| WantedRoot { size, root: None }), ..self }
    }

    /// The numbers of records so far.
    pub fn counts(&self) -> RecordCounts {
        self.counts
    }

    /// The newest head so far.
    pub fn head(&self) -> Option<&CommittedHead> {
        self.head.as_ref()
    }

    /// The first entry without a statement that no entry so far declares as erased.
    pub fn unexplained(&self) -> Option<u64> {
        self.unexplained.values().min().copied()
    }

    /// The newest signed checkpoint so far.
    pub fn checkpoint(&self) -> Option<&str> {
        self.checkpoint.as_deref()
    }

    /// Checks the next [`ArchiveRecord`]; returns a description of the contradiction if there is one.
    pub fn accept(&mut self, record: &ArchiveRecord) -> Result<(), String> {
        self.check_order(record)?;
        match record {
            ArchiveRecord::Header(header) => {
                self.header = Some(header.clone());
                Ok(())
            }
            ArchiveRecord::Key(key) => self.check_key(key),
            ArchiveRecord::Entry(entry, collateral) => self.check_entry(entry, collateral),
            ArchiveRecord::Head(head) => self.check_head(head),
            ArchiveRecord::Signature(signature) => self.check_signature(signature),
            ArchiveRecord::Cosignature(cosignature) => self.check_cosignature(cosignature),
            ArchiveRecord::Hold(hold) => self.check_hold(hold),
            ArchiveRecord::Report(report) => self.check_report(report),
            ArchiveRecord::Seen(rows) => self.check_seen(rows),
            ArchiveRecord::Guards(rows) => self.check_guards(rows),
            ArchiveRecord::Waiting(_) => {
                self.counts.waiting += 1;
                Ok(())
            }
            ArchiveRecord::End(end) => self.check_end(end),
        }
    }

    /// Returns the summary after the last record. `checksum` identifies the archive.
    pub fn finish(self, checksum: [u8; 32]) -> Result<ArchiveSummary, String> {
        let (Some(header), Some(head), Some(end)) = (self.header, self.head, self.end) else {
            return Err("it has no header, no head or no end record".into());
        };
        let ArchiveHeader { origin, purpose, made_at } = header;
        Ok(ArchiveSummary {
            origin,
            purpose,
            made_at,
            size: head.size,
            root: head.root,
            batch: head.batch,
            epoch: end.epoch,
            at: head.at,
            policy: merkle::LeafIndex::new(end.policy),
            counts: self.counts,
            keys: self.keys,
            signatures: self.signatures,
            wanted_root: self.wanted.and_then(|wanted| wanted.root),
            source: Source(checksum),
        })
    }

    fn check_order(&mut self, record: &ArchiveRecord) -> Result<(), String> {
        const HISTORY: std::ops::RangeInclusive<u8> = 3..=6;
        let kind = record.kind();
        let section = if HISTORY.contains(&kind) { *HISTORY.start() } else { kind };
        let first = self.section == 0;
        if section < self.section || first != (kind == 1) || (section == 1 && self.section == 1) {
            return Err("the records are not in the required order".into());
        }
        if self.section == *HISTORY.start() && section > self.section && self.batch.entries > 0 {
            return Err("the last entries have no head".into());
        }
        if self.end.is_some() {
            return Err("there are records after the end record".into());
        }
        self.section = section;
        Ok(())
    }

    fn check_key(&mut self, key: &LogKey) -> Result<(), String> {
        self.counts.keys += 1;
        if self.keys.len() == KEYS {
            return Err(format!("more than {KEYS} keys"));
        }
        if self.keys.iter().any(|known| known.kid == key.kid) {
            return Err("a key is listed twice".into());
        }
        self.keys.push(key.clone());
        Ok(())
    }

    fn check_entry(&mut self, entry: &Entry, collateral: &[Collateral]) -> Result<(), String> {
        let index = self.counts.entries;
        self.corrects_clock |= self.batch.entries == 0 && entry.rule == CLOCK_CORRECTION;
        self.batch.entries += 1;
        self.batch.bytes += entry.statement.as_ref().map_or(0, |statement| statement.len());
        if self.batch.entries > BATCH_ENTRIES || self.batch.bytes > BATCH_BYTES {
            return Err(format!("a batch of more than {BATCH_ENTRIES} entries or {BATCH_BYTES} bytes"));
        }
        let policy = entry.policy.get();
        if policy > index || (policy == index && index > 0) || policy < self.admitted_under {
            return Err(format!("entry {index} cannot be admitted by entry {policy}"));
        }
        self.admitted_under = policy;
        match &entry.statement {
            Some(bytes) if EntryDigest::of(bytes) != entry.digest => {
                return Err(format!("the statement of entry {index} does not hash to its digest"));
            }
            Some(_) => self.apply_effects(entry)?,
            None if entry.facts != "{}" || !collateral.is_empty() => {
                return Err(format!("entry {index} has no statement, but facts or collateral of one"));
            }
            None => {
                self.counts.erased += 1;
                self.unexplained.insert(entry.digest, index);
            }
        }
        if collateral.len() > ITEMS || !collateral.is_sorted_by_key(|item| item.kind) {
            return Err(format!("the collateral of entry {index} is not in order of kind"));
        }
        self.tree.append(entry.digest.leaf_hash());
        self.independent.append(hash_leaf(entry.digest.as_bytes()));
        self.counts.entries += 1;
        Ok(())
    }

    fn apply_effects(&mut self, entry: &Entry) -> Result<(), String> {
        let effects =
            self.inspector.effects_of(entry).map_err(|why| format!("entry {}: {why}", entry.index))?;
        if effects.is_policy {
            self.policy = Some(entry.index.get());
        }
        for digest in effects.erases {
            self.unexplained.remove(&digest);
        }
        Ok(())
    }

    fn check_head(&mut self, head: &CommittedHead) -> Result<(), String> {
        let before = self.head.map_or((0, 0, 0), |before| (before.batch, before.at, before.epoch));
        let complaint = if self.batch.entries == 0 {
            "has no entries of its own"
        } else if head.batch != before.0 + 1
            || (head.at < before.1 && !self.corrects_clock)
            || head.epoch < before.2
        {
            "does not follow the one before it"
        } else if head.size.get() != self.counts.entries {
            "does not cover the entries before it"
        } else if head.root != self.tree.root() {
            "has a root that differs from that of the entries before it"
        } else {
            self.batch = BatchSize::default();
            self.corrects_clock = false;
            self.counts.heads += 1;
            self.head = Some(*head);
            if let Some(wanted) = self.wanted.as_mut().filter(|wanted| wanted.size == head.size) {
                wanted.root = Some(head.root);
            }
            self.signatures.clear();
            self.witnesses.clear();
            return Ok(());
        };
        Err(format!("the head of batch {}, of size {}, {complaint}", head.batch, head.size))
    }

    /// The newest head, if `size` is its size and no entry follows it yet.
    fn just_committed(&self, size: TreeSize) -> Result<CommittedHead, String> {
        match self.head.filter(|head| head.size == size && self.batch.entries == 0) {
            Some(head) => Ok(head),
            None => Err(format!("a signature over size {size} does not follow the head of that size")),
        }
    }

    fn check_signature(&mut self, signature: &HeadSignature) -> Result<(), String> {
        let head = self.just_committed(signature.size)?;
        let key = |it: &HeadSignature| (it.kind, it.kid.clone());
        let in_turn = self.signatures.last().is_none_or(|last| key(last) < key(signature));
        if !in_turn || !self.witnesses.is_empty() {
            return Err(format!("a signature over size {} is out of order", head.size));
        }
        self.inspector
            .check_signature(&head, signature, &self.keys)
            .map_err(|why| format!("a signature over size {} is wrong: {why}", head.size))?;
        if self.keys.iter().any(|key| key.kid == signature.kid && !key.signs(head.size)) {
            return Err(format!(
                "a signature over size {} is by a key that is not in force at that size",
                head.size
            ));
        }
        if signature.kind == SignatureKind::Checkpoint {
            let text = String::from_utf8(signature.bytes.to_vec());
            self.checkpoint = Some(text.map_err(|_| "a checkpoint is not text".to_owned())?);
        }
        self.signatures.push(signature.clone());
        self.counts.signatures += 1;
        Ok(())
    }

    fn check_cosignature(&mut self, cosignature: &Cosignature) -> Result<(), String> {
        let head = self.just_committed(cosignature.size)?;
        if self.witnesses.last().is_some_and(|last| *last >= cosignature.witness) {
            return Err(format!("a cosignature over size {} is out of order", head.size));
        }
        self.witnesses.push(cosignature.witness.clone());
        self.counts.cosignatures += 1;
        Ok(())
    }

    fn check_hold(&mut self, hold: &Hold) -> Result<(), String> {
        let entry = hold.entry.get();
        if entry < self.last_hold || entry >= self.counts.entries {
            return Err(format!("a hold on entry {entry} is out of order"));
        }
        if hold.case.is_empty() || hold.case.len() > CASE_BYTES || hold.case.contains('\0') {
            return Err(format!("a hold on entry {entry} has an invalid case name"));
        }
        self.last_hold = entry;
        self.counts.holds += 1;
        Ok(())
    }

    fn check_report(&mut self, report: &Report) -> Result<(), String> {
        let entry = report.registered.0.get();
        if entry >= self.counts.entries {
            return Err(format!("a report is about entry {entry}, which is not in the log"));
        }
        if report.statement.as_ref().is_some_and(|bytes| EntryDigest::of(bytes) != report.refused) {
            return Err(format!("the statement of a report about entry {entry} is not the one refused"));
        }
        self.counts.reports += 1;
        Ok(())
    }

    fn check_seen(&mut self, rows: &[SeenRow]) -> Result<(), String> {
        for (key, entry) in rows {
            if self.last_seen.is_some_and(|last| last >= *key) || entry.get() >= self.counts.entries {
                return Err(format!("a key of entry {entry} is out of order"));
            }
            self.last_seen = Some(*key);
        }
        self.counts.seen += rows.len() as u64;
        Ok(())
    }

    fn check_guards(&mut self, rows: &[GuardRow]) -> Result<(), String> {
        for (key, entry) in rows {
            if self.last_guard.as_ref().is_some_and(|last| *last >= key.0)
                || entry.get() >= self.counts.entries
            {
                return Err(format!("a guard of entry {entry} is out of order"));
            }
            self.last_guard = Some(key.0.clone());
        }
        self.counts.guards += rows.len() as u64;
        Ok(())
    }

    fn check_end(&mut self, end: &EndRecord) -> Result<(), String> {
        let Some(head) = self.head else { return Err("it holds no committed head".into()) };
        let origin = self.header.as_ref().map(|header| &header.origin);
        if Some(&end.origin) != origin
            || (end.size, &end.root, end.batch) != (head.size.get(), &head.root.to_string(), head.batch)
            || end.counts != self.counts
            || end.checkpoint != self.checkpoint
        {
            return Err("its end record does not match the records before it".into());
        }
        if self.independent.root() != Some(*head.root.as_bytes()) {
            return Err(
                "another implementation, rs_merkle, computes a different root from its entries".into()
            );
        }
        if let Some(index) = self.unexplained() {
            return Err(format!("entry {index} has no statement, and no erasure statement names it"));
        }
        if self.signatures.is_empty() {
            return Err(format!("its newest head, of size {}, is not signed", head.size));
        }
        if end.epoch < head.epoch || end.policy < self.admitted_under || end.policy >= head.size.get() {
            return Err("its epoch or its policy contradicts its history".into());
        }
        if self.policy.is_some_and(|policy| policy != end.policy) {
            return Err(format!("entry {} is not its newest policy", end.policy));
        }
        if self.counts.seen < self.counts.entries {
            return Err("not every entry can be found by its digest".into());
        }
        self.end = Some(end.clone());
        Ok(())
    }
}
