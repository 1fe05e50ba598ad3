//! The Debian package, the bill of materials, the checksums, and that artefacts can be reproduced.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use black_box::cli::{Folder, repository, runnable_commands};
use serde_json::Value;

use crate::{file, release, release_of, run};

/// A program for tests of packaging alone.
const SMALL_PROGRAM: &str =
    "#!/bin/sh\ncase $1 in man) mkdir -p \"$2\" && echo . >\"$2/tabellion.1\" ;; esac\n";

#[test]
fn the_debian_package_has_all_that_an_operator_needs_and_its_units_verify() {
    let folder = Folder::new();
    let package = file(&release(&folder, "deb"), ".deb");
    let root = folder.path("root");
    run(Command::new("dpkg-deb").arg("--extract").arg(&package).arg(&root));
    let control = folder.path("control");
    run(Command::new("dpkg-deb").arg("--control").arg(&package).arg(&control));

    let version = folder.command(&["version"]).output().unwrap().stdout;
    let installed = run(Command::new(root.join("usr/bin/tabellion")).arg("version"));
    assert_eq!(installed.as_bytes(), version);
    for command in runnable_commands(&folder) {
        let page = root.join(format!("usr/share/man/man1/tabellion-{}.1.gz", command.join("-")));
        assert!(page.exists(), "{}", page.display());
    }
    let completion =
        fs::read_to_string(root.join("usr/share/bash-completion/completions/tabellion")).unwrap();
    assert!(completion.contains("register"));
    let conffiles = fs::read_to_string(control.join("conffiles")).unwrap();
    for path in conffiles.lines() {
        assert!(root.join(path.trim_start_matches('/')).is_file(), "{path}");
    }
    assert!(conffiles.contains("/etc/tabellion/tabellion.toml"));
    for script in ["postinst", "prerm", "postrm"] {
        run(Command::new("sh").arg("-n").arg(control.join(script)));
    }
    verify_units(&root);
}

/// Creates the package's users in the folder, as at its installation, and lets systemd check the units there.
fn verify_units(root: &Path) {
    run(Command::new("systemd-sysusers").arg(format!("--root={}", root.display())).arg("tabellion.conf"));
    let users = fs::read_to_string(root.join("etc/passwd")).unwrap();
    let folder = root.join("usr/lib/systemd/system");
    let units: Vec<_> = fs::read_dir(&folder).unwrap().map(|unit| unit.unwrap().path()).collect();
    assert_eq!(units.len(), 5);
    for unit in &units {
        let text = fs::read_to_string(unit).unwrap();
        let user = text.lines().find_map(|line| line.strip_prefix("User=")).unwrap();
        assert!(users.contains(&format!("{user}:x:")), "{user} is not created by the package");
        let start = text.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
        let config = start.split(' ').find(|word| word.starts_with("/etc/")).unwrap();
        assert!(root.join(&config[1..]).is_file(), "{config} is not in the package");
        // Without --root: the targets that the unit names are those of the machine, and its program is in the package.
        let here = text.replace("/usr/bin/tabellion", &root.join("usr/bin/tabellion").display().to_string());
        fs::write(unit, here).unwrap();
    }
    run(Command::new("systemd-analyze").args(["verify", "--recursive-errors=no", "--man=no"]).args(&units));
}

#[test]
fn the_bill_of_materials_lists_what_is_linked_with_licences_and_checksums() {
    let folder = Folder::new();
    small_program(&folder);
    let bill = file(&release_of(&folder, "sbom", &folder.path("small")), ".cdx.json");
    let bill: Value = serde_json::from_slice(&fs::read(bill).unwrap()).unwrap();
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&"CycloneDX".into(), &"1.5".into()));
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components.iter().map(|part| part["name"].as_str().unwrap()).collect();
    for linked in ["rustls", "tokio", "opentelemetry", "wasmtime", "tabellion-scitt"] {
        assert!(names.contains(linked), "{linked} is linked, and not listed");
    }
    assert!(!names.contains("black-box") && !names.contains("proptest"), "tests are listed");
    let own: BTreeSet<String> = fs::read_dir(repository("crates"))
        .unwrap()
        .chain(fs::read_dir(repository("services")).unwrap())
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    for part in components {
        assert!(part["licenses"][0]["expression"].is_string(), "{part}");
        let is_own = own.contains(part["name"].as_str().unwrap()) || part["hashes"].is_null();
        assert!(is_own || part["hashes"][0]["content"].as_str().unwrap().len() == 64, "{part}");
    }
    let references: BTreeSet<&str> =
        components.iter().map(|part| part["bom-ref"].as_str().unwrap()).collect();
    assert_eq!(references.len(), components.len(), "a reference occurs twice");
    for edge in bill["dependencies"].as_array().unwrap() {
        for to in edge["dependsOn"].as_array().unwrap() {
            assert!(references.contains(to.as_str().unwrap()), "{to} is not listed");
        }
    }
}

#[test]
fn the_same_program_and_time_give_the_same_bytes_and_the_sums_name_every_file() {
    let (first, second) = (Folder::new(), Folder::new());
    let packed = [&first, &second].map(|folder| {
        small_program(folder);
        for step in ["archive", "deb", "image", "sums"] {
            release_of(folder, step, &folder.path("small"));
        }
        fs::read_to_string(folder.path("out/SHA256SUMS")).unwrap()
    });
    assert_eq!(packed[0], packed[1]);
    assert_eq!(packed[0].lines().count(), 3, "{}", packed[0]);
    let check = ["--check", "--strict", "SHA256SUMS"];
    run(Command::new("sha256sum").args(check).current_dir(first.path("out")));
}

/// Writes `small`, a program for tests of packaging alone.
pub(crate) fn small_program(folder: &Folder) {
    folder.write("small", SMALL_PROGRAM);
    fs::set_permissions(folder.path("small"), fs::Permissions::from_mode(0o755)).unwrap();
}
