//! The work that is checked: files, or one content.

use std::collections::BTreeMap;

use data_encoding::BASE64;
use jose::json;
use jose::members::quote;
use sandbox::Language;
use serde_json::Value;

use super::{hash_of_bytes, hash_of_json};
use crate::error::{Form, Members, RequestError, only, short_text};
use crate::limits::{ARTIFACT_BYTES, FILES, NAME_CHARACTERS, PATH_BYTES};

/// The work that is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artifact {
    language: Option<Language>,
    files: BTreeMap<String, Vec<u8>>,
    entry: String,
}

impl Artifact {
    pub(super) fn read(artifact: &Members<'_>) -> Result<Self, RequestError> {
        only(artifact, &["language", "media_type", "files", "content", "entry"])?;
        if artifact.has("media_type") {
            short_text(artifact, "media_type", NAME_CHARACTERS)?;
        }
        let language = artifact.optional(LANGUAGE, language)?;
        let files = match (artifact.optional_object("files")?, artifact.get("content")) {
            (Some(files), None) => read_files(&files)?,
            (None, Some(content)) => BTreeMap::from([(content_name(language), content_bytes(content))]),
            _ => {
                let why = "an artifact has either files or content";
                return Err(artifact.broken(Form, "files", why));
            }
        };
        if files.values().map(Vec::len).sum::<usize>() > ARTIFACT_BYTES {
            let why = format!("the artifact is larger than {ARTIFACT_BYTES} bytes");
            return Err(artifact.broken(Form, "files", why));
        }
        let entry = entry(artifact, language, &files)?;
        Ok(Self { language, files, entry })
    }

    /// Returns the language of the work, if it is a program.
    #[must_use]
    pub fn language(&self) -> Option<Language> {
        self.language
    }

    /// Returns the files by relative path. A content is one file, with the name [`Artifact::entry`].
    #[must_use]
    pub fn files(&self) -> &BTreeMap<String, Vec<u8>> {
        &self.files
    }

    /// Returns the path of the file that is run or read first.
    #[must_use]
    pub fn entry(&self) -> &str {
        &self.entry
    }

    /// Returns the text of the first file, if it is UTF-8.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        self.files.get(&self.entry).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// Returns the first file as strict JSON, if it is that.
    #[must_use]
    pub fn json(&self) -> Option<Value> {
        json::parse_text(self.text()?).ok()
    }

    /// Returns the hash of the work (reading 16): of the raw bytes of a content or of the only file; of several files,
    /// of the canonical form of the object with the hash of each file by path.
    #[must_use]
    pub fn hash(&self) -> String {
        match self.files.values().next() {
            Some(only) if self.files.len() == 1 => hash_of_bytes(only),
            _ => {
                let hash =
                    |(path, bytes): (&String, &Vec<u8>)| (path.clone(), Value::from(hash_of_bytes(bytes)));
                hash_of_json(&self.files.iter().map(hash).collect())
            }
        }
    }
}

const LANGUAGE: &str = "language";

fn language(artifact: &Members<'_>, name: &str) -> Result<Language, RequestError> {
    match artifact.word(Form, name, &["javascript", "python"])? {
        "javascript" => Ok(Language::JavaScript),
        _ => Ok(Language::Python),
    }
}

/// Returns the names that the first file of a program has by default.
const fn main_file(language: Option<Language>) -> Option<&'static str> {
    match language {
        Some(Language::JavaScript) => Some("main.js"),
        Some(Language::Python) => Some("main.py"),
        None => None,
    }
}

fn content_name(language: Option<Language>) -> String {
    main_file(language).unwrap_or("content").to_owned()
}

/// Returns the bytes of a content: a text as it is, another value in its canonical form.
fn content_bytes(content: &Value) -> Vec<u8> {
    match content {
        Value::String(text) => text.clone().into_bytes(),
        value => jose::jcs::canonical(value),
    }
}

fn read_files(files: &Members<'_>) -> Result<BTreeMap<String, Vec<u8>>, RequestError> {
    if files.count() == 0 || files.count() > FILES {
        let why = format!("found {} files, needed 1 to {FILES}", files.count());
        return Err(files.broken(Form, "", why));
    }
    let paths: BTreeMap<String, Vec<u8>> = files
        .names()
        .map(|path| {
            check_path(path).map_err(|why| files.broken(Form, path, why))?;
            Ok((path.to_owned(), file(files, path)?))
        })
        .collect::<Result<_, RequestError>>()?;
    match paths.keys().find(|path| is_folder_of_another(path, &paths)) {
        None => Ok(paths),
        Some(path) => Err(files.broken(Form, path, "this file is the folder of another file")),
    }
}

/// Reads a file: its text, or an object with its base64.
fn file(files: &Members<'_>, path: &str) -> Result<Vec<u8>, RequestError> {
    match files.get(path) {
        Some(Value::String(text)) => Ok(text.clone().into_bytes()),
        Some(Value::Object(_)) => {
            let file = files.object(path)?;
            only(&file, &["base64"])?;
            let text = file.text("base64")?;
            BASE64.decode(text.as_bytes()).map_err(|error| file.broken(Form, "base64", error.to_string()))
        }
        _ => Err(files.broken(Form, path, "a text or an object with base64 is needed here")),
    }
}

/// Checks that a path stays below the folder of the guest, and is the same on every system.
fn check_path(path: &str) -> Result<(), String> {
    let step_fits = |step: &str| !step.is_empty() && step != "." && step != "..";
    let character_fits = |character: char| !character.is_control() && character != '\\';
    let fits = path.len() <= PATH_BYTES
        && !path.starts_with('-')
        && path.split('/').all(step_fits)
        && path.chars().all(character_fits);
    match fits {
        true => Ok(()),
        false => Err(format!(
            "{} is not a relative path of at most {PATH_BYTES} bytes without empty steps, . and .., backslashes and \
             control characters",
            quote(path)
        )),
    }
}

fn is_folder_of_another(path: &str, files: &BTreeMap<String, Vec<u8>>) -> bool {
    let folder = format!("{path}/");
    files.keys().any(|other| other.starts_with(&folder))
}

fn entry(
    artifact: &Members<'_>,
    language: Option<Language>,
    files: &BTreeMap<String, Vec<u8>>,
) -> Result<String, RequestError> {
    let only = || files.keys().next().filter(|_| files.len() == 1).map(String::as_str);
    let main = || main_file(language).filter(|main| files.contains_key(*main));
    match artifact.optional_text("entry")?.or_else(only).or_else(main) {
        Some(entry) if files.contains_key(entry) => Ok(entry.to_owned()),
        Some(entry) => Err(artifact.unfit(Form, "entry", entry, "the path of a file of the artifact")),
        None => Err(artifact.broken(Form, "entry", "with several files, the first one must be named here")),
    }
}
