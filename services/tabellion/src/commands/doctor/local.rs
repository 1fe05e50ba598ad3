//! What the log on this computer needs: settings, keys, ports, disk, pin and database.

use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use display::counted;
use merkle::TreeSize;
use transparency::{Config, Database, free_bytes, storage};

use super::finding::Finding;
use super::remote::{ServedLog, Tree};
use crate::commands::serve::failures::{database, unreadable_pin};
use crate::commands::serve::{check as config_check, config};
use crate::console::{Exit, Failure};
use crate::context::Context;
use crate::exposed_settings;
use crate::runtime;
use crate::settings::Settings;

/// Free bytes, as a multiple of `min_free_bytes`, below which the disk is a warning.
const FREE_FACTOR: u64 = 10;
/// Bytes of a mebibyte.
const MEBIBYTE: u64 = 1 << 20;

/// Checks the log whose configuration is found, and that it is the one that is `served` at the address for clients, if one
/// is.
pub fn check(context: &Context, served: Option<&ServedLog>) -> Vec<Finding> {
    let settings = match context.log_settings(Vec::new()) {
        Ok(settings) => settings,
        Err(failure) => return vec![Finding::failure("settings", &failure)],
    };
    if !settings.has_file() {
        let what = "there is no configuration here: only the checks for a client are made";
        return vec![Finding::skipped("settings", what).fix("tabellion init")];
    }
    match config::resolve(&settings) {
        Ok(config) => check_log(&config, &settings, served),
        Err(failure) => vec![Finding::failure("settings", &failure).fix("tabellion config check")],
    }
}

fn check_log(config: &Config, settings: &Settings, served: Option<&ServedLog>) -> Vec<Finding> {
    let is_serving = served.is_some_and(|served| served.origin == config.origin);
    let mut findings = files(config, settings);
    findings.extend(ports(config, is_serving));
    findings.extend(disk(config));
    findings.push(stored(config));
    findings.extend(served.map(|served| same_log(config, served)));
    findings
}

/// Checks the settings and the files that they name: keys, certificates, policy.
fn files(config: &Config, settings: &Settings) -> Vec<Finding> {
    let mistakes = config_check::mistakes(config, settings).into_iter().map(|mistake| {
        let what = format!("{}: {}", mistake.key, mistake.what);
        Finding::failed("settings", Exit::Usage, what).fix("tabellion config show")
    });
    let mut findings: Vec<Finding> = mistakes.collect();
    if findings.is_empty() {
        findings.push(Finding::ok("settings", format!("{}, with its keys and policy", config.origin)));
    }
    let warnings = exposed_settings::log::warnings(config, settings).into_iter();
    findings.extend(
        warnings.map(|warning| Finding::warning("settings", format!("{}: {}", warning.key, warning.what))),
    );
    findings
}

/// Checks that the service can listen at both addresses, or does.
fn ports(config: &Config, is_serving: bool) -> Vec<Finding> {
    let addresses = [Some(config.listen), config.admin_listen].into_iter().flatten();
    addresses.map(|address| port(address, is_serving)).collect()
}

fn port(address: SocketAddr, is_serving: bool) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok("ports", format!("{address} is free")),
        Err(_) if is_serving => Finding::ok("ports", format!("{address} is in use, and the log is served")),
        Err(error) => Finding::failed("ports", Exit::Failure, format!("cannot listen on {address}: {error}"))
            .fix("tabellion config show"),
    }
}

fn disk(config: &Config) -> Vec<Finding> {
    let database = match &config.database {
        Database::Sqlite { path, .. } => path.parent().map(|folder| ("the database", folder.to_owned())),
        Database::Postgres(_) => None,
    };
    let folders = database.into_iter().chain([("state_dir", config.state_dir.clone())]);
    folders.map(|(what, folder)| space(config, what, &folder)).collect()
}

fn space(config: &Config, what: &str, folder: &Path) -> Finding {
    let folder = existing(folder);
    let Some(free) = free_bytes(&folder) else {
        return Finding::warning("disk", format!("the free space of {} is not known", folder.display()));
    };
    let least = config.limits.min_free_bytes;
    let detail = format!("{} MiB are free for {what}", free / MEBIBYTE);
    match free {
        free if free < least => {
            let what = format!("{detail}, below min_free_bytes: registration is refused");
            Finding::failed("disk", Exit::Failure, what).fix(format!("df -h {}", folder.display()))
        }
        free if free < least.saturating_mul(FREE_FACTOR) => Finding::warning("disk", detail),
        _ => Finding::ok("disk", detail),
    }
}

/// Returns the folder, or the first one above it that exists.
fn existing(folder: &Path) -> PathBuf {
    let absolute = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    absolute.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/")).to_owned()
}

