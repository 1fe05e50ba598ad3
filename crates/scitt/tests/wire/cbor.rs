//! The reader accepts what RFC 8949 calls well-formed and nothing else; ciborium is the oracle for values.

use ciborium::Value as Oracle;
use proptest::prelude::*;
use scitt::cbor::{Error, ErrorKind, Limits, Value, parse};

use crate::support::{hex, to_hex};

const LIMITS: Limits = Limits { depth: 16, items: 4096 };

fn kind(text: &str) -> ErrorKind {
    parse(&hex(text), LIMITS).expect_err(text).kind
}

fn error(text: &str) -> Error {
    parse(&hex(text), LIMITS).expect_err(text)
}

/// RFC 8949, appendix A: items whose encoding there is the deterministic one.
const DETERMINISTIC: [&str; 58] = [
    "00",
    "01",
    "0a",
    "17",
    "1818",
    "1819",
    "1864",
    "1903e8",
    "1a000f4240",
    "1b000000e8d4a51000",
    "1bffffffffffffffff",
    "c249010000000000000000",
    "3bffffffffffffffff",
    "c349010000000000000000",
    "20",
    "29",
    "3863",
    "3903e7",
    "f90000",
    "f98000",
    "f93c00",
    "fb3ff199999999999a",
    "f93e00",
    "f97bff",
    "fa47c35000",
    "fa7f7fffff",
    "fb7e37e43c8800759c",
    "f90001",
    "f90400",
    "f9c400",
    "fbc010666666666666",
    "f97c00",
    "f97e00",
    "f9fc00",
    "f4",
    "f5",
    "f6",
    "f7",
    "f0",
    "f8ff",
    "c074323031332d30332d32315432303a30343a30305a",
    "c11a514b67b0",
    "c1fb41d452d9ec200000",
    "d74401020304",
    "d818456449455446",
    "d82076687474703a2f2f7777772e6578616d706c652e636f6d",
    "40",
    "4401020304",
    "60",
    "6161",
    "6449455446",
    "62225c",
    "62c3bc",
    "63e6b0b4",
    "64f0908591",
    "80",
    "83010203",
    "8301820203820405",
];

#[test]
fn every_deterministic_example_of_the_rfc_is_written_back_as_it_was_read() {
    let maps = ["a0", "a201020304", "a26161016162820203", "826161a161626163"];
    for text in DETERMINISTIC.iter().chain(&maps) {
        assert_eq!(to_hex(&parse(&hex(text), LIMITS).unwrap().value.encode()), *text);
    }
}

#[test]
fn long_and_indefinite_forms_are_read_as_the_value_they_are() {
    for (long, short) in [
        ("1801", "01"),
        ("1b0000000000000001", "01"),
        ("3800", "20"),
        ("5f42010243030405ff", "450102030405"),
        ("5fff", "40"),
        ("7f657374726561646d696e67ff", "6973747265616d696e67"),
        ("9fff", "80"),
        ("9f018202039f0405ffff", "8301820203820405"),
        ("bf61610161629f0203ffff", "a26161016162820203"),
        ("b80101f5", "a101f5"),
        ("fa3f800000", "f93c00"),
        ("fb3ff0000000000000", "f93c00"),
        ("c2420001", "01"),
        ("c340", "20"),
    ] {
        assert_eq!(to_hex(&parse(&hex(long), LIMITS).unwrap().value.encode()), short, "{long}");
    }
}

#[test]
fn keys_are_put_in_bytewise_order_and_not_by_length_first() {
    let labels = [-1, 10, 100, -2, 1].map(|label: i64| (label.into(), Value::Null));
    assert_eq!(to_hex(&Value::map(labels).encode()), "a501f60af61864f620f621f6");
}

#[test]
fn an_item_that_ends_early_is_refused_at_the_item() {
    for text in
        ["", "18", "19ff", "1affff", "1b00000000000000", "a1", "81", "9f01", "bf01", "c0", "5f4100", "f9ff"]
    {
        assert!(matches!(kind(text), ErrorKind::UnexpectedEnd | ErrorKind::LengthBeyondInput), "{text}");
    }
    assert_eq!(error("83010218").offset, 3);
}

#[test]
fn what_the_rfc_reserves_is_refused() {
    for text in ["1c", "1d", "1e", "3c", "5c", "7d", "9e", "bc", "dd", "fc", "fd", "fe", "1f", "3f", "df00"] {
        assert_eq!(kind(text), ErrorKind::ReservedHead, "{text}");
    }
    for text in ["f800", "f817", "f818", "f81f"] {
        assert_eq!(kind(text), ErrorKind::ReservedSimple, "{text}");
    }
}

