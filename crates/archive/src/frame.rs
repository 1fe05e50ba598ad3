//! Framing of records: a kind byte, a length, the payload, and a running checksum over everything.

use std::io::{self, BufReader, Read, Write};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::ArchiveRecord;
use crate::limits::RECORD_BYTES;

/// First line of the file; it names the format version.
const FIRST_LINE: &[u8] = b"tabellion archive v1\n";
/// Length of a frame's header: kind and payload length.
const HEAD_BYTES: usize = 5;
/// Size of the read buffer.
const BUFFER_BYTES: usize = 1 << 20;

/// Errors of reading an archive. Offsets are in bytes from the beginning of the file.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// An I/O error.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The file does not begin with the format's first line.
    #[error("it is not an archive of a log: it does not begin with \"tabellion archive v1\"")]
    NotAnArchive,
    /// The file ends within a record or before [`ArchiveRecord::End`].
    #[error("it is incomplete: it ends at byte {offset}, within a record or before the last one")]
    Truncated {
        /// Length of the file.
        offset: u64,
    },
    /// The file's bytes are damaged: an invalid record, checksum or trailing bytes.
    #[error("it is damaged at byte {offset}: {what}")]
    Damaged {
        /// Offset of the record.
        offset: u64,
        /// Description of the damage.
        what: String,
    },
    /// The records are valid but contradict each other.
    #[error("its log contradicts itself, at byte {offset}: {what}")]
    Contradicts {
        /// Offset of the record.
        offset: u64,
        /// Description of the contradiction.
        what: String,
    },
}

/// Reads records in order. Bytes after the last record are an error.
pub struct ArchiveReader<R> {
    source: BufReader<R>,
    checksum: Sha256,
    /// Offset of the next byte.
    offset: u64,
    /// Offset of the last record.
    began: u64,
    entries: u64,
    ended: bool,
    sum: [u8; 32],
}

impl<R: Read> ArchiveReader<R> {
    /// Creates a reader and checks the first line.
    pub fn new(source: R) -> Result<Self, ArchiveError> {
        let mut reader = Self {
            source: BufReader::with_capacity(BUFFER_BYTES, source),
            checksum: Sha256::new(),
            offset: 0,
            began: 0,
            entries: 0,
            ended: false,
            sum: [0; 32],
        };
        match reader.take(FIRST_LINE.len()) {
            Ok(line) if line == FIRST_LINE => {
                reader.checksum.update(&line);
                Ok(reader)
            }
            Ok(_) | Err(ArchiveError::Truncated { .. }) => Err(ArchiveError::NotAnArchive),
            Err(error) => Err(error),
        }
    }

    /// Reads the next record; `None` after [`ArchiveRecord::End`].
    pub fn read(&mut self) -> Result<Option<ArchiveRecord>, ArchiveError> {
        if self.ended {
            return self.nothing_more();
        }
        self.began = self.offset;
        let head = self.take(HEAD_BYTES)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        if length > RECORD_BYTES {
            return Err(self.damaged(format!("a record of {length} bytes, where {RECORD_BYTES} are allowed")));
        }
        let payload = self.take(length)?;
        let before = self.checksum.clone();
        self.checksum.update(&head);
        self.checksum.update(&payload);
        let record = ArchiveRecord::decode(head[0], Bytes::from(payload), self.entries);
        let record = record.map_err(|what| self.damaged(what))?;
        match &record {
            ArchiveRecord::Entry(..) => self.entries += 1,
            ArchiveRecord::End(end) => {
                self.ended = true;
                self.sum = end.checksum_after(before);
                if end.checksum() != Some(self.sum) {
                    return Err(self.damaged("its checksum does not match its bytes".into()));
                }
            }
            _ => {}
        }
        Ok(Some(record))
    }

    /// The archive's checksum; valid after the last record was read.
    pub fn checksum(&self) -> [u8; 32] {
        self.sum
    }

    /// The error for a last record that contradicts its predecessors.
    pub fn contradicts(&self, what: String) -> ArchiveError {
        ArchiveError::Contradicts { offset: self.began, what }
    }

    fn damaged(&self, what: String) -> ArchiveError {
        ArchiveError::Damaged { offset: self.began, what }
    }

    fn nothing_more(&mut self) -> Result<Option<ArchiveRecord>, ArchiveError> {
        self.began = self.offset;
        match self.source.read(&mut [0])? {
            0 => Ok(None),
            _ => Err(self.damaged("there are bytes after the last record".into())),
        }
    }

    /// Reads `length` bytes. Memory is allocated as bytes arrive, so a wrong length cannot exhaust it.
    fn take(&mut self, length: usize) -> Result<Vec<u8>, ArchiveError> {
        let mut bytes = Vec::new();
        (&mut self.source).take(length as u64).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        match bytes.len() == length {
            true => Ok(bytes),
            false => Err(ArchiveError::Truncated { offset: self.offset }),
        }
    }
}

/// Writes records and computes the checksum.
pub(crate) struct ArchiveWriter<W> {
    out: W,
    checksum: Sha256,
}

impl<W: Write> ArchiveWriter<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(FIRST_LINE)?;
        let mut checksum = Sha256::new();
        checksum.update(FIRST_LINE);
        Ok(Self { out, checksum })
    }

    pub(crate) fn write(&mut self, record: &ArchiveRecord) -> io::Result<()> {
        let payload = record.encode();
        let length = u32::try_from(payload.len()).ok().filter(|length| *length as usize <= RECORD_BYTES);
        let length = length.ok_or_else(|| {
            io::Error::other(format!("a record of {} bytes, where {RECORD_BYTES} are allowed", payload.len()))
        })?;
        let mut head = [record.kind(), 0, 0, 0, 0];
        head[1..].copy_from_slice(&length.to_be_bytes());
        self.checksum.update(head);
        self.checksum.update(&payload);
        self.out.write_all(&head)?;
        self.out.write_all(&payload)
    }

    /// The checksum state over all bytes so far.
    pub(crate) fn checksum(&self) -> Sha256 {
        self.checksum.clone()
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
