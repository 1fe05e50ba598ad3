//! Files that a tool reads: those below the folder of `--folder`, and texts from the client, stored in files.

use std::fs;
use std::path::{Path, PathBuf};

use merkle::EntryDigest;
use serde_json::json;

use crate::console::files::{self, Access, Existing};
use crate::console::{Exit, Failure};

/// Number of hexadecimal digits of a digest in a file name: enough that no two texts of a folder share a name.
const DIGITS: usize = 32;

/// Returns the path of the file `name` below the folder.
///
/// # Errors
/// If there is no folder (`no-folder`), if the file is elsewhere, also behind a link (`not-below-folder`), or if it is no
/// regular file (`file-unreadable`).
pub fn file_below(folder: Option<&Path>, name: &str) -> Result<PathBuf, Failure> {
    let folder = folder.ok_or_else(|| {
        Failure::new(Exit::Refused, "no-folder", "the server was started without a folder for files")
            .hint("tabellion mcp --folder DIR")
    })?;
    let root = fs::canonicalize(folder).map_err(|error| files::unreadable(folder, &error))?;
    let path =
        fs::canonicalize(root.join(name)).map_err(|error| files::unreadable(Path::new(name), &error))?;
    if !path.starts_with(&root) {
        return Err(Failure::new(
            Exit::Refused,
            "not-below-folder",
            format!("{name} is not below the folder of --folder"),
        ));
    }
    match path.is_file() {
        true => Ok(path),
        false => Err(Failure::new(Exit::Failure, "file-unreadable", format!("{name} is not a regular file"))),
    }
}

/// Writes a text to register to the state folder, under a name made of the text and its terms: the same text under the
/// same terms has the same file, and so the same statement.
pub fn store_content(
    state: &Path,
    content: &str,
    subject: Option<&str>,
    content_type: Option<&str>,
) -> Result<PathBuf, Failure> {
    files::make_folder(state, Access::Secret)?;
    let terms = json!([subject, content_type, content]).to_string();
    let digest = EntryDigest::of(terms.as_bytes()).to_string();
    let ending = if serde_json::from_str::<serde_json::Value>(content).is_ok() { "json" } else { "txt" };
    let file = state.join(format!("{}.{ending}", digest.get(..DIGITS).unwrap_or(&digest)));
    files::write(&file, content.as_bytes(), Access::Secret, Existing::Keep)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_the_folder_can_be_named() {
        let outside = tempfile::tempdir().unwrap();
        let folder = outside.path().join("inside");
        fs::create_dir_all(folder.join("deeper")).unwrap();
        fs::write(outside.path().join("secret"), "s").unwrap();
        fs::write(folder.join("deeper/a.json"), "{}").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), folder.join("link")).unwrap();
        let below = |name: &str| file_below(Some(&folder), name);
        assert!(below("deeper/a.json").unwrap().ends_with("inside/deeper/a.json"));
        let absolute = outside.path().join("secret").display().to_string();
        for name in ["../secret", "link", &absolute] {
            assert!(below(name).unwrap_err().to_text().contains("[not-below-folder]"), "{name}");
        }
        assert!(below("deeper").unwrap_err().to_text().contains("not a regular file"));
        assert!(file_below(None, "a").unwrap_err().to_text().contains("[no-folder]"));
    }

    #[test]
    fn the_same_text_under_other_terms_has_another_file() {
        let state = tempfile::tempdir().unwrap();
        let store = |content, subject| store_content(state.path(), content, subject, None).unwrap();
        assert_eq!(store("{}", None), store("{}", None));
        assert_ne!(store("{}", None), store("{}", Some("b")));
        assert!(store("plain", None).extension().is_some_and(|ending| ending == "txt"));
    }
}
