//! Power loss under an unmodified program: unflushed data is lost in whole or in part.
//!
//! A preloaded library (`storage-faults/power.c`) writes each change of a watched file to a journal before the change
//! is made, and each flush after it succeeded. [`Power::lose`] undoes, in the killed program's files, the changes that
//! no flush covers: contents by a flush of the file, names by a flush of the folder, which is what POSIX promises and
//! no more.
//!
//! Not here: a disk that loses flushed data, and file systems that order writes.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::storage_faults::compile;
use crate::tally::count;

/// Source file of the preloaded library.
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/storage-faults/power.c");
/// Number of bytes that a disk writes atomically; a longer write may be persisted in part.
const PAGE: usize = 4096;
/// Length of the watched path in the control file, and its offset there.
const PREFIX: (usize, u64) = (512, 8);
/// Length of `struct record` in the library.
const RECORD: usize = 56;

/// Extent of the loss of unflushed data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// All unflushed data is lost.
    Everything,
    /// Any page of any write may be persisted. Name changes are persisted up to a random one of them.
    Some,
}

/// Number of lost changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Writes and truncations, lost in whole or in part.
    pub writes: usize,
    /// Name changes: files created, linked, renamed or removed.
    pub names: usize,
}

/// Power supply of a simulated machine, whose program changes files in one folder.
pub struct Power {
    folder: TempDir,
    control: File,
    watched: PathBuf,
}

impl Power {
    /// Compiles the library. Data in the folder before [`Power::watch`] counts as flushed.
    pub fn of(watched: &Path) -> Self {
        let folder = tempfile::Builder::new().prefix("tabellion-power.").tempdir().expect("a folder");
        open_to_all(folder.path(), 0o777);
        open_to_all(&compile(SHIM, folder.path()), 0o755);
        fs::create_dir(folder.path().join("kept")).expect("our own folder");
        open_to_all(&folder.path().join("kept"), 0o777);
        for name in ["control", "journal", "lock"] {
            File::create_new(folder.path().join(name)).expect("our own folder");
            open_to_all(&folder.path().join(name), 0o666);
        }
        let control = File::options().write(true).open(folder.path().join("control")).expect("our own file");
        control.set_len(PREFIX.1 + PREFIX.0 as u64).expect("our own file");
        let watched = watched.canonicalize().expect("a folder");
        Self { folder, control, watched }
    }

    /// Returns the environment variables for the program.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let folder = self.folder.path();
        let library = folder.join("shim.so").display().to_string();
        vec![("LD_PRELOAD", library), ("TABELLION_TEST_POWER", folder.display().to_string())]
    }

    /// Starts the journal of changes.
    pub fn watch(&self) {
        let prefix = format!("{}/", self.watched.display());
        assert!(prefix.len() < PREFIX.0, "{prefix}");
        self.control.write_all_at(prefix.as_bytes(), PREFIX.1).expect("the control file");
    }

    /// Makes the process die before its change or flush number `calls`, counted from 0 from now on.
    pub fn cut_after(&self, calls: u64) {
        self.control.write_all_at(&(calls + 1).to_ne_bytes(), 0).expect("the control file");
    }

    /// Undoes unflushed changes, and returns their number. All processes must have ended; the next ones start with an
    /// empty journal.
    pub fn lose(&self, loss: Loss) -> Lost {
        self.control.write_all_at(&0_u64.to_ne_bytes(), 0).expect("the control file");
        let journal = fs::read(self.folder.path().join("journal")).expect("our own file");
        let records = records(&journal);
        let doubtful = not_flushed(&records);
        let names = self.undo_names(doubtful.iter().copied().filter(|record| record.changes_names()), loss);
        let writes =
            self.undo_writes(doubtful.iter().copied().filter(|record| !record.changes_names()), loss);
        fs::write(self.folder.path().join("journal"), b"").expect("our own file");
        for kept in fs::read_dir(self.folder.path().join("kept")).expect("our own folder") {
            fs::remove_file(kept.expect("a file").path()).expect("our own file");
        }
        count("power losses", 1);
        count("writes lost in power losses", writes);
        count("names lost in power losses", names);
        Lost { writes, names }
    }

    /// Undoes name changes, last first. They persist in order, as in the journal of a file system.
    fn undo_names<'r>(&self, changes: impl Iterator<Item = &'r Record<'r>>, loss: Loss) -> usize {
        let changes: Vec<_> = changes.collect();
        let there = match loss {
            Loss::Everything => 0,
            Loss::Some => fastrand::usize(..=changes.len()),
        };
        for change in changes[there..].iter().rev() {
            self.undo_name(change).unwrap_or_else(|why| panic!("{change:?}: {why}"));
        }
        changes.len() - there
    }

    fn undo_name(&self, change: &Record<'_>) -> io::Result<()> {
        let restore = |path: &str| match change.kept {
            0 => Ok(()),
            kept => fs::hard_link(self.folder.path().join("kept").join(kept.to_string()), path),
        };
        match change.kind {
            // A call that was recorded, but not executed before the process died.
            Kind::Unlinked | Kind::Renamed if inode_of(change.path) == Some(change.inode) => Ok(()),
            Kind::Created | Kind::Linked => fs::remove_file(change.path),
            Kind::Unlinked => restore(change.path),
            Kind::Renamed => {
                fs::rename(change.other, change.path)?;
                restore(change.other)
            }
            Kind::MadeFolder => fs::remove_dir_all(change.path),
            _ => unreachable!("changes no name"),
        }
    }

    fn undo_writes<'r>(&self, writes: impl Iterator<Item = &'r Record<'r>>, loss: Loss) -> usize {
        let mut by_file: BTreeMap<u64, Vec<&Record<'_>>> = BTreeMap::new();
        writes.for_each(|write| by_file.entry(write.inode).or_default().push(write));
        let paths = paths_by_inode(&self.watched);
        let mut undone = 0;
        for (inode, writes) in by_file {
            let Some(path) = paths.get(&inode) else { continue }; // It has lost its name as well.
            let file = File::options().write(true).open(path).expect("a file of the program");
            for write in writes.iter().rev() {
                file.write_all_at(write.old, write.offset).expect("a write");
                file.set_len(write.old_size).expect("a write");
            }
            undone += writes.len();
            if loss == Loss::Some {
                writes.iter().for_each(|write| write_in_part(&file, write));
            }
        }
        undone
    }
}

