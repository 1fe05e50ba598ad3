//! Attaching receipts and taking them off again.

use scitt::cbor::{ErrorKind, Value};
use scitt::limits::{RECEIPT_BYTES, STATEMENT_BYTES, TRANSPARENT_BYTES};
use scitt::transparent::{attach, strip, takes_receipts};
use scitt::{MalformedKind, SignedStatement, Signer, X5Chain};

use crate::support::{builder, ed25519, frame, hex, statement};

const FIRST: &[u8] = b"a receipt, unread";
const SECOND: &[u8] = b"another receipt";

#[test]
fn what_is_attached_comes_off_again_and_leaves_the_same_bytes() {
    let plain = statement().bytes().to_vec();
    let transparent = attach(&plain, &[FIRST, SECOND]).unwrap();
    let parsed = SignedStatement::parse(transparent.clone()).unwrap();
    assert!(takes_receipts(&parsed));
    assert_eq!(parsed.receipts(), [FIRST, SECOND]);
    assert_eq!(parsed.bytes(), &plain, "the entry ID does not change");
    parsed.verify_with(ed25519().public_key(), None).unwrap();
    let (stripped, receipts) = strip(&transparent).unwrap();
    assert_eq!(stripped, plain);
    assert_eq!(receipts, [FIRST, SECOND]);
}

#[test]
fn receipts_are_added_to_those_already_there_but_not_twice() {
    let once = attach(statement().bytes(), &[FIRST]).unwrap();
    let again = attach(&once, &[FIRST, SECOND, SECOND]).unwrap();
    assert_eq!(SignedStatement::parse(again.clone()).unwrap().receipts(), [FIRST, SECOND]);
    assert_eq!(attach(&again, &[FIRST]).unwrap(), again);
}

#[test]
fn the_rest_of_the_unprotected_header_keeps_its_bytes() {
    let odd = hex("bf 6178 9f1801ff 19018a 81 4161 1863 fb3ff0000000000000 ff");
    let statement = frame(&hex("a10127"), &odd, None, &[0; 64]);
    let (stripped, receipts) = strip(&statement).unwrap();
    assert_eq!(receipts, [b"a".as_slice()]);
    let kept = hex("a2 6178 9f1801ff 1863 fb3ff0000000000000");
    assert_eq!(stripped, frame(&hex("a10127"), &kept, None, &[0; 64]));
}

#[test]
fn certificates_stay_when_receipts_go() {
    let chain = X5Chain::new(vec![vec![0x30].into()]).unwrap();
    let plain = builder().unprotected_x5chain(&chain).encode(&ed25519()).unwrap();
    let transparent = attach(&plain, &[FIRST]).unwrap();
    assert_eq!(SignedStatement::parse(transparent.clone()).unwrap().unprotected_x5chain(), Some(&chain));
    assert_eq!(strip(&transparent).unwrap().0, plain);
}

#[test]
fn receipts_that_an_old_draft_left_unwrapped_are_read() {
    let raw = hex("a1 19018a 81 d284 43a10127 a0 f6 4100");
    let parsed = SignedStatement::parse(frame(&hex("a10127"), &raw, None, &[0; 64])).unwrap();
    assert_eq!(parsed.receipts(), [hex("d284 43a10127 a0 f6 4100")]);
}

#[test]
fn a_list_of_receipts_is_an_array_of_one_to_sixty_four() {
    let with = |value: Value<'static>| {
        let bytes = builder().unprotected(394, value).encode(&ed25519()).unwrap();
        SignedStatement::parse(bytes).map(|statement| statement.receipts().len())
    };
    let list = |count: usize| Value::array((0..count).map(|_| FIRST.into()));
    assert_eq!(with(list(64)).unwrap(), 64);
    for bad in [list(0), list(65)] {
        assert!(matches!(with(bad).unwrap_err().kind, MalformedKind::Count { .. }));
    }
    for bad in
        [Value::Null, FIRST.into(), Value::map([]), Value::array([Value::Null]), Value::array(["".into()])]
    {
        assert!(matches!(with(bad).unwrap_err().kind, MalformedKind::Type { .. }));
    }
    let many: Vec<Vec<u8>> = (0..65_u8).map(|n| vec![n]).collect();
    assert!(attach(statement().bytes(), &many).is_err());
}

#[test]
fn a_statement_of_the_largest_size_has_room_for_a_receipt_of_the_largest_size() {
    let of = |payload: usize| frame(&hex("a10127"), &hex("a0"), Some(&vec![0; payload]), &[0; 64]);
    let around = of(STATEMENT_BYTES).len() - STATEMENT_BYTES;
    let largest = of(STATEMENT_BYTES - around);
    assert_eq!(largest.len(), STATEMENT_BYTES);
    let receipt = vec![7; RECEIPT_BYTES];
    let transparent = attach(&largest, &[&receipt]).unwrap();
    assert_eq!(SignedStatement::parse(transparent.clone()).unwrap().bytes(), &largest);
    assert_eq!(strip(&transparent).unwrap().0, largest);

    let too_large = |limit| MalformedKind::TooLarge { limit };
    let error = SignedStatement::parse(of(STATEMENT_BYTES - around + 1)).unwrap_err();
    assert_eq!(error.kind, too_large(STATEMENT_BYTES), "the room is for receipts alone");
    let error = attach(&transparent, &[vec![8; RECEIPT_BYTES]]).unwrap_err();
    assert_eq!(error.kind, too_large(TRANSPARENT_BYTES));
}

#[test]
fn nothing_is_attached_to_what_is_no_statement() {
    let whole = statement();
    let truncated = &whole.bytes()[..40];
    let error = attach(truncated, &[FIRST]).unwrap_err();
    assert_eq!(error.kind, MalformedKind::Cbor(ErrorKind::LengthBeyondInput));
    assert!(strip(truncated).is_err());
}

#[test]
fn nothing_is_attached_where_the_issuer_signed_the_receipts_label() {
    let statement = builder().label(394, FIRST.into()).sign(&ed25519()).unwrap();
    let error = attach(statement.bytes(), &[SECOND]).unwrap_err();
    assert_eq!(error.kind, MalformedKind::LabelInBothHeaders(394.into()));
    assert!(!takes_receipts(&statement));
    assert_eq!(&strip(statement.bytes()).unwrap().0, statement.bytes());
}
