//! From an empty folder with the release archive to a verified receipt, as docs/start.md says, within a minute.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use black_box::OwnedChild;
use black_box::cli::{Folder, repository};

use crate::{file, release, run};

/// Longest time from unpacking to the verified receipt.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn the_archive_leads_from_an_empty_folder_to_a_verified_receipt_within_a_minute() {
    let folder = Folder::new();
    let archive = file(&release(&folder, "archive"), ".tar.gz");
    let begun = Instant::now();
    run(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(folder.path("")));
    let unpacked = folder.path(archive.file_name().unwrap().to_str().unwrap().trim_end_matches(".tar.gz"));
    let log = serve(&folder, &unpacked);
    for command in commands_of_the_page() {
        let mut shell = Command::new("bash");
        folder.settle(&mut shell);
        let printed = run(shell.current_dir(&unpacked).args(["-c", &command]));
        if command.starts_with("./tabellion verify") {
            assert!(printed.contains("verified (offline)"), "{printed}");
        }
    }
    let took = begun.elapsed();
    drop(log);
    assert!(took < LIMIT, "{took:?}");
    for part in ["LICENSE", "docs/start.md", "deploy/tabellion.service", "man/tabellion-register.1"] {
        assert!(unpacked.join(part).is_file(), "the archive has no {part}");
    }
}

/// Starts the log of the page on free ports, and waits until it is ready.
fn serve(folder: &Folder, unpacked: &Path) -> OwnedChild {
    let mut command = Command::new(unpacked.join("tabellion"));
    folder.settle(&mut command);
    command.current_dir(unpacked).args(["serve", "--dev", "--json", "--listen", "127.0.0.1:0"]);
    command.args(["--admin-listen", "127.0.0.1:0"]);
    let mut log = OwnedChild(command.stdout(Stdio::piped()).spawn().unwrap());
    let mut line = String::new();
    BufReader::new(log.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with('{'), "the log did not start: {line:?}");
    log
}

/// Returns the commands of the page after the log's start.
fn commands_of_the_page() -> Vec<String> {
    let page = fs::read_to_string(repository("docs/start.md")).unwrap();
    let block = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let commands: Vec<String> = block.lines().map(str::to_owned).collect();
    assert_eq!(commands[1], "./tabellion serve --dev &");
    assert_eq!(commands.len(), 5, "{commands:?}");
    commands[2..].to_vec()
}