#[test]
fn a_break_stands_only_at_the_end_of_what_it_ends() {
    for text in ["ff", "81ff", "8200ff", "a1ff", "a100ff", "a1ff00", "bf00ff", "c0ff"] {
        assert!(matches!(kind(text), ErrorKind::UnexpectedBreak | ErrorKind::LengthBeyondInput), "{text}");
    }
    assert_eq!(kind("bf00ff"), ErrorKind::UnexpectedBreak);
}

#[test]
fn a_chunk_is_a_definite_string_of_the_same_type() {
    for text in ["5f00ff", "5f6100ff", "7f4100ff", "5f5f4100ffff", "5fc00fff", "5f80ff"] {
        assert_eq!(kind(text), ErrorKind::BadChunk, "{text}");
    }
}

#[test]
fn text_must_be_utf8_chunk_by_chunk() {
    for text in ["61ff", "62c328", "63eda080", "64f4908080", "7f61c361bcff"] {
        assert_eq!(kind(text), ErrorKind::NotUtf8, "{text}");
    }
}

#[test]
fn bytes_after_the_item_are_refused_where_they_start() {
    assert_eq!(error("0000"), Error { offset: 1, kind: ErrorKind::TrailingBytes });
}

#[test]
fn equal_keys_are_refused_however_they_are_spelled_and_wherever_they_are() {
    for (text, offset) in [
        ("a201000101", 3),
        ("a20100180101", 3),
        ("bf01001b000000000000000101ff", 3),
        ("a2616100616101", 4),
        ("a26161007f6161ff01", 4),
        ("a241610041610f", 4),
        ("a2f93c0000fa3f80000001", 5),
        ("a2f97e0000f97e0101", 5),
        ("a2c2410100 0101", 5),
        ("a28201020082180102 00", 5),
        ("a2a20102030400a20304010200", 7),
        ("8181a1f5a20f000f00", 7),
        ("a1a201000100 00", 4),
        ("d8ffa201000100", 5),
    ] {
        assert_eq!(error(text), Error { offset, kind: ErrorKind::DuplicateKey }, "{text}");
    }
}

#[test]
fn keys_in_keys_in_keys_are_refused() {
    assert!(parse(&hex("a1a1010000"), LIMITS).is_ok(), "a map may be a key");
    assert_eq!(kind("a1a1a101000000"), ErrorKind::TooDeep, "but its own keys hold nothing");
}

#[test]
fn keys_of_different_types_or_values_are_not_equal() {
    for text in
        ["a20100f93c0001", "a2410100610101", "a20100200 1", "a2f400f501", "a2f600f701", "a2c10100 0101"]
    {
        assert!(parse(&hex(text), LIMITS).is_ok(), "{text}");
    }
}

#[test]
fn nesting_ends_at_the_limit_for_arrays_maps_and_tags_alike() {
    for opening in ["81", "a100", "c1", "9f"] {
        let nested = |levels: usize| {
            let close = if opening == "9f" { "ff".repeat(levels) } else { String::new() };
            hex(&format!("{}00{close}", opening.repeat(levels)))
        };
        assert!(parse(&nested(16), LIMITS).is_ok(), "{opening}");
        assert_eq!(parse(&nested(17), LIMITS).unwrap_err().kind, ErrorKind::TooDeep, "{opening}");
        assert_eq!(parse(&nested(100_000), LIMITS).unwrap_err().kind, ErrorKind::TooDeep, "{opening}");
    }
}

#[test]
fn the_number_of_items_is_bounded() {
    let limits = Limits { depth: 2, items: 5 };
    assert!(parse(&hex("8401020304"), limits).is_ok());
    assert_eq!(
        parse(&hex("850102030405"), limits).unwrap_err(),
        Error { offset: 5, kind: ErrorKind::TooManyItems }
    );
}

#[test]
fn an_announced_length_of_gigabytes_is_refused_without_reading_on() {
    for text in ["5b0000001000000000", "7b0000001000000000", "9b0000001000000000", "bb0000001000000000"] {
        assert_eq!(error(text), Error { offset: 0, kind: ErrorKind::LengthBeyondInput }, "{text}");
    }
    for text in ["bb8000000000000000", "9bffffffffffffffff", "5bffffffffffffffff00", "5f5bffffffffffffffffff"]
    {
        assert_eq!(kind(text), ErrorKind::LengthBeyondInput, "{text}");
    }
}

