//! Problem details: written as SCRAPI wants them, read from whoever sent them.

use scitt::Problem;
use scitt::cbor::{ErrorKind, Value};
use scitt::problem::{NotAProblem, TABELLION};

use crate::support::{hex, to_hex};

#[test]
fn a_problem_is_written_with_the_keys_of_rfc_9290() {
    let problem = Problem::new("Not Found", "x").instance("urn:uuid:1");
    assert_eq!(
        to_hex(&problem.encode()),
        to_hex(&hex("a3 20 694e6f7420466f756e64 21 6178 22 6a75726e3a757569643a31"))
    );
}

#[test]
fn what_is_written_is_read_back() {
    let problem = Problem::new("Malformed request", "duplicate map key at byte 17")
        .instance("urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8")
        .code("malformed-statement")
        .offset(17)
        .rule("issuers")
        .entry("https://example.com/quota", "left", 3_u64);
    let read = Problem::parse(&problem.encode()).unwrap();
    assert_eq!(read.title, problem.title);
    assert_eq!(read.detail, problem.detail);
    assert_eq!(read.instance, problem.instance);
    assert_eq!(read.get_code(), Some("malformed-statement"));
    assert_eq!(read.get_offset(), Some(17));
    assert_eq!(read.get_rule(), Some("issuers"));
    assert_eq!(read.get("https://example.com/quota", &"left".into()), Some(&Value::Unsigned(3)));
    assert_eq!(read.encode(), problem.encode(), "deterministic");
}

#[test]
fn our_entries_stand_in_one_map_under_one_uri() {
    let encoded = Problem::new("t", "d").code("c").offset(1).encode();
    let oracle: ciborium::Value = ciborium::from_reader(encoded.as_slice()).unwrap();
    let map = oracle.as_map().unwrap();
    let ours: Vec<_> = map.iter().filter(|(key, _)| key.as_text() == Some(TABELLION)).collect();
    assert_eq!((map.len(), ours.len()), (3, 1));
    assert_eq!(ours[0].1.as_map().unwrap().len(), 2);
}

#[test]
fn a_later_entry_replaces_an_earlier_one() {
    assert_eq!(Problem::new("t", "d").code("a").code("b").get_code(), Some("b"));
}

#[test]
fn language_tagged_text_is_read_with_and_without_a_direction() {
    for text in ["a1 20 d826 82 62656e 6178", "a1 20 d826 83 62656e 6178 f4", "a1 20 d826 83 62656e 6178 f6"]
    {
        assert_eq!(Problem::parse(&hex(text)).unwrap().title.as_deref(), Some("x"), "{text}");
    }
}

#[test]
fn a_malformed_entry_is_passed_over_and_the_others_are_read() {
    for bad in [
        "d826 80",
        "d826 6178",
        "d826 82 62656e 00",
        "d826 82 00 6178",
        "d826 84 62656e 6178 f4 00",
        "00",
        "4178",
        "c06178",
    ] {
        let problem = Problem::parse(&hex(&format!("a2 20 {bad} 21 6164"))).unwrap();
        assert_eq!((problem.title.as_deref(), problem.detail.as_deref()), (None, Some("d")), "{bad}");
    }
}

#[test]
fn unknown_keys_of_any_type_are_ignored() {
    let text = "a8 20 6174 00 6161 3903e7 01 f5 02 41ff 03 80 04 6375726e 05 6375726f a3 00 01 f5 02 6161 03";
    let problem = Problem::parse(&hex(text)).unwrap();
    assert_eq!(problem.title.as_deref(), Some("t"));
    assert_eq!(problem.custom.len(), 1, "a URI key must hold a map");
    assert_eq!(problem.custom[0].1.len(), 2, "keys that are not a label are passed over");
}

#[test]
fn a_coap_response_code_is_read_and_never_written() {
    let problem = Problem::parse(&hex("a2 20 6174 23 1884")).unwrap();
    assert_eq!(problem.response_code, Some(0x84));
    assert_eq!(to_hex(&problem.encode()), "a1206174");
    assert_eq!(Problem::parse(&hex("a2 20 6174 23 190190")).unwrap().response_code, None);
}

#[test]
fn an_old_draft_s_problem_is_read() {
    let text = "a4 20 6174 21 6164 22 6a75726e3a785f793a7a31 23 190190";
    let problem = Problem::parse(&hex(text)).unwrap();
    assert_eq!(problem.instance.as_deref(), Some("urn:x_y:z1"));
}

#[test]
fn what_is_no_map_is_no_problem() {
    for text in ["80", "6178", "f6", "a0", "00"] {
        assert_eq!(Problem::parse(&hex(text)), Err(NotAProblem::NotAMap), "{text}");
    }
    assert!(matches!(Problem::parse(b"<html>"), Err(NotAProblem::Cbor(_))));
    assert!(matches!(Problem::parse(b"{\"title\":\"x\"}"), Err(NotAProblem::Cbor(_))));
    let Err(NotAProblem::Cbor(error)) = Problem::parse(&hex("a2 20 6174 20 6175")) else {
        panic!("accepted")
    };
    assert_eq!(error.kind, ErrorKind::DuplicateKey);
    assert_eq!(Problem::parse(&vec![0; (64 << 10) + 1]), Err(NotAProblem::TooLarge));
}

#[test]
fn a_problem_with_nothing_to_say_is_still_a_map_that_is_not_empty() {
    assert_eq!(to_hex(&Problem::default().encode()), "a12060");
}