/// Reads the pin and the head of the database, which must not be behind it.
fn stored(config: &Config) -> Finding {
    match read_sizes(config) {
        Ok((None, None | Some(0))) => {
            Finding::skipped("database", "it does not exist yet: the first start makes it")
        }
        Ok((size, Some(pinned))) if size.is_none_or(|size| size < pinned) => {
            let found = size.map_or("is gone".to_owned(), |size| format!("has size {size}"));
            let what = format!("the database {found}, and size {pinned} was signed: it was set back");
            Finding::failed("database", Exit::LogMisbehaviour, what).fix("tabellion help database-behind")
        }
        Ok((Some(size), None)) if size > 0 => no_pin(config, size),
        Ok((size, _)) => Finding::ok(
            "database",
            format!("{}; checked by tabellion log fsck", counted(size.unwrap_or(0), "entry", "entries")),
        ),
        Err(failure) => Finding::failure("database", &failure),
    }
}

/// Compares the log that answers with the configured one: its name, and its newest signed tree with the database.
fn same_log(config: &Config, served: &ServedLog) -> Finding {
    let ServedLog { address, origin, .. } = served;
    if *origin != config.origin {
        let what = format!("{address} is the log {origin}, and {} is configured here", config.origin);
        return another_log(what);
    }
    same_tree(config, served).unwrap_or_else(|failure| Finding::failure("log", &failure))
}

/// Compares the newest signed tree of the log that answers with the database.
fn same_tree(config: &Config, served: &ServedLog) -> Result<Finding, Failure> {
    let Some(signed) = served.newest_signed()? else {
        return Ok(Finding::skipped("log", format!("{} lists no signed tree yet", served.address)));
    };
    let (newest, root) = read_trees(config, signed.size)?;
    match root {
        Some(root) if root == signed.root => {
            let what = format!("its tree of size {} is that of the database here", signed.size);
            Ok(Finding::ok("log", what))
        }
        None if newest.size < signed.size => behind(config, served, &signed, &newest),
        _ => Ok(another_log(format!(
            "{} has another tree of size {} than the database here: it is not the one that is served",
            served.address, signed.size
        ))),
    }
}

/// Returns the finding about a database that does not reach the newest signed tree. The copy of a standby server may be a
/// moment behind; its newest tree is then one of the log.
fn behind(config: &Config, served: &ServedLog, signed: &Tree, newest: &Tree) -> Result<Finding, Failure> {
    let signed = format!("{} has signed size {}", served.address, signed.size);
    let here = newest.size;
    let what = format!("{signed}, and the database here has size {here}");
    if matches!(config.database, Database::Sqlite { .. }) {
        return Ok(another_log(format!("{what}: it is not the one that is served")));
    }
    Ok(match served.root_of(here)? {
        Some(root) if root != newest.root => another_log(format!(
            "{signed}, and another tree of size {here} than the database here: it is not the one that is served"
        )),
        _ => Finding::warning("log", what).fix("tabellion config show"),
    })
}

fn another_log(what: String) -> Finding {
    Finding::failed("log", Exit::Failure, what).fix("tabellion config show")
}

/// Reads the newest tree of the database, and after it, because a service or a replication adds trees, the root in hex of
/// the tree of this size, if there is one.
fn read_trees(config: &Config, size: u64) -> Result<(Tree, Option<String>), Failure> {
    let runtime = runtime::single_threaded()?;
    runtime.block_on(async {
        if is_missing(config) {
            return Ok((Tree { size: 0, root: String::new() }, None));
        }
        let store = storage::open_read_only(&config.database).await.map_err(database)?;
        let newest = store.head().await.map_err(database)?;
        let of_size = store.head_of_size(TreeSize::new(size)).await.map_err(database)?;
        let newest = Tree { size: newest.size().get(), root: newest.root().to_string() };
        Ok((newest, of_size.map(|head| head.root.to_string())))
    })
}

/// Returns true if the database is a file that does not exist.
fn is_missing(config: &Config) -> bool {
    matches!(&config.database, Database::Sqlite { path, .. } if !path.exists())
}

/// Without a pin, a process does not lead. Another process may, if the database is not the file of this one alone.
fn no_pin(config: &Config, size: u64) -> Finding {
    let what = format!("size {size} was signed, and this host has no pin: it registers nothing");
    let finding = match &config.database {
        Database::Sqlite { .. } => Finding::failed("database", Exit::Failure, what),
        Database::Postgres(_) => Finding::warning("database", format!("{what} itself")),
    };
    finding.fix("tabellion help no-pin")
}

/// Returns the tree size of the database, if that exists, and that of the pin, which is read first because a service
/// advances it.
fn read_sizes(config: &Config) -> Result<(Option<u64>, Option<u64>), Failure> {
    let runtime = runtime::single_threaded()?;
    runtime.block_on(async {
        let pin = storage::pin(config).map_err(database)?.read().await.map_err(unreadable_pin)?;
        let pinned = pin.map(|pin| pin.size.get());
        if is_missing(config) {
            return Ok((None, pinned));
        }
        let store = storage::open_read_only(&config.database).await.map_err(database)?;
        let head = store.head().await.map_err(database)?;
        Ok((Some(head.size().get()), pinned))
    })
}
