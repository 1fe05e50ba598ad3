//! Where settings come from (`tabellion help config`), and that nothing secret is shown.

use std::os::unix::fs::PermissionsExt;

use black_box::cli::{Ended, Folder};
use serde_json::Value;

/// Value and source of a setting.
#[track_caller]
fn shown(ended: &Ended, key: &str) -> (String, String) {
    let settings = ended.must_end_with(0).json();
    let settings = settings["settings"].as_array().expect("a list").clone();
    let found = settings.iter().find(|setting| setting["key"] == key).unwrap_or_else(|| panic!("no {key}"));
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    (text(&found["value"]), text(&found["source"]))
}

fn show(folder: &Folder, variables: &[(&str, &str)]) -> Ended {
    let mut command = folder.command(&["config", "show", "--json"]);
    command.envs(variables.iter().copied()).output().expect("it runs").into()
}

fn pair(value: &str, source: &str) -> (String, String) {
    (value.to_owned(), source.to_owned())
}

#[test]
fn a_variable_is_stronger_than_the_file_and_the_file_than_the_default() {
    let folder = Folder::new();
    assert_eq!(shown(&show(&folder, &[]), "write_rate"), pair("500", "default"));
    folder.write("tabellion.toml", "write_rate = 7\n");
    assert_eq!(shown(&show(&folder, &[]), "write_rate"), pair("7", "tabellion.toml"));
    let variables = [("TABELLION_WRITE_RATE", "9")];
    assert_eq!(shown(&show(&folder, &variables), "write_rate"), pair("9", "environment"));
}

#[test]
fn one_file_is_read_and_never_merged_with_another() {
    let folder = Folder::new();
    std::fs::create_dir_all(folder.path(".config/tabellion")).expect("our own folder");
    folder.write(".config/tabellion/tabellion.toml", "write_rate = 1\nread_rate = 1\n");
    folder.write("tabellion.toml", "write_rate = 2\n");
    let settings = show(&folder, &[]);
    assert_eq!(shown(&settings, "write_rate").0, "2");
    assert_eq!(shown(&settings, "read_rate").1, "default");
}

#[test]
fn a_password_is_never_shown_and_can_be_kept_in_a_file() {
    let folder = Folder::new();
    folder.write("secret", "postgres://me:hunter2@db.internal/log\n");
    let secret = folder.path("secret").display().to_string();
    let settings = show(&folder, &[("TABELLION_DB_FILE", &secret)]);
    assert_eq!(shown(&settings, "db"), pair("postgres://me:***@db.internal/log", "environment"));
    assert!(!settings.text().contains("hunter2"));
    let absent = show(&folder, &[("TABELLION_DB_FILE", "/absent")]);
    assert_eq!(absent.must_end_with(2).error(), "setting-unreadable");
    let unknown = show(&folder, &[("TABELLION_WRIT_RATE", "1")]);
    assert_eq!(unknown.must_end_with(2).error(), "setting-unknown");
    assert!(unknown.stderr.contains("write_rate"), "{unknown}");
}

#[test]
fn the_state_directory_is_the_one_that_systemd_gives() {
    let folder = Folder::new();
    let settings = show(&folder, &[("STATE_DIRECTORY", "/var/lib/tabellion")]);
    assert_eq!(shown(&settings, "state_dir").0, "/var/lib/tabellion");
}

