//! Nothing but the bytes that were written is an archive.
#![allow(clippy::unwrap_used)]

mod support;

use archive::{ArchiveError, ArchivePurpose};
use proptest::prelude::*;
use store::{Lifecycle, Memory};
use support::{Plain, full_of, written};

fn archive_bytes() -> Vec<u8> {
    tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(async { written(&full_of(7).await, ArchivePurpose::Backup).await.0 })
}

fn verify(bytes: &[u8]) -> Result<archive::ArchiveSummary, ArchiveError> {
    archive::verify(bytes, &Plain, &|_| ())
}

#[test]
fn every_flipped_byte_is_found() {
    let whole = archive_bytes();
    assert!(verify(&whole).is_ok());
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        assert!(verify(&bytes).is_err(), "byte {at}");
    }
}

#[test]
fn every_truncation_is_found_and_told_with_its_offset() {
    let whole = archive_bytes();
    for length in (0..whole.len()).step_by(7).chain(whole.len() - 200..whole.len()) {
        match verify(&whole[..length]) {
            Err(ArchiveError::NotAnArchive) => assert!(length < 21),
            Err(ArchiveError::Truncated { offset }) => assert_eq!(offset, length as u64),
            other => panic!("{length}: {other:?}"),
        }
    }
}

#[test]
fn bytes_after_the_last_record_are_refused() {
    let mut bytes = archive_bytes();
    let length = bytes.len() as u64;
    bytes.push(b'\n');
    assert!(matches!(verify(&bytes), Err(ArchiveError::Damaged { offset, .. }) if offset == length));
    let twice = [archive_bytes(), archive_bytes()].concat();
    assert!(verify(&twice).is_err());
}

#[test]
fn other_files_are_refused_by_name() {
    for other in [&b""[..], b"SQLite format 3\0", b"tabellion archive v2\n", b"tabellion archive v1"] {
        assert!(matches!(verify(other), Err(ArchiveError::NotAnArchive)), "{other:?}");
    }
}

#[test]
fn a_length_that_nobody_would_write_takes_no_memory() {
    let mut bytes = b"tabellion archive v1\n".to_vec();
    bytes.extend([1, 0xff, 0xff, 0xff, 0xff]);
    assert!(matches!(verify(&bytes), Err(ArchiveError::Damaged { .. })));
    let mut bytes = b"tabellion archive v1\n".to_vec();
    bytes.extend([1, 0x03, 0xff, 0xff, 0xff, 0]);
    assert!(matches!(verify(&bytes), Err(ArchiveError::Truncated { .. })));
}

#[test]
fn nothing_is_filled_from_a_file_that_is_not_the_one_that_was_checked() {
    let whole = archive_bytes();
    let summary = verify(&whole).unwrap();
    let mut changed = whole.clone();
    let at = whole.len() - 30;
    changed[at] ^= 1;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let store = Memory::new();
        assert!(archive::fill(&store, &changed[..], (&summary, &Plain), &|_| ()).await.is_err());
        assert!(matches!(store.state().await.unwrap(), store::State::Filling { .. }), "and it is not opened");
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn no_bytes_make_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..512)) {
        let _ = verify(&bytes);
        let _ = verify(&[b"tabellion archive v1\n".as_slice(), &bytes].concat());
    }

    #[test]
    fn records_that_are_moved_removed_or_doubled_are_found(from in 0usize..40, to in 0usize..40, what in 0u8..3) {
        let whole = archive_bytes();
        let mut records = split(&whole);
        let (from, to) = (records.len() - 1 - from % records.len(), records.len() - 1 - to % records.len());
        match what {
            0 => { records.remove(from); }
            1 => { let copy = records[from].clone(); records.insert(to, copy); }
            _ => records.swap(from, to),
        }
        let bytes = [b"tabellion archive v1\n".to_vec(), records.concat()].concat();
        prop_assume!(bytes != whole);
        prop_assert!(verify(&bytes).is_err());
    }
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut records = Vec::new();
    bytes = &bytes[21..];
    while !bytes.is_empty() {
        let length = u32::from_be_bytes(bytes[1..5].try_into().unwrap()) as usize + 5;
        records.push(bytes[..length].to_vec());
        bytes = &bytes[length..];
    }
    records
}
