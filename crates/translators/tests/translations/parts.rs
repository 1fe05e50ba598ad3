//! Sessions that are too large for one record.

use serde_json::{Value, json};
use translators::{RecordPart, Redaction, SessionRecord, SessionSource, Settings, Translation, translate};

use crate::attribution::written;
use crate::fixtures::{SMALL, divided, entries, file, sources, translated, usages};

fn values(translation: &Translation) -> Vec<Value> {
    translation.records.iter().map(|(record, _)| record.value()).collect()
}

#[test]
fn the_parts_together_have_the_entries_and_token_counts_of_the_whole_session() {
    for source in sources() {
        let (whole, parts) = (translated(&source), divided(&source, SMALL));
        let all = |of: &Translation, what: fn(&Value) -> Vec<Value>| -> Vec<Value> {
            values(of).iter().flat_map(what).collect()
        };
        let name = &source.files()[0].path;
        assert_eq!(all(&whole, entries), all(&parts, entries), "{name}");
        assert_eq!(all(&whole, usages), all(&parts, usages), "{name}");
        assert_eq!(whole.account, parts.account, "{name}");
        assert_eq!(whole.sessions().count(), parts.sessions().count(), "{name}");
    }
}

#[test]
fn each_part_says_which_entries_it_has_and_names_the_part_before() {
    let source = file("claude.jsonl");
    let previous = "sha256:00".to_owned();
    let settings = Settings {
        record_bytes: SMALL / 2,
        previous_records: [("ses-1".to_owned(), previous.clone())].into(),
        ..Settings::default()
    };
    let translation = translate(&source, &settings).unwrap();
    let session_entries =
        translated(&source).records[0].0.value()["session"]["entries"].as_array().unwrap().len();
    let (mut before, mut next_entry) = (previous, 0);
    for (number, (record, _)) in (1..).zip(&translation.records) {
        let part = RecordPart::of(&record.value()).unwrap();
        assert_eq!(
            (part.number, part.first_entry, part.session_entries),
            (number, next_entry, session_entries)
        );
        assert_eq!(record.value()["session"]["entries"].as_array().unwrap().len(), part.entries);
        assert_eq!(record.value()["previous-record"], before);
        assert_eq!(part.is_last(), number == translation.records.len());
        (before, next_entry) = (record.digest(), next_entry + part.entries);
    }
    assert!(translation.records.len() > 1 && next_entry == session_entries);
}

#[test]
fn the_attribution_of_files_is_in_the_last_part() {
    let calls: Vec<Value> = (0..20).flat_map(|call| written(&format!("c{call}"), "one\n")).collect();
    let text: String = calls.iter().map(|line| format!("{line}\n")).collect();
    let source = SessionSource::file("s.jsonl", text.into_bytes());
    let translation = divided(&source, SMALL);
    let has_it = values(&translation).into_iter().map(|record| record.get("file-attribution").is_some());
    let expected = (1..=translation.records.len()).map(|number| number == translation.records.len());
    assert_eq!(has_it.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
}

#[test]
fn the_same_source_and_limit_give_the_same_parts_with_different_identifiers() {
    let bytes = |of: &Translation| -> Vec<Vec<u8>> {
        of.records.iter().map(|(record, _)| record.bytes().to_vec()).collect()
    };
    let source = file("codex.jsonl");
    let one = divided(&source, SMALL);
    assert_eq!(bytes(&one), bytes(&divided(&source, SMALL)));
    let mut ids: Vec<&str> = one.records.iter().map(|(record, _)| record.id()).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), one.records.len());
}

#[test]
fn a_session_that_fits_is_one_record_without_a_part() {
    let source = file("claude.jsonl");
    let whole = translated(&source);
    let size = whole.records[0].0.bytes().len();
    assert_eq!(divided(&source, size).records[0].0, whole.records[0].0);
    assert_eq!(RecordPart::of(&whole.records[0].0.value()), None);
    assert!(divided(&source, size - 1).records.len() > 1);
}

