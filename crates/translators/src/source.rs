//! Sources of a translation: one file, the files of a storage tree, or the rows of a database.

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::error::TranslateError;
use crate::limits::SOURCE_BYTES;

/// The byte order mark of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// The byte order marks of UTF-16.
const UTF_16: [&[u8]; 2] = [b"\xFF\xFE", b"\xFE\xFF"];

/// Returns a text without the byte order mark at its beginning.
pub(crate) fn without_byte_order_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes)
}

/// A file of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// The path, relative to the source, with `/` between its steps. For a single file, its name.
    pub path: String,
    /// The content.
    pub bytes: Vec<u8>,
}

impl SourceFile {
    /// The content without the byte order mark that some editors place at the beginning.
    pub(crate) fn content(&self) -> &[u8] {
        without_byte_order_mark(&self.bytes)
    }

    /// The file's name without its last extension.
    pub(crate) fn stem(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        match name.rsplit_once('.') {
            Some((stem, _)) if !stem.is_empty() => stem,
            _ => name,
        }
    }
}

/// The bytes to translate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSource {
    files: Vec<SourceFile>,
    /// True if the files stand for rows of a database.
    rows: bool,
}

impl SessionSource {
    /// A source of one file.
    pub fn file(path: impl Into<String>, bytes: impl Into<Vec<u8>>) -> Self {
        SessionSource { files: vec![SourceFile { path: path.into(), bytes: bytes.into() }], rows: false }
    }

    /// A source of several files. Their order has no effect.
    pub fn tree(mut files: Vec<SourceFile>) -> Self {
        files.sort_by(|a, b| a.path.cmp(&b.path));
        SessionSource { files, rows: false }
    }

    /// A source of rows of a database, as if each were a file. For OpenCode, the path is `TABLE/ID` and the content an
    /// object with the columns; for Cursor, they are the columns `key` and `value` of the table `cursorDiskKV`.
    pub fn rows(rows: Vec<SourceFile>) -> Self {
        SessionSource { rows: true, ..SessionSource::tree(rows) }
    }

    /// Returns whether the files stand for rows of a database.
    pub fn is_rows(&self) -> bool {
        self.rows
    }

    /// The files, ordered by path.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// Size in bytes, all files together.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|file| file.bytes.len()).sum()
    }

    /// SHA-256 digest in lower-case hex: of the file, or for several files of the lines that `sha256sum` prints for
    /// them in the order of their paths.
    pub fn sha256(&self) -> String {
        let digest = |bytes: &[u8]| HEXLOWER.encode(&Sha256::digest(bytes));
        match self.files.as_slice() {
            [only] => digest(&only.bytes),
            files => {
                let lines = files.iter().map(|file| format!("{}  {}\n", digest(&file.bytes), file.path));
                digest(lines.collect::<String>().as_bytes())
            }
        }
    }

    /// Checks that the source has a size and an encoding which can be translated.
    pub(crate) fn check(&self) -> Result<(), TranslateError> {
        if let [only] = self.files()
            && UTF_16.iter().any(|mark| only.bytes.starts_with(mark))
        {
            return Err(TranslateError::Utf16);
        }
        match self.bytes() {
            0 => Err(TranslateError::Empty),
            bytes if bytes > SOURCE_BYTES => Err(TranslateError::TooLarge { bytes, limit: SOURCE_BYTES }),
            _ => Ok(()),
        }
    }
}