/// Applies a random selection of the pages of a write.
fn write_in_part(file: &File, write: &Record<'_>) {
    if write.kind == Kind::Truncated {
        if fastrand::bool() {
            file.set_len(write.offset).expect("a write");
        }
        return;
    }
    let mut at = 0;
    while at < write.new.len() {
        let place = write.offset + at as u64;
        let in_page = usize::try_from(place % PAGE as u64).expect("less than a page");
        let end = write.new.len().min(at + PAGE - in_page);
        if fastrand::bool() {
            file.write_all_at(&write.new[at..end], place).expect("a write");
        }
        at = end;
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Written = 1,
    Truncated,
    FlushBegun,
    FlushEnded,
    Created,
    Unlinked,
    Renamed,
    Linked,
    MadeFolder,
}

impl Kind {
    const ALL: [Self; 9] = [
        Self::Written,
        Self::Truncated,
        Self::FlushBegun,
        Self::FlushEnded,
        Self::Created,
        Self::Unlinked,
        Self::Renamed,
        Self::Linked,
        Self::MadeFolder,
    ];
}

/// One `struct record` of the journal, with the data that follows it.
struct Record<'j> {
    kind: Kind,
    kept: u32,
    inode: u64,
    folder: u64,
    offset: u64,
    old_size: u64,
    path: &'j str,
    other: &'j str,
    old: &'j [u8],
    new: &'j [u8],
}

impl Record<'_> {
    fn changes_names(&self) -> bool {
        !matches!(self.kind, Kind::Written | Kind::Truncated)
    }

    /// Returns the inode whose flush makes the change durable: the folder's for a name, else the file's.
    fn flushed_with(&self) -> u64 {
        if self.changes_names() { self.folder } else { self.inode }
    }
}

impl std::fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} {} {}", self.kind, self.path, self.other)
    }
}

/// Parses the complete records. The last one may be torn; its call was never executed.
fn records(mut journal: &[u8]) -> Vec<Record<'_>> {
    let mut records = Vec::new();
    while let Some((head, rest)) = journal.split_at_checked(RECORD) {
        let short = |at: usize| u32::from_ne_bytes(head[at..at + 4].try_into().expect("four bytes"));
        let long = |at: usize| u64::from_ne_bytes(head[at..at + 8].try_into().expect("eight bytes"));
        let mut rest = rest;
        let mut part = |at: usize| {
            let (part, after) = rest.split_at_checked(short(at) as usize)?;
            rest = after;
            Some(part)
        };
        let (Some(path), Some(other), Some(old), Some(new)) = (part(4), part(8), part(12), part(16)) else {
            break;
        };
        let text = |bytes| std::str::from_utf8(bytes).expect("a path of a test");
        let kind = Kind::ALL.into_iter().find(|kind| *kind as u32 == short(0)).expect("a kind");
        let (kept, inode, folder, offset, old_size) = (short(20), long(24), long(32), long(40), long(48));
        let (path, other) = (text(path), text(other));
        records.push(Record { kind, kept, inode, folder, offset, old_size, path, other, old, new });
        journal = rest;
    }
    records
}