/// Comparing each key with each other would take far longer than a test may run.
#[test]
fn a_map_of_a_million_distinct_keys_is_checked_in_time() {
    let entries = (0..1_000_000_i64).rev().map(|label| (Value::from(label), Value::Null));
    let encoded = Value::map(entries).encode();
    assert!(parse(&encoded, Limits { depth: 1, items: 1 << 21 }).is_ok());
}

#[test]
fn every_item_knows_its_bytes() {
    let input = hex("a2 01 83 18ff 5f4101ff 6161 f93c00 c100");
    let item = parse(&input, LIMITS).unwrap();
    let map = item.value.as_map().unwrap();
    let elements = map[0].1.value.as_array().unwrap();
    let spans: Vec<&str> = vec!["18ff", "5f4101ff", "6161"];
    for (element, expected) in elements.iter().zip(spans) {
        assert_eq!(to_hex(&input[element.span()]), expected);
    }
    assert_eq!(to_hex(&input[map[1].1.span()]), "c100");
    assert_eq!(item.span(), 0..input.len());
}

fn oracle() -> impl Strategy<Value = Oracle> {
    let leaf = prop_oneof![
        any::<u64>().prop_map(|n| Oracle::Integer(n.into())),
        any::<i64>().prop_map(|n| Oracle::Integer(n.into())),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Oracle::Bytes),
        ".{0,12}".prop_map(Oracle::Text),
        any::<f64>().prop_filter("NaN has many spellings", |f| !f.is_nan()).prop_map(Oracle::Float),
        any::<f32>().prop_filter("NaN", |f| !f.is_nan()).prop_map(|f| Oracle::Float(f.into())),
        any::<bool>().prop_map(Oracle::Bool),
        Just(Oracle::Null),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Oracle::Array),
            prop::collection::btree_map(".{0,4}", inner.clone(), 0..6).prop_map(|map| Oracle::Map(
                map.into_iter().map(|(key, value)| (Oracle::Text(key), value)).collect()
            )),
            (100_u64..1000, inner).prop_map(|(tag, content)| Oracle::Tag(tag, Box::new(content))),
        ]
    })
}

/// Ours, as ciborium sees it.
fn as_oracle(bytes: &[u8]) -> Oracle {
    ciborium::from_reader(bytes).unwrap()
}

fn sorted(value: Oracle) -> Oracle {
    match value {
        Oracle::Array(elements) => Oracle::Array(elements.into_iter().map(sorted).collect()),
        Oracle::Tag(tag, content) => Oracle::Tag(tag, Box::new(sorted(*content))),
        Oracle::Map(entries) => {
            let mut entries: Vec<_> =
                entries.into_iter().map(|(key, value)| (sorted(key), sorted(value))).collect();
            entries.sort_by_key(|(key, _)| format!("{key:?}"));
            Oracle::Map(entries)
        }
        other => other,
    }
}

proptest! {
    #[test]
    fn what_ciborium_writes_is_read_and_written_with_the_same_value(value in oracle()) {
        let mut theirs = Vec::new();
        ciborium::into_writer(&value, &mut theirs).unwrap();
        let ours = parse(&theirs, LIMITS).unwrap().value.encode();
        prop_assert_eq!(sorted(as_oracle(&ours)), sorted(value));
        prop_assert_eq!(&parse(&ours, LIMITS).unwrap().value.encode(), &ours);
    }

    #[test]
    fn no_input_makes_the_reader_panic_and_what_it_accepts_it_writes_back(
        input in prop::collection::vec(any::<u8>(), 0..64)
    ) {
        if let Ok(item) = parse(&input, LIMITS) {
            prop_assert_eq!(item.span(), 0..input.len());
            let encoded = item.value.encode();
            let again = parse(&encoded, LIMITS).unwrap();
            prop_assert_eq!(again.value.encode(), encoded);
        }
    }
}

#[test]
fn a_map_is_asked_by_value_whatever_the_key_is() {
    let input = hex("a2 820102 f5 1863 f4");
    let map = parse(&input, LIMITS).unwrap().value;
    let key = Value::array([1_i64.into(), 2_i64.into()]);
    assert_eq!(map.get(&key).map(|item| &item.value), Some(&Value::Bool(true)));
    assert_eq!(map.get(&Value::from(99_i64)).map(|item| &item.value), Some(&Value::Bool(false)));
}
