use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::is_temporary;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_file_is_replaced_and_leaves_nothing_aside() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    for text in ["one", "", "another"] {
        replace(&file, text.as_bytes(), FileAccess::Public).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    assert_eq!(names(home.path()), ["file"]);
}

#[test]
fn a_secret_is_for_its_owner_even_where_others_could_read_what_was_there() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("key");
    replace(&file, b"public", FileAccess::Public).unwrap();
    assert_ne!(mode(&file), 0o600);
    replace(&file, b"secret", FileAccess::Secret).unwrap();
    assert_eq!(mode(&file), 0o600);
}

#[test]
fn a_write_that_cannot_begin_leaves_the_old_file() {
    let home = tempfile::tempdir().unwrap();
    // The file system allows this name, and no longer one.
    let file = home.path().join("n".repeat(255));
    fs::write(&file, b"old").unwrap();
    let failed = replace(&file, b"new", FileAccess::Public).unwrap_err();
    assert!(matches!(&failed, WriteError::Unchanged { path, .. } if *path == file), "{failed}");
    assert_eq!(fs::read(&file).unwrap(), b"old");
    assert_eq!(names(home.path()).len(), 1);
}

#[test]
fn a_file_that_cannot_take_its_place_is_not_left_aside() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("inside"), b"old").unwrap();
    let failed = replace(&folder, b"new", FileAccess::Public).unwrap_err();
    assert!(matches!(failed, WriteError::Unchanged { .. }), "{failed}");
    assert_eq!(names(home.path()), ["folder"]);
    assert_eq!(names(&folder), ["inside"]);
    let nowhere = home.path().join("missing/file");
    assert!(matches!(replace(&nowhere, b"new", FileAccess::Public), Err(WriteError::Unchanged { .. })));
}

#[test]
fn a_folder_that_is_not_synced_leaves_the_new_file_in_doubt() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, b"old").unwrap();
    let sync = |_: &Path| Err(io::Error::other("no power"));
    let failed = replace_and(sync, &file, b"new", FileAccess::Public).unwrap_err();
    assert!(matches!(failed, WriteError::InDoubt { .. }));
    assert_eq!(failed.to_string(), format!("{}: no power, after it was replaced", file.display()));
    assert_eq!(io::Error::from(failed).to_string(), "no power");
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(names(home.path()), ["file"]);
}

#[test]
fn of_many_at_once_one_stands_whole() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::thread::scope(|threads| {
        for writer in 0..8 {
            let file = &file;
            threads.spawn(move || replace(file, &[writer; 20_000], FileAccess::Public).unwrap());
        }
    });
    let stands = fs::read(&file).unwrap();
    assert_eq!(stands, [stands[0]; 20_000]);
    assert_eq!(names(home.path()), ["file"]);
}

#[test]
fn what_somebody_else_writes_aside_is_left_alone() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    let (theirs, _) = begin_temporary(&file, FileAccess::Public).unwrap();
    let (ours, _) = begin_temporary(&file, FileAccess::Public).unwrap();
    assert_ne!(theirs, ours);
    for temporary in [&theirs, &ours] {
        assert!(is_temporary(temporary.file_name().unwrap().to_str().unwrap()), "{}", temporary.display());
    }
    replace(&file, b"new", FileAccess::Public).unwrap();
    assert!(theirs.exists());
}

#[test]
fn only_what_is_written_aside_is_named_so() {
    for name in ["file.1.0.tmp", ".12.34.tmp", "a.b.1.2.tmp"] {
        assert!(is_temporary(name), "{name}");
    }
    for name in
        ["", "file", ".tmp", "1.0.tmp", "file.tmp", "file.1.tmp", "file.x.1.tmp", "file.1.0", "file.1.0.new"]
    {
        assert!(!is_temporary(name), "{name}");
    }
}

#[test]
fn a_mark_is_empty_and_made_once() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("mark");
    mark(&file).unwrap();
    mark(&file).unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"");
    assert!(matches!(mark(&file.join("below")), Err(WriteError::Unchanged { .. })));
}

#[test]
fn a_file_that_waits_for_its_place_is_new_and_takes_it() {
    let home = tempfile::tempdir().unwrap();
    let (waiting, place) = (home.path().join("key.new"), home.path().join("key"));
    fs::write(&waiting, b"what a crash left, for all to read").unwrap();
    write_anew(&waiting, b"secret", FileAccess::Secret).unwrap();
    rename(&waiting, &place).unwrap();
    assert_eq!((fs::read(&place).unwrap(), mode(&place)), (b"secret".to_vec(), 0o600));
    assert_eq!(names(home.path()), ["key"]);
    assert!(rename(&waiting, &place).is_err());
}

#[test]
fn what_is_removed_is_gone_and_may_be_removed_again() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, b"").unwrap();
    remove(&file).unwrap();
    remove(&file).unwrap();
    assert!(!file.exists());
    assert!(remove(home.path()).is_err(), "a folder");
}