#[test]
fn init_makes_all_that_a_log_needs_and_nothing_when_it_could_not_run() {
    let folder = Folder::new();
    let init = ["init", "log", "--origin", "log.example.org", "--db", "sqlite:data/log.db"];
    folder.run(&init).must_end_with(0);
    for made in ["log/tabellion.toml", "log/policy.toml", "log/keys/receipt.pem", "log/data"] {
        assert!(folder.has(made), "{made}");
    }
    let mode = std::fs::metadata(folder.path("log/keys/receipt.pem")).expect("a key").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    folder.run(&["config", "check", "--config", "log/tabellion.toml"]).must_end_with(0);
    folder.run(&init).must_end_with(10);
    for wrong in [
        ["init", "no", "--origin", "https://log.example.org", "--db", "sqlite:data/log.db"],
        ["init", "no", "--origin", "log.example.org", "--db", "mysql://x"],
        ["init", "no", "--origin", "log.example.org", "--db", "sqlite:state/log.db"],
    ] {
        folder.run(&wrong).must_end_with(2);
        assert!(!folder.has("no"), "{wrong:?} left something behind");
    }
}

#[test]
fn an_init_that_failed_can_be_repeated() {
    let folder = Folder::new();
    let init = ["init", "log", "--origin", "log.example.org", "--db", "sqlite:data/log.db"];
    std::fs::create_dir_all(folder.path("log/policy.toml")).expect("our own folder");
    assert_ne!(folder.run(&init).code, Some(0));
    std::fs::remove_dir(folder.path("log/policy.toml")).expect("our own folder");
    folder.run(&init).must_end_with(0);
}

#[test]
fn what_keeps_a_log_from_a_start_is_found_by_the_check() {
    let folder = Folder::new();
    let init = ["init", "log", "--origin", "log.example.org", "--db", "sqlite:data/log.db"];
    folder.run(&init).must_end_with(0);
    let whole = String::from_utf8(folder.read("log/tabellion.toml")).expect("text");
    let secret = "a secret of one client";
    folder.write(
        "log/tokens",
        format!("one {0} role=operator\ntwo {0} role=public\n", secret.replace(' ', "-")),
    );
    for (setting, line) in [
        ("log_level", "log_level = \"loud\""),
        ("log_format", "log_format = \"xml\""),
        ("linger_ms", "linger_ms = 6"),
        ("write_rate", "write_rate = 0"),
        ("issuer_rate", "issuer_rate = 0"),
        ("closed_content_types", "closed_content_types = [\"not a type\"]"),
        ("closed_content_types", "closed_content_types = [\"application/*\"]"),
        ("tokens_file", "tokens_file = \"tokens\""),
        ("operator_key", "operator_key = \"keys/receipt.pem\""),
    ] {
        folder.write("log/tabellion.toml", format!("{line}\n{whole}"));
        let checked = folder.run(&["config", "check", "--config", "log/tabellion.toml"]);
        checked.must_end_with(2);
        assert!(checked.stderr.contains(setting), "{setting}: {checked}");
    }
}

#[test]
fn a_log_that_is_reached_on_this_machine_listens_where_its_public_url_says() {
    let folder = Folder::new();
    let init = |log: &str, url: &str| {
        let arguments =
            ["init", log, "--origin", "l.example", "--db", "sqlite:data/log.db", "--public-url", url];
        folder.run(&arguments).must_end_with(0);
        let config = folder.path(log).join("tabellion.toml").display().to_string();
        let show = ["config", "show", "--json", "--config", &config];
        (shown(&folder.run(&show), "listen").0, config)
    };
    assert_eq!(init("here", "http://127.0.0.1:8123").0, "127.0.0.1:8123");
    assert_eq!(init("named", "http://localhost:8123").0, "127.0.0.1:8123");
    assert_eq!(init("six", "http://[::1]:8123").0, "[::1]:8123");
    assert_eq!(init("proxied", "https://l.example").0, "127.0.0.1:7390");
    assert_eq!(init("below", "http://localhost:8123/log").0, "127.0.0.1:7390", "a proxy is at that address");
    let (_, config) = init("moved", "http://127.0.0.1:8123");
    assert_eq!(warned(&folder, &config), [""; 0]);
    let text = String::from_utf8(folder.read("moved/tabellion.toml")).expect("text");
    folder.write("moved/tabellion.toml", text.replace("\"127.0.0.1:8123\"", "\"127.0.0.1:7390\""));
    assert_eq!(warned(&folder, &config), ["public_url"]);
}