#[test]
fn parts_keep_the_limit_and_a_single_entry_is_not_divided() {
    let line = |content: &str| {
        let message = json!({ "role": "user", "content": content });
        json!({ "type": "user", "sessionId": "s", "message": message }).to_string() + "\n"
    };
    let (small, large) = (line("why?"), line(&"because ".repeat(1000)));
    let source = SessionSource::file("s.jsonl", (small.repeat(40) + &large + &small.repeat(3)).into_bytes());
    let sizes: Vec<(usize, usize)> = divided(&source, SMALL)
        .records
        .iter()
        .map(|(record, _): &(SessionRecord, _)| (entries(&record.value()).len(), record.bytes().len()))
        .collect();
    let too_large: Vec<_> = sizes.iter().filter(|(_, bytes)| *bytes > SMALL).collect();
    assert!(matches!(too_large.as_slice(), [(1, _)]), "{sizes:?}");
    assert_eq!(sizes.iter().map(|(entries, _)| entries).sum::<usize>(), 44);
}

#[test]
fn a_session_with_more_values_than_a_record_may_have_is_divided() {
    fn count(value: &Value) -> usize {
        let items = value.as_array().into_iter().flatten();
        let members = value.as_object().into_iter().flat_map(|members| members.values());
        1 + items.chain(members).map(count).sum::<usize>()
    }
    let numbers = json!({ "type": "progress", "sessionId": "s", "numbers": vec![1; 300] }).to_string() + "\n";
    let source = SessionSource::file("s.jsonl", numbers.repeat(10));
    let divided = |record_values: usize| {
        let settings = Settings { record_values, ..Settings::default() };
        values(&translate(&source, &settings).unwrap())
    };
    let whole = divided(usize::MAX);
    assert_eq!((whole.len(), divided(count(&whole[0])).len()), (1, 1));
    let parts = divided(count(&whole[0]) - 1);
    assert_eq!(parts.len(), 2);
    assert_eq!(parts.iter().flat_map(entries).count(), 10);
    assert!(divided(1000).iter().all(|part| count(part) <= 1000));
    assert_eq!(divided(1).len(), 10, "a single entry is not divided");
}

#[test]
fn a_part_is_not_made_to_see_that_it_is_too_large_and_has_the_same_entries_as_if_it_was() {
    let parts = |source: &SessionSource, left_out: &str| -> Vec<Vec<Value>> {
        let redaction = Redaction { fields: vec![left_out.parse().unwrap()], ..Redaction::default() };
        let settings = Settings { redaction, record_bytes: SMALL, ..Settings::default() };
        let translation = translate(source, &settings).unwrap();
        let sessions = values(&translation).into_iter().map(|record| record["session"]["entries"].clone());
        sessions.map(|entries| entries.as_array().unwrap().clone()).collect()
    };
    for source in sources() {
        // What a position names may be left out of one part and not of another, so these parts are made.
        let made = parts(&source, "/session/entries/0/no-such-member");
        assert_eq!(parts(&source, "/session/entries/*/no-such-member"), made, "{}", source.files()[0].path);
    }
}

#[test]
fn a_record_that_fits_is_not_divided_because_its_identifiers_are_numbered_in_another_order() {
    // Replacements of tokens in identifiers are numbered where they first occur: alone, the second line would have the last
    // token as number 12 in each of its references.
    let reference = |number: usize| json!({ "call-id": format!("call of ghp_{number:036}") });
    let line =
        |references: Vec<Value>| json!({ "type": "progress", "sessionId": "s", "references": references });
    let others = (1..12).map(reference).chain(std::iter::repeat_n(reference(12), 10_000));
    // So much is left out of this one that the session seems too large before the redaction.
    let shrinking = json!({ "text": format!("ghp_{:036} ", 0).repeat(30_000) });
    let lines = [line(vec![reference(12), shrinking]), line(others.collect())];
    let source = SessionSource::file("s.jsonl", format!("{}\n{}\n", lines[0], lines[1]));
    let whole = translated(&source).records[0].0.bytes().len();
    let sizes: Vec<usize> =
        divided(&source, whole).records.iter().map(|(record, _)| record.bytes().len()).collect();
    assert_eq!(sizes, [whole]);
    assert_eq!(divided(&source, whole - 1).records.len(), 2);
}

#[test]
fn the_frame_of_a_record_is_all_but_its_entries() {
    let translation = translated(&file("claude.jsonl"));
    let record = &translation.records[0].0;
    let mut without = record.value();
    assert!(without["session"].as_object_mut().unwrap().remove("entries").is_some());
    assert_eq!(record.frame(), &without);
}
