//! MCP messages as lines, one message each: the form of the stdio transport.

use bytes::Bytes;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// Returns a message as one line. Line breaks between its tokens become spaces.
pub fn as_line(message: &[u8]) -> Bytes {
    let mut line: Vec<u8> =
        message.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    line.push(b'\n');
    line.into()
}

/// A line of the input.
pub enum Line {
    /// A whole line, without its line break.
    Whole(Vec<u8>),
    /// The beginning of a line that is too long; its rest is not read yet.
    TooLong(Vec<u8>),
    /// The end of the input.
    End,
}

/// Reads a line of at most `most` bytes.
///
/// # Errors
/// If the input cannot be read.
pub async fn read_line<R: AsyncRead + Unpin>(
    reader: &mut BufReader<R>,
    most: usize,
) -> std::io::Result<Line> {
    let mut line = Vec::new();
    loop {
        let part = reader.fill_buf().await?;
        if part.is_empty() {
            return Ok(Line::End); // A line that was not finished is not a message.
        }
        let (taken, whole) = match part.iter().position(|byte| *byte == b'\n') {
            Some(at) => (at, true),
            None => (part.len(), false),
        };
        if line.len() + taken > most {
            return Ok(Line::TooLong(line));
        }
        line.extend_from_slice(&part[..taken]);
        reader.consume(taken + usize::from(whole));
        if whole {
            // Between tokens a CR is equivalent to a space; in an event it would end the line.
            line.iter_mut().filter(|byte| **byte == b'\r').for_each(|byte| *byte = b' ');
            return Ok(Line::Whole(line.trim_ascii().to_vec()));
        }
    }
}

/// Discards the rest of a line.
///
/// # Errors
/// If the input cannot be read.
pub async fn skip_line<R: AsyncRead + Unpin>(reader: &mut BufReader<R>) -> std::io::Result<()> {
    loop {
        let part = reader.fill_buf().await?;
        let end = part.iter().position(|byte| *byte == b'\n');
        let (taken, is_over) = end.map_or((part.len(), part.is_empty()), |at| (at + 1, true));
        reader.consume(taken);
        if is_over {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[tokio::test]
    async fn a_line_that_is_too_long_loses_its_rest_and_the_next_one_is_whole() {
        let mut reader = BufReader::with_capacity(4, &b"long line\nnext\n"[..]);
        assert!(matches!(read_line(&mut reader, 6).await.unwrap(), Line::TooLong(line) if line == b"long"));
        skip_line(&mut reader).await.unwrap();
        assert!(matches!(read_line(&mut reader, 6).await.unwrap(), Line::Whole(line) if line == b"next"));
        assert!(matches!(read_line(&mut reader, 6).await.unwrap(), Line::End));
        skip_line(&mut reader).await.unwrap();
    }
}