#[test]
fn commands_of_a_new_log_on_this_machine_find_it_at_the_address_where_it_listens() {
    let folder = Folder::new();
    let log_url = |log: &str, url: &str| {
        let arguments =
            ["init", log, "--origin", "l.example", "--db", "sqlite:data/log.db", "--public-url", url];
        folder.run(&arguments).must_end_with(0);
        let config = folder.path(log).join("tabellion.toml").display().to_string();
        shown(&folder.run(&["config", "show", "--json", "--config", &config]), "log_url")
    };
    let (url, source) = log_url("here", "http://localhost:8123");
    assert_eq!(url, "http://127.0.0.1:8123");
    assert!(source.ends_with("tabellion.toml"), "{source}");
    let unchanged = ("http://127.0.0.1:7390".to_owned(), "default".to_owned());
    assert_eq!(log_url("proxied", "https://l.example"), unchanged);
    assert_eq!(log_url("free", "http://127.0.0.1:0"), unchanged);
    assert_eq!(log_url("below", "http://localhost:8123/log"), unchanged, "a proxy is at that address");
}

/// The settings that `config check` warns of.
#[track_caller]
fn warned(folder: &Folder, config: &str) -> Vec<String> {
    let checked = folder.run(&["config", "check", "--json", "--config", config]).must_end_with(0).json();
    let warnings = checked["warnings"].as_array().expect("a list").iter();
    warnings.map(|warning| warning["key"].as_str().expect("a setting").to_owned()).collect()
}

fn set_mode(folder: &Folder, name: &str, mode: u32) {
    std::fs::set_permissions(folder.path(name), std::fs::Permissions::from_mode(mode)).expect("our own file");
}

#[test]
fn a_configuration_that_holds_a_password_is_for_its_owner_only() {
    let folder = Folder::new();
    let db = "postgres://me:hunter2@localhost/log";
    let init = ["init", "log", "--origin", "log.example.org", "--db", db];
    let made = folder.run(&init);
    assert!(made.must_end_with(0).text().contains("TABELLION_DB_FILE"), "{made}");
    assert!(made.stderr.contains("warning: db: a password on the command line"), "{made}");
    let mode = || std::fs::metadata(folder.path("log/tabellion.toml")).expect("it").permissions().mode();
    assert_eq!(mode() & 0o777, 0o600);
    assert_eq!(warned(&folder, "log/tabellion.toml"), [""; 0]);
    set_mode(&folder, "log/tabellion.toml", 0o644);
    assert_eq!(warned(&folder, "log/tabellion.toml"), ["db"]);
}

#[test]
fn what_others_may_read_is_warned_of_and_what_they_may_change_is_refused() {
    let folder = Folder::new();
    folder
        .run(&["init", "log", "--origin", "log.example.org", "--db", "sqlite:data/log.db"])
        .must_end_with(0);
    folder.write("log/tokens", "ci 0123456789abcdef\n");
    let text = String::from_utf8(folder.read("log/tabellion.toml")).expect("text");
    folder.write("log/tabellion.toml", format!("{text}tokens_file = \"tokens\"\n"));
    for (mode, settings) in [(0o600, &[][..]), (0o640, &[]), (0o644, &["tokens_file"])] {
        set_mode(&folder, "log/tokens", mode);
        assert_eq!(warned(&folder, "log/tabellion.toml"), settings, "{mode:o}");
    }
    set_mode(&folder, "log/tokens", 0o666);
    for command in [&["config", "check"][..], &["serve"]] {
        let refused = folder.run(&[command, &["--config", "log/tabellion.toml"]].concat());
        assert!(refused.must_end_with(2).stderr.contains("tokens_file"), "{refused}");
    }
}