/// Returns the changes that no flush covers, in order. A flush that ended covers the changes before its beginning.
fn not_flushed<'r, 'j>(records: &'r [Record<'j>]) -> Vec<&'r Record<'j>> {
    let mut begun = BTreeMap::new();
    let mut flushed: BTreeMap<u64, usize> = BTreeMap::new();
    for (place, record) in records.iter().enumerate() {
        match record.kind {
            Kind::FlushBegun => {
                begun.insert((record.inode, record.offset), place);
            }
            Kind::FlushEnded => {
                let from = begun[&(record.inode, record.offset)];
                let until = flushed.entry(record.inode).or_default();
                *until = from.max(*until);
            }
            _ => {}
        }
    }
    let changes = records.iter().enumerate();
    let changes = changes.filter(|(_, record)| !matches!(record.kind, Kind::FlushBegun | Kind::FlushEnded));
    let covered =
        |place, record: &Record<'_>| flushed.get(&record.flushed_with()).is_some_and(|until| place < *until);
    changes.filter(|(place, record)| !covered(*place, record)).map(|(_, record)| record).collect()
}

fn inode_of(path: &str) -> Option<u64> {
    fs::symlink_metadata(path).ok().map(|status| status.ino())
}

fn paths_by_inode(folder: &Path) -> BTreeMap<u64, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the program") {
            let path = entry.expect("a file").path();
            let status = fs::symlink_metadata(&path).expect("nobody removes it");
            if status.is_dir() {
                folders.push(path);
            } else if status.is_file() {
                found.insert(status.ino(), path);
            }
        }
    }
    found
}

/// Makes a file accessible: a database server may run as another user.
fn open_to_all(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("our own file");
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::process::Command;

    /// Runs Python with the preloaded library in a watched folder, then cuts the power.
    fn after(script: &str, loss: Loss) -> (TempDir, Lost) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "before").unwrap();
        let power = Power::of(folder.path());
        power.watch();
        let mut run = Command::new(crate::python());
        run.args(["-B", "-c", &format!("import os\n{script}")]).current_dir(folder.path());
        let output = run.envs(power.variables()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let lost = power.lose(loss);
        (folder, lost)
    }

    fn read(folder: &TempDir, name: &str) -> Option<String> {
        fs::read_to_string(folder.path().join(name)).ok()
    }

    #[test]
    fn what_was_not_flushed_is_gone_and_what_was_is_there() {
        let script = "old = os.open('old', os.O_RDWR)\nos.pwrite(old, b'AB', 0)\nos.fsync(old)\nos.pwrite(old, b'XYZXYZXYZ', 1)\nos.ftruncate(old, 2)";
        let (folder, lost) = after(script, Loss::Everything);
        assert_eq!(read(&folder, "old").as_deref(), Some("ABfore"));
        assert_eq!(lost, Lost { writes: 2, names: 0 });
    }

    #[test]
    fn names_are_as_durable_as_their_folder() {
        let make = "new = os.open('new', os.O_CREAT | os.O_WRONLY)\nos.write(new, b'new')\nos.fsync(new)\n";
        let (folder, _) = after(make, Loss::Everything);
        assert_eq!(read(&folder, "new"), None, "its folder was not flushed");
        let flush = "os.fsync(os.open('.', os.O_RDONLY))\n";
        let (folder, _) = after(&format!("{make}{flush}"), Loss::Everything);
        assert_eq!(read(&folder, "new").as_deref(), Some("new"));
        let replace = format!("{make}os.rename('new', 'old')\n");
        let (folder, lost) = after(&replace, Loss::Everything);
        assert_eq!((read(&folder, "old").as_deref(), lost.names), (Some("before"), 2));
        let (folder, lost) = after(&format!("{replace}{flush}"), Loss::Everything);
        assert_eq!((read(&folder, "old").as_deref(), lost.names), (Some("new"), 0));
        let (folder, _) = after("os.unlink('old')\n", Loss::Everything);
        assert_eq!(read(&folder, "old").as_deref(), Some("before"));
        let (folder, _) = after(&format!("os.unlink('old')\n{flush}"), Loss::Everything);
        assert_eq!(read(&folder, "old"), None);
        let (folder, _) = after("os.link('old', 'other')\nos.mkdir('folder')\n", Loss::Everything);
        assert_eq!((read(&folder, "other"), folder.path().join("folder").exists()), (None, false));
    }

    #[test]
    fn of_a_long_write_any_page_may_be_there() {
        let script = "old = os.open('old', os.O_RDWR)\nos.pwrite(old, b'x' * 65536, 0)";
        let pages: Vec<usize> = (0..8)
            .map(|_| {
                let (folder, _) = after(script, Loss::Some);
                fs::read(folder.path().join("old"))
                    .unwrap()
                    .chunks(PAGE)
                    .filter(|page| page[0] == b'x')
                    .count()
            })
            .collect();
        assert!(pages.iter().any(|pages| *pages > 0 && *pages < 16), "{pages:?}");
    }
}
