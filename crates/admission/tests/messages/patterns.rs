//! Readings V-8 and V-9: patterns over tool names, compared with a matcher that tries everything.

use proptest::prelude::*;
use vap::glob::{Pattern, allows};
use vap::limits::MAX_PATTERN;

fn pattern(text: &str) -> Pattern {
    Pattern::new(text).unwrap()
}

#[test]
fn v_8_a_pattern_is_anchored_and_a_star_is_any_run() {
    for (text, name, fits) in [
        ("crm.read", "crm.read", true),
        ("crm.read", "crm.reads", false),
        ("crm.read", "xcrm.read", false),
        ("crm.*", "crm.", true),
        ("crm.*", "crm.a.b.c", true),
        ("crm.*", "crm", false),
        ("*", "", true),
        ("*", "any.thing at all", true),
        ("", "", true),
        ("", "a", false),
        ("a*a", "a", false),
        ("a*a", "aa", true),
        ("*.read.*", "x.read.y", true),
        ("*.read.*", ".read", false),
        ("a*b*c", "axxbxxc", true),
        ("a*b*c", "acb", false),
        ("**", "x", true),
        ("*ab*ab*", "abab", true),
        ("*ab*ab*", "aba", false),
    ] {
        assert_eq!(pattern(text).matches(name), fits, "{text} {name}");
    }
}

#[test]
fn v_8_every_other_character_is_itself() {
    for (text, name) in [
        ("crm?read", "crm.read"),
        ("[a-z]", "b"),
        ("CRM.read", "crm.read"),
        ("a.c", "abc"),
        ("\\*", "*"),
        ("{a,b}", "a"),
    ] {
        assert!(!pattern(text).matches(name) && pattern(text).matches(&text.replace('*', "x")), "{text}");
    }
    // The same letter in two spellings of Unicode is two names.
    assert!(!pattern("caf\u{e9}*").matches("cafe\u{301}"));
}

#[test]
fn v_9_a_deny_wins_whatever_the_order() {
    let (all, crm, one) = (pattern("*"), pattern("crm.*"), pattern("crm.read"));
    assert!(!allows(std::slice::from_ref(&one), std::slice::from_ref(&crm), "crm.read"));
    assert!(!allows(&[crm.clone(), one.clone()], &[one], "crm.read"));
    assert!(allows(std::slice::from_ref(&all), std::slice::from_ref(&crm), "mail"));
    assert!(!allows(&[], &[], "mail") && !allows(&[], &[all], "mail"));
    assert!(!allows(&[crm], &[], "mail"));
}

#[test]
fn v_8_a_longer_pattern_is_refused() {
    assert!(Pattern::new(&"a".repeat(MAX_PATTERN)).is_ok());
    assert!(Pattern::new(&"a".repeat(MAX_PATTERN + 1)).is_err());
    assert!(serde_json::from_str::<Pattern>(&format!("{:?}", "a".repeat(MAX_PATTERN + 1))).is_err());
}

#[test]
fn v_8_no_pattern_backtracks() {
    let evil = pattern(&"*a".repeat(MAX_PATTERN / 2));
    let name = "a".repeat(100_000) + "b";
    assert!(!evil.matches(&name), "a matcher that backtracks never comes here");
}

/// Tries every length of every run.
fn naive(pattern: &[u8], name: &[u8]) -> bool {
    match pattern.split_first() {
        None => name.is_empty(),
        Some((b'*', rest)) => (0..=name.len()).any(|at| naive(rest, &name[at..])),
        Some((byte, rest)) => name.first() == Some(byte) && naive(rest, &name[1..]),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn a_match_is_what_trying_everything_finds(text in "[ab*é]{0,8}", name in "[abé]{0,10}") {
        prop_assert_eq!(pattern(&text).matches(&name), naive(text.as_bytes(), name.as_bytes()));
    }
}
