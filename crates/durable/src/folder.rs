//! Folders, and the file names in them.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use crate::{FileAccess, is_temporary};

/// Creates a folder, and the missing ones above it; all their names survive power loss. An existing folder is left
/// unchanged.
pub fn make_folder(folder: &Path, access: FileAccess) -> io::Result<()> {
    if folder.is_dir() || folder.as_os_str().is_empty() {
        return Ok(());
    }
    if let Some(above) = folder.parent() {
        make_folder(above, access)?;
    }
    match DirBuilder::new().mode(access.of_folder()).create(folder) {
        // Another process created it meanwhile; it may not be durable yet.
        Err(_) if folder.is_dir() => {}
        made => made?,
    }
    sync_folder_of(folder)
}

/// Makes a creation, renaming or removal durable: fsyncs the folder of `path`.
pub fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// Lists the names in a folder that end with `ending`, sorted, without files in the middle of a
/// [`replace`](crate::replace); empty if there is no folder.
pub fn names(folder: &Path, ending: &str) -> io::Result<Vec<String>> {
    let found = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        found => found?,
    };
    let mut names = Vec::new();
    for entry in found {
        let name = entry?.file_name().into_string().unwrap_or_default();
        if name.ends_with(ending) && !is_temporary(&name) {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_folder_is_made_with_those_above_it_for_whom_it_may_concern() {
        let home = tempfile::tempdir().unwrap();
        let deep = home.path().join("a/b");
        make_folder(&deep, FileAccess::Secret).unwrap();
        make_folder(&deep, FileAccess::Public).unwrap();
        for folder in ["a", "a/b"] {
            let mode = fs::metadata(home.path().join(folder)).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700, "{folder}");
        }
    }

    #[test]
    fn a_file_is_no_folder() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        fs::write(&file, b"").unwrap();
        assert_eq!(make_folder(&file, FileAccess::Public).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert!(make_folder(&file.join("below"), FileAccess::Public).is_err());
    }

    #[test]
    fn names_are_sorted_and_what_is_being_written_has_none() {
        let home = tempfile::tempdir().unwrap();
        assert_eq!(names(&home.path().join("missing"), "").unwrap(), [] as [&str; 0]);
        for name in ["b.json", "a.json", "a.json.7.0.tmp", "c.txt"] {
            fs::write(home.path().join(name), b"").unwrap();
        }
        assert_eq!(names(home.path(), ".json").unwrap(), ["a.json", "b.json"]);
        assert_eq!(names(home.path(), "").unwrap(), ["a.json", "b.json", "c.txt"]);
    }
}
