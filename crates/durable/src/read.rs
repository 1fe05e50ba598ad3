//! [`read`]: reading files of bounded size.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reads a file; `None` if there is none. A file of more than `most` bytes is an error of the kind
/// [`io::ErrorKind::FileTooLarge`], and is not read to its end.
pub fn read(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    // The length is a hint: a device or a pipe has none.
    let length = file.metadata().map_or(0, |found| found.len().min(most));
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > most {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("longer than {most} bytes"))),
        false => Ok(Some(bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_too_long_is_refused_and_one_that_is_not_there_is_none() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        assert_eq!(read(&file, 4).unwrap(), None);
        std::fs::write(&file, b"four").unwrap();
        assert_eq!(read(&file, 4).unwrap(), Some(b"four".to_vec()));
        let refused = read(&file, 3).unwrap_err();
        assert_eq!(
            (refused.kind(), refused.to_string()),
            (io::ErrorKind::FileTooLarge, "longer than 3 bytes".into())
        );
        // An endless file is not read to its end.
        assert!(read(Path::new("/dev/zero"), 4096).is_err());
        assert!(read(home.path(), 4096).is_err(), "a folder");
    }
}
