//! `tabellion policy admit`: an issuer's key or certificate in a policy file.

use black_box::cli::{Dev, Folder};

fn policy(folder: &Folder) -> String {
    String::from_utf8(folder.read("tabellion-dev/policy.toml")).unwrap()
}

fn admit(folder: &Folder, more: &[&str]) -> serde_json::Value {
    let arguments = ["policy", "admit", "new.pem", "--policy", "tabellion-dev/policy.toml", "--json"];
    folder.run(&[&arguments[..], more].concat()).must_end_with(0).json()
}

#[test]
fn an_admitted_issuer_may_register_once_the_policy_is_published() {
    let dev = Dev::start();
    let folder = &dev.folder;
    folder.run(&["issuer", "new", "-o", "new.pem"]).must_end_with(0);
    folder.write("a.json", "{\"n\":1}");
    let iss = "https://new.example";
    let sign = ["statement", "sign", "--key", "new.pem", "--iss", iss, "a.json"];
    folder.run(&sign).must_end_with(0);
    let register = ["register", "a.json.cose", "--trust", "tabellion-dev/trust.toml"];
    folder.run(&register).must_end_with(6);

    let before = policy(folder);
    let admitted = admit(folder, &["--iss", iss, "--content-type", "application/json"]);
    assert_eq!((&admitted["changed"], &admitted["revision"]), (&true.into(), &1.into()), "{admitted}");
    let after = policy(folder);
    for line in before.lines().filter(|line| line.starts_with('#')) {
        assert!(after.contains(line), "{line}");
    }
    let again = admit(folder, &["--iss", iss, "--content-type", "application/json"]);
    assert_eq!((&again["changed"], &again["revision"]), (&false.into(), &1.into()), "{again}");
    assert_eq!(policy(folder), after);

    let publish = ["policy", "publish", "tabellion-dev/policy.toml", "--key", "tabellion-dev/operator.key"];
    folder.run(&publish).must_end_with(0);
    folder.run(&register).must_end_with(0);
}

#[test]
fn what_cannot_be_admitted_leaves_the_file_as_it_was() {
    let dev = Dev::start();
    let folder = &dev.folder;
    folder.run(&["issuer", "new", "-o", "new.pem"]).must_end_with(0);
    folder.write("broken.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let before = policy(folder);
    let flags = ["--policy", "tabellion-dev/policy.toml", "--json"];
    for (arguments, exit, code) in [
        (&["broken.crt"][..], 2, "usage"),
        (&["broken.crt", "--iss", "https://new.example"], 1, "policy"),
        (&["new.pem", "--iss", "https://new.example", "--content-type", "text/unknown"], 5, "policy"),
        (&["a-policy.toml"], 5, "file-not-found"),
    ] {
        let refused = folder.run(&[&["policy", "admit"][..], arguments, &flags].concat());
        assert_eq!(refused.must_end_with(exit).error(), code, "{arguments:?}: {refused}");
        assert_eq!(policy(folder), before, "{arguments:?}");
    }
}
