//! Lists of logs (C2SP tlog-list).
#![allow(clippy::unwrap_used)]

mod common;

use common::Log;
use witness::{LogList, NotAList};

fn read(lines: &str) -> Result<LogList, NotAList> {
    lines.parse()
}

#[test]
fn the_list_of_the_specification_is_read() {
    let (one, two) = (Log::new("tlog.foo.example"), Log::new("bar.example/tlog"));
    let list = read(&format!(
        "#\n# List:      10qps-100klogs\n#\nlogs/v0\n\n# 1st\nvkey {}\nqpd 86400\ncontact https://foo.example/contact\n\n\
         # 2nd\nvkey {}\norigin something-not-equal-to-vkey-keyname\n    \tqpd 24\n    \tcontact sysadmin (at) bar.example\n",
        one.vkey(),
        two.vkey()
    ))
    .unwrap();
    assert_eq!(list.len(), 2);
    let first = list.get(&"tlog.foo.example".parse().unwrap()).unwrap();
    assert_eq!((&first.key, first.per_day), (one.vkey(), Some(86_400)));
    let second = list.get(&"something-not-equal-to-vkey-keyname".parse().unwrap()).unwrap();
    assert_eq!((&second.key, second.per_day), (two.vkey(), Some(24)));
    assert!(list.get(&"bar.example/tlog".parse().unwrap()).is_none());
}

#[test]
fn a_list_by_hand_needs_no_more_than_keys_and_may_be_empty() {
    let log = Log::new("log.example");
    assert_eq!(read(&format!("logs/v0\nvkey {}", log.vkey())).unwrap().len(), 1);
    assert!(read("logs/v0").unwrap().is_empty());
}

#[test]
fn what_is_wrong_with_a_list_is_said_with_its_line() {
    let log = Log::new("log.example");
    let (key, other) = (log.vkey(), Log::new("other.example"));
    let cosigner = tlog::key::VerifierKey::cosigner(key.name().clone(), *key.verifying_key()).unwrap();
    for (text, expected) in [
        (String::new(), "line 1: a list of logs starts with"),
        (format!("# a remark\nvkey {key}\n"), "line 2: a list of logs starts with"),
        ("logs/v1\n".into(), "line 1: a list"),
        ("logs/v0\nlog x\n".into(), "line 2: expected"),
        ("logs/v0\nqpd 5\n".into(), "line 2: expected"),
        (format!("logs/v0\nvkey {key}\nqpd 5\nqpd 5\n"), "line 4: expected"),
        (format!("logs/v0\nvkey {key}\nqpd 5\norigin x\n"), "line 4: expected"),
        (format!("logs/v0\nvkey {key}\nqpd\n"), "line 3: expected"),
        (format!("logs/v0\nvkey {key}\nqpd 05\n"), "line 3: \"qpd\""),
        (format!("logs/v0\nvkey {key}\nqpd 0\n"), "line 3: \"qpd\""),
        (format!("logs/v0\nvkey {key}\nqpd 2147483648\n"), "line 3: \"qpd\""),
        (format!("logs/v0\nvkey {key}x\n"), "line 2:"),
        ("logs/v0\nvkey nonsense\n".into(), "line 2: a verifier key has the form"),
        (format!("logs/v0\nvkey {cosigner}\n"), "line 2: a log's key has type 0x01"),
        (format!("logs/v0\nvkey {key}\n\nvkey {key}\n"), "line 4: another log has the same origin"),
        (
            format!("logs/v0\nvkey {key}\nvkey {}\norigin log.example\n", other.vkey()),
            "line 3: another log has the same origin",
        ),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{text:?}: {error}");
    }
}
