//! `tabellion verify FILE` with the files that `register` and `statement sign` write next to it.

use std::fs;

use black_box::cli::{Dev, Folder};

const KEY: [&str; 4] = ["--key", "tabellion-dev/issuer.key", "--iss", "https://dev.issuer.example"];

fn registered() -> Dev {
    let dev = Dev::start();
    dev.folder.write("a.json", "{\"n\":1}");
    dev.folder.run(&["register", "--dev", "a.json"]).must_end_with(0);
    dev
}

fn remove(folder: &Folder, name: &str) {
    fs::remove_file(folder.path(name)).unwrap();
}

#[test]
fn a_registered_file_is_verified_with_its_statement_and_receipt() {
    let dev = registered();
    let folder = &dev.folder;
    let verified = folder.run(&["verify", "a.json"]);
    verified.must_end_with(0);
    assert_eq!(verified.stderr, "found      a.json.transparent.cose\n", "{verified}");
    folder.run(&["verify", "a.json.cose"]).must_end_with(0);

    remove(folder, "a.json.transparent.cose");
    let verified = folder.run(&["verify", "a.json"]);
    verified.must_end_with(0);
    assert_eq!(verified.stderr, "found      a.json.cose\nfound      a.json.receipt\n", "{verified}");
    assert_eq!(folder.run(&["verify", "a.json", "--quiet"]).must_end_with(0).stderr, "");

    folder.write("a.json", "{\"n\":2}");
    let changed = folder.run(&["verify", "a.json", "--json"]);
    assert_eq!(changed.must_end_with(3).json()["reason"], "payload-digest-mismatch", "{changed}");

    remove(folder, "a.json.receipt");
    let without = folder.run(&["verify", "a.json.cose", "--json"]);
    assert_eq!(without.must_end_with(4).json()["reason"], "no-receipt", "{without}");
}

#[test]
fn a_statement_that_lacks_its_payload_is_verified_with_the_file_that_it_is_named_after() {
    let dev = Dev::start();
    let folder = &dev.folder;
    for (name, form) in [("detached.json", "--detached"), ("hashed.json", "--hash")] {
        folder.write(name, "{\"n\":1}");
        folder.run(&[&["statement", "sign", form, name][..], &KEY].concat()).must_end_with(0);
        let statement = format!("{name}.cose");
        let register = ["register", &statement, "--trust", "tabellion-dev/trust.toml", "--output"];
        let output = format!("{name}.transparent.cose");
        let payload: &[&str] = if form == "--detached" { &["--payload", name] } else { &[] };
        folder.run(&[&register[..], &[&output], payload].concat()).must_end_with(0);
        let verified = folder.run(&["verify", &output]);
        verified.must_end_with(0);
        assert_eq!(verified.stderr, format!("found      {name}\n"), "{verified}");
        folder.write(name, "{\"n\":2}");
        folder.run(&["verify", &output]).must_end_with(3);
    }
}

#[test]
fn a_file_that_is_named_is_used_instead_of_the_one_that_would_be_found() {
    let dev = registered();
    let folder = &dev.folder;
    folder.write("b.json", "{\"n\":3}");
    folder.run(&["register", "--dev", "b.json"]).must_end_with(0);
    let other = folder.run(&["verify", "a.json.cose", "--receipt", "b.json.receipt", "--json"]);
    assert_eq!(other.must_end_with(3).json()["reason"], "receipt-root-mismatch", "{other}");
    let other = folder.run(&["verify", "a.json.transparent.cose", "--payload", "b.json", "--json"]);
    assert_eq!(other.must_end_with(3).json()["reason"], "payload-digest-mismatch", "{other}");
}
