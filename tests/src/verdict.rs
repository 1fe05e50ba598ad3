//! Checks that a service has kept all promises: invariants I1 to I8 of the fault matrix, against the whole log.

use std::collections::BTreeMap;

use merkle::{CompactRange, EntryDigest, RootHash};
use scitt::{KeySet, Receipt};

use crate::http::Connection;
use crate::load::resolve_what_was_left_open;
use crate::log::Log;
use crate::recorder::{Fate, Recorder};
use crate::service::Service;
use crate::tally::count;

/// Maximum number of fresh receipts requested at the end.
const FRESH: usize = 400;
/// Number of entries requested at once.
const PAGE: usize = 1000;
/// Maximum number of violations shown.
const SHOWN: usize = 10;

impl Recorder {
    /// Settles open registrations, stops the service, and checks all its promises. Returns the tree size.
    #[track_caller]
    pub fn verdict(&self, log: &Log, service: Service) -> u64 {
        resolve_what_was_left_open(self, &service);
        let size = self.must_have_kept_its_word(&service);
        service.stop();
        log.must_be_sound();
        size
    }

    /// Checks the promises of a service that continues to run, or is read-only: no statement is submitted, and the tree
    /// is not recomputed from the database. Returns the tree size.
    #[track_caller]
    pub fn must_have_kept_its_word(&self, service: &Service) -> u64 {
        let mut connection = service.connection();
        for entry in self.with_fate(Fate::Registered).into_iter().rev().take(FRESH) {
            match self.resolve(&mut connection, entry) {
                Some(answer) if answer.status == 200 => {}
                answer => self.violation(format!("no fresh receipt of {entry}: {answer:?}")),
            }
        }
        let tree = Tree::read(&mut connection);
        self.check(&tree);
        let violations = &self.history().violations;
        let shown: Vec<_> = violations.iter().take(SHOWN).collect();
        assert!(violations.is_empty(), "{} violations: {shown:#?}", violations.len());
        count("checks of a whole log", 1);
        tree.entries.len() as u64
    }

    fn check(&self, tree: &Tree) {
        let history = self.history();
        let mut found = Vec::new();
        for (entry, bytes) in &history.receipts {
            found.extend(tree.contradiction(*entry, bytes).map(|why| format!("receipt of {entry}: {why}")));
        }
        for (entry, (_, fate)) in &history.statements {
            match (tree.index.contains_key(entry), fate) {
                (true, Fate::Refused) => found.push(format!("{entry} was refused and is in the log")),
                (false, Fate::Registered) => {
                    found.push(format!("{entry} has a receipt and is not in the log"))
                }
                _ => {}
            }
        }
        let foreign = tree.entries.iter().skip(1).find(|entry| !history.statements.contains_key(entry));
        found.extend(foreign.map(|entry| format!("nobody handed in {entry}")));
        drop(history);
        self.history().violations.extend(found);
    }
}

/// All leaves, and the root at each size. The root of every signed head must be among them.
struct Tree {
    entries: Vec<EntryDigest>,
    index: BTreeMap<EntryDigest, u64>,
    roots: Vec<RootHash>,
    keys: KeySet,
}

impl Tree {
    #[track_caller]
    fn read(connection: &mut Connection) -> Self {
        let entries = all_entries(connection);
        let mut index = BTreeMap::new();
        let mut edge = CompactRange::empty();
        let mut roots = vec![edge.root()];
        for (place, entry) in entries.iter().enumerate() {
            let before = index.insert(*entry, place as u64);
            assert_eq!(before, None, "{entry} has two leaves");
            edge.append(entry.leaf_hash());
            roots.push(edge.root());
        }
        let keys = KeySet::parse(&connection.get("/.well-known/scitt-keys").body).expect("a key set");
        Self { entries, index, roots, keys }
    }

    fn contradiction(&self, entry: EntryDigest, bytes: &[u8]) -> Option<String> {
        self.confirm(entry, bytes).err()
    }

    fn confirm(&self, entry: EntryDigest, bytes: &[u8]) -> Result<(), String> {
        let receipt = Receipt::parse(bytes.to_vec()).map_err(|why| why.to_string())?;
        let [proof] = receipt.inclusion_proofs() else { return Err("not one proof".into()) };
        let (leaf, size) = (proof.leaf_index.get(), proof.tree_size.get());
        if self.index.get(&entry) != Some(&leaf) {
            return Err(format!("says leaf {leaf}, the log has it at {:?}", self.index.get(&entry)));
        }
        if receipt.signed_tree_size() != Some(proof.tree_size) {
            return Err("does not sign its size".into());
        }
        let kid = receipt.header().kid().ok_or("no kid")?;
        let key = self.keys.with_kid(kid).next().ok_or("its key is not published")?;
        if key.end.retired_size.is_some_and(|end| size >= end) {
            return Err(format!("is of size {size}, and its key signs none from {:?} on", key.end));
        }
        let root = receipt.verify_inclusion(&entry.leaf_hash(), &key.key).map_err(|why| why.to_string())?;
        match usize::try_from(size).ok().and_then(|size| self.roots.get(size)) {
            Some(ours) if *ours == root => Ok(()),
            Some(ours) => Err(format!("FORK at size {size}: signed {root}, the log has {ours}")),
            None => Err(format!("is of size {size}, the log of {}", self.entries.len())),
        }
    }
}

/// Returns all entries in the order of their leaves. Panics on a gap or a repetition.
#[track_caller]
fn all_entries(connection: &mut Connection) -> Vec<EntryDigest> {
    let mut entries = Vec::new();
    let mut next = Some(format!("/v1/entries?limit={PAGE}"));
    while let Some(path) = next {
        let page = connection.get(&path);
        assert_eq!(page.status, 200, "{page:?}");
        for entry in page.json()["entries"].as_array().expect("a page") {
            assert_eq!(entry["index"].as_u64(), Some(entries.len() as u64), "no gap: {entry}");
            entries.push(entry["entry_id"].as_str().expect("an id").parse().expect("a digest"));
        }
        next = page.header("link").map(path_in);
    }
    entries
}

/// Returns the path in `<http://host/path>; rel="next"`.
fn path_in(link: &str) -> String {
    let (url, _) = link.trim_start_matches('<').split_once('>').expect("a link");
    let (_, path) = url.split_once("/v1/").expect("our own page");
    format!("/v1/{path}")
}