#[test]
fn a_database_on_another_host_without_proof_of_who_it_is_is_warned_of() {
    let folder = Folder::new();
    for (n, (db, settings)) in [
        ("postgres://me@db.example/log", &["db"][..]),
        ("postgres://me@db.example/log?sslmode=verify-full", &[]),
        ("postgres://me@127.0.0.1/log", &[]),
    ]
    .into_iter()
    .enumerate()
    {
        let log = format!("log{n}");
        folder.run(&["init", &log, "--origin", "log.example.org", "--db", db]).must_end_with(0);
        assert_eq!(warned(&folder, &format!("{log}/tabellion.toml")), settings, "{db}");
    }
}

#[test]
fn every_algorithm_makes_a_key_that_signs() {
    let folder = Folder::new();
    folder.write("a.txt", "hello");
    for alg in ["EdDSA", "ES256", "ES384", "ES512"] {
        let (key, out) = (format!("{alg}.pem"), format!("{alg}.cose"));
        folder.run(&["issuer", "new", "-o", &key, "--alg", alg]).must_end_with(0);
        folder.run(&["statement", "sign", "--key", &key, "-o", &out, "a.txt"]).must_end_with(0);
        let inspected = folder.run(&["statement", "inspect", &out, "--json"]).must_end_with(0).json();
        assert!(
            inspected["protected"]["alg"].as_str().is_some_and(|named| named.starts_with(alg)),
            "{inspected}"
        );
        let mut public = Vec::new();
        for format in ["pem", "cose", "did-key", "did-jwk"] {
            let exported =
                folder.run(&["issuer", "export", &key, "--format", format]).must_end_with(0).stdout.clone();
            folder.write("public", exported);
            public.push(
                folder.run(&["issuer", "show", "public", "--json"]).must_end_with(0).json()["kid"].clone(),
            );
        }
        assert!(public.windows(2).all(|pair| pair[0] == pair[1]), "{alg}: {public:?}");
    }
}

#[test]
fn rates_of_issuers_are_a_table_whose_mistakes_are_told_together() {
    let folder = Folder::new();
    let init = ["init", "log", "--origin", "log.example.org", "--db", "sqlite:data/log.db"];
    folder.run(&init).must_end_with(0);
    let text = String::from_utf8(folder.read("log/tabellion.toml")).expect("text");
    let with = |rates: &str| {
        folder.write("log/tabellion.toml", format!("{text}\n[issuer_rates]\n{rates}\n"));
        folder.run(&["config", "check", "--json", "--config", "log/tabellion.toml"])
    };
    with("\"https://a.example\" = 500").must_end_with(0);
    let show = ["config", "show", "--json", "--config", "log/tabellion.toml"];
    let (value, source) = shown(&folder.run(&show), "issuer_rates");
    assert_eq!((value.as_str(), source.as_str()), ("{\"https://a.example\":500}", "log/tabellion.toml"));
    let two = with("\"https://a.example\" = 0\n\"https://b.example\" = 0");
    assert_eq!(two.must_end_with(2).error(), "setting-unusable");
    for told in ["https://a.example", "https://b.example", "is at least 1"] {
        assert!(two.stderr.contains(told), "{told}: {two}");
    }
    let many: String = (0..1001).map(|n| format!("\"https://{n}.example\" = 5\n")).collect();
    for (wrong, told) in
        [(many.as_str(), "at most 1000"), ("\"\" = 5", "one name is empty"), ("a = -1", "issuer_rates")]
    {
        let refused = with(wrong);
        assert!(refused.must_end_with(2).stderr.contains(told), "{told}: {refused}");
    }
    folder.write("log/tabellion.toml", &text);
    let in_one_line = [("TABELLION_ISSUER_RATES", "{ \"https://a.example\" = 7 }")];
    let mut command = folder.command(&show);
    let (value, source) = shown(&command.envs(in_one_line).output().expect("it runs").into(), "issuer_rates");
    assert_eq!((value.as_str(), source.as_str()), ("{\"https://a.example\":7}", "environment"));
}
