//! Lines of bounded length with one JSON text each.

use std::io::{self, BufRead, Read, Write};

use jose::json::{self, Limits};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::limits::LINE_DEPTH;

/// Reads a line of at most `most` bytes and parses it; `None` at the end of the input.
pub(crate) fn read<T: DeserializeOwned>(input: &mut impl BufRead, most: usize) -> io::Result<Option<T>> {
    let mut line = Vec::new();
    input.by_ref().take(most as u64 + 1).read_until(b'\n', &mut line)?;
    match line.pop() {
        None => Ok(None),
        Some(b'\n') => {
            let limits = Limits { bytes: most, depth: LINE_DEPTH };
            json::read_strict(&line, limits).map(Some).map_err(|error| invalid(error.to_string()))
        }
        Some(_) if line.len() == most => Err(invalid(format!("a line is longer than {most} bytes"))),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Writes a value as a line.
pub(crate) fn write(output: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    output.write_all(&line)?;
    output.flush()
}

fn invalid(why: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str, most: usize) -> io::Result<Option<Vec<u8>>> {
        read(&mut text.as_bytes(), most)
    }

    #[test]
    fn a_line_is_read_whole_or_not_at_all() {
        assert_eq!(read_text("[1]\n[2]\n", 3).unwrap(), Some(vec![1]));
        assert_eq!(read_text("", 3).unwrap(), None);
        assert!(read_text("[1,2]\n", 4).unwrap_err().to_string().contains("longer than 4 bytes"));
        assert_eq!(read_text("[1]", 9).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        assert!(read_text("[1] [2]\n", 9).is_err());
    }
}
