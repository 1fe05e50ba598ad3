//! Records in a file: a kind, a length, the bytes, and a running checksum over all of it.

use std::io::{self, BufReader, Read, Write};

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::Record;
use crate::limits::RECORD_BYTES;

/// The first line. Another version is another line.
const FIRST_LINE: &[u8] = b"tabellion archive v1\n";
/// The kind of the last record.
pub(crate) const LAST_KIND: u8 = 255;
/// Kind and length.
const HEAD_BYTES: usize = 5;
/// Bytes that are read from the file at once.
const BUFFER_BYTES: usize = 1 << 20;

/// Why an archive was not read to its end. Offsets count bytes from the beginning of the file.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The file system failed.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// It is something else.
    #[error("it is not an archive of a log: it does not begin with \"tabellion archive v1\"")]
    NotAnArchive,
    /// It ends too early.
    #[error("it ends at byte {offset}, within a record or before the last one: it is not whole")]
    Truncated {
        /// Where it ends.
        offset: u64,
    },
    /// Its bytes are not those that were written.
    #[error("it is damaged at byte {offset}: {what}")]
    Damaged {
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// The log in it contradicts itself.
    #[error("the log in it contradicts itself, at byte {offset}: {what}")]
    Contradicts {
        /// Where the record begins.
        offset: u64,
        /// What is wrong.
        what: String,
    },
}

/// Reads records one after the other. Nothing may stand after the last one.
pub struct Reader<R> {
    source: BufReader<R>,
    checksum: Sha256,
    /// Of the next byte.
    offset: u64,
    /// Of the record read last.
    began: u64,
    entries: u64,
    ended: bool,
    sum: [u8; 32],
}

impl<R: Read> Reader<R> {
    /// Reads the first line.
    pub fn new(source: R) -> Result<Self, Unreadable> {
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
            Ok(_) | Err(Unreadable::Truncated { .. }) => Err(Unreadable::NotAnArchive),
            Err(error) => Err(error),
        }
    }

    /// The next record; `None` after the last one.
    pub fn read(&mut self) -> Result<Option<Record>, Unreadable> {
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
        let record = Record::decode(head[0], Bytes::from(payload), self.entries);
        let record = record.map_err(|what| self.damaged(what))?;
        match &record {
            Record::Entry(..) => self.entries += 1,
            Record::End(end) => {
                self.ended = true;
                self.sum = end.checksum_after(before);
                if end.checksum() != Some(self.sum) {
                    return Err(self.damaged("its checksum is not that of its bytes".into()));
                }
            }
            _ => {}
        }
        Ok(Some(record))
    }

    /// Once the last record is read: the checksum that is in it.
    pub fn checksum(&self) -> [u8; 32] {
        self.sum
    }

    /// That the record read last contradicts those before it.
    pub fn contradicts(&self, what: String) -> Unreadable {
        Unreadable::Contradicts { offset: self.began, what }
    }

    fn damaged(&self, what: String) -> Unreadable {
        Unreadable::Damaged { offset: self.began, what }
    }

    fn nothing_more(&mut self) -> Result<Option<Record>, Unreadable> {
        self.began = self.offset;
        match self.source.read(&mut [0])? {
            0 => Ok(None),
            _ => Err(self.damaged("there are bytes after the last record".into())),
        }
    }

    /// So many bytes. Memory is taken as they come, whatever a length promises.
    fn take(&mut self, length: usize) -> Result<Vec<u8>, Unreadable> {
        let mut bytes = Vec::new();
        (&mut self.source).take(length as u64).read_to_end(&mut bytes)?;
        self.offset += bytes.len() as u64;
        match bytes.len() == length {
            true => Ok(bytes),
            false => Err(Unreadable::Truncated { offset: self.offset }),
        }
    }
}

/// Writes records, and keeps the checksum.
pub(crate) struct Writer<W> {
    out: W,
    checksum: Sha256,
}

impl<W: Write> Writer<W> {
    pub(crate) fn new(mut out: W) -> io::Result<Self> {
        out.write_all(FIRST_LINE)?;
        let mut checksum = Sha256::new();
        checksum.update(FIRST_LINE);
        Ok(Self { out, checksum })
    }

    pub(crate) fn write(&mut self, record: &Record) -> io::Result<()> {
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

    /// Of every byte so far.
    pub(crate) fn checksum(&self) -> Sha256 {
        self.checksum.clone()
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
