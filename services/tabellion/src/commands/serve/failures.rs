//! Conversion of the service's errors to failures with code, message and remedy: failed starts, and stops of the
//! sequencer.

use std::io::ErrorKind;
use std::net::SocketAddr;

use registration::policy_statement::PolicyConflict;
use sequencer::Halt;
use sequencer::pin::PinError;
use serving::listener::BindError;
use store::{StorageFault, StoreError};
use transparency::{Config, IntroduceError, PolicyError, StartError};

use crate::commands::storage_fault;
use crate::console::{Exit, Failure};

/// Converts a [`StartError`] of the service.
pub fn not_started(error: StartError, config: &Config, dev: bool) -> Failure {
    match error {
        StartError::Listen(BindError { address, error }) => cannot_listen(address, &error, config, dev),
        StartError::Store(error)
        | StartError::Keys(IntroduceError::Store(error))
        | StartError::Sequencer(sequencer::StartError::Store(error)) => database(error),
        StartError::Keys(IntroduceError::Other(other)) if other.retired => {
            Failure::new(Exit::Failure, "key-not-in-force", format!("another {} key signs for this log", other.what))
                .fact("key", format!("{}, in {}", other.given, other.path.display()))
                .fact("in force", format!("{}, from size {} on", other.recorded, other.from))
                .fact("wanted", format!("its file, copied to {} or in place of the old one", other.place.display()))
                .why("the file is on the machine where `tabellion key rotate` was run; this key signs nothing any more")
                .hint("tabellion key list")
        }
        StartError::Keys(IntroduceError::Other(other)) => {
            Failure::new(Exit::Failure, "key-of-another-log", "the database is of a log with another key")
                .fact("key", format!("{}, in {}", other.given, other.path.display()))
                .fact("on record", other.recorded)
                .why("a key takes another one's place by `tabellion key rotate` only")
                .hint("tabellion key list")
        }
        StartError::Keys(IntroduceError::File(error)) => refused("key-unusable", error).hint("tabellion config check"),
        StartError::Tls(error) => refused("tls", error).hint("tabellion config check"),
        StartError::Policy(error) => policy(error),
        StartError::AdminSocket { path, error } => Failure::new(Exit::Failure, "cannot-listen", format!("cannot listen on {}", path.display()))
            .fact("because", error.to_string())
            .hint("name another path: setting admin_socket"),
        StartError::Config(_) => Failure::new(Exit::Usage, "setting-unusable", "settings cannot be used")
            .fact("because", error.to_string())
            .hint("tabellion config check"),
        other => refused("not-started", other),
    }
}

fn storage_code(fault: StorageFault) -> &'static str {
    match fault {
        StorageFault::Full => storage_fault::FULL,
        StorageFault::Io => "storage-failing",
        StorageFault::ReadOnly => storage_fault::READ_ONLY,
    }
}

/// Converts a [`StoreError`] of the database.
pub fn database(error: StoreError) -> Failure {
    let (exit, code, what) = match &error {
        StoreError::Unavailable(_) => {
            (Exit::TryAgain, "database-unavailable", "the database does not answer")
        }
        StoreError::Storage(fault, _) => {
            (Exit::TryAgain, storage_code(*fault), "the database's storage fails")
        }
        StoreError::InUse(_) => (Exit::Failure, "database-in-use", "another process has the database"),
        StoreError::NoLog(_) => (Exit::NotFound, "no-log", "there is no log in this database"),
        StoreError::Frozen => (Exit::Failure, "log-frozen", "no more entries are added to the log"),
        StoreError::Refused(_) => (Exit::Failure, "database-refused", "the database cannot be used as it is"),
        StoreError::Damaged(_) => {
            (Exit::LogMisbehaviour, "database-damaged", "the database contradicts itself")
        }
    };
    let failure = Failure::new(exit, code, what).fact("because", error.to_string());
    match code {
        "database-in-use" => failure.why("a SQLite log has one process: stop the other, or use PostgreSQL"),
        "no-log" => failure
            .why("a log begins when the service starts with this configuration")
            .hint("tabellion config show"),
        "database-damaged" => failure.hint("tabellion log fsck --deep"),
        _ => failure,
    }
}

/// Converts the reason of a stopped sequencer ([`Halt`]). The service continues to serve reads, unless the process
/// itself is unreliable.
pub fn halted(halt: &Halt) -> Failure {
    let (exit, code) = match halt {
        Halt::DatabaseBehind { .. } => (Exit::LogMisbehaviour, "database-behind"),
        Halt::DatabaseDisagrees { .. } => (Exit::LogMisbehaviour, "database-disagrees"),
        Halt::WitnessAhead { .. } => (Exit::LogMisbehaviour, "witness-ahead"),
        Halt::WitnessDisagrees { .. } => (Exit::LogMisbehaviour, "witness-disagrees"),
        Halt::Damaged(_) => (Exit::LogMisbehaviour, "database-damaged"),
        Halt::Inconsistent(_) => (Exit::LogMisbehaviour, "head-inconsistent"),
        Halt::NoPin { .. } => (Exit::Failure, "no-pin"),
        Halt::PinTooOld { .. } => (Exit::Failure, "pin-too-old"),
        Halt::OtherLog { .. } => (Exit::Failure, "pin-of-another-log"),
        Halt::Pin(_) => (Exit::Failure, "pin-unusable"),
        Halt::ClockStepped { .. } | Halt::ClockBehind { .. } | Halt::ClockDiffers { .. } => {
            (Exit::Failure, "clock")
        }
        Halt::Signer { .. } => (Exit::Failure, "signer"),
        Halt::Refused(_) => (Exit::Failure, "database-refused"),
        Halt::Frozen => (Exit::Failure, "log-frozen"),
        Halt::Panicked => (Exit::Failure, "sequencer"),
    };
    let failure =
        Failure::new(exit, code, "this log registers nothing now").fact("because", halt.to_string());
    match halt {
        Halt::DatabaseBehind { .. }
        | Halt::DatabaseDisagrees { .. }
        | Halt::WitnessAhead { .. }
        | Halt::WitnessDisagrees { .. } => failure
            .why("signing another history would fork the log: restore the database that has the signed tree"),
        Halt::NoPin { .. } | Halt::PinTooOld { .. } => failure.hint("tabellion log adopt --help"),
        Halt::Damaged(_) => failure.hint("tabellion log fsck --deep"),
        _ => failure,
    }
}

fn cannot_listen(address: SocketAddr, error: &std::io::Error, config: &Config, dev: bool) -> Failure {
    let flag = if address == config.listen { "--listen" } else { "--admin-listen" };
    let serve = if dev { "tabellion serve --dev" } else { "tabellion serve" };
    let other = SocketAddr::new(address.ip(), address.port().checked_add(100).unwrap_or(0));
    let failure = |code, what: &str| {
        Failure::new(Exit::Failure, code, format!("{what} {address}")).fact("because", error.to_string())
    };
    match error.kind() {
        ErrorKind::AddrInUse => {
            failure("address-in-use", "another process listens on").hint(format!("{serve} {flag} {other}"))
        }
        _ => failure("cannot-listen", "cannot listen on"),
    }
}

fn policy(error: PolicyError) -> Failure {
    if let PolicyError::Conflict(PolicyConflict::Revision { log, configured, .. }) = &error
        && configured < log
    {
        return older_policy(*configured, *log);
    }
    let code = match &error {
        PolicyError::Conflict(_) => "policy-conflict",
        PolicyError::AnotherLog { .. } => "policy-of-another-log",
        PolicyError::NoOperatorKey => "no-operator-key",
        PolicyError::Unreadable(_) => "policy-unreadable",
        _ => "policy-not-in-force",
    };
    let failure = Failure::new(Exit::Failure, code, "the registration policy cannot be put in force")
        .fact("because", error.to_string());
    match error {
        // The file is valid by itself.
        PolicyError::NotAdmitted(_) => failure,
        _ => failure.hint("tabellion policy validate policy.toml"),
    }
}

/// The failure for a policy file that is older than the policy in force.
fn older_policy(configured: u64, in_force: u64) -> Failure {
    Failure::new(Exit::Failure, "policy-conflict", "the policy file is older than the policy in force")
        .fact("file", format!("revision {configured}"))
        .fact("in force", format!("revision {in_force}"))
        .why("put the published file in its place; a running service of the log shows the policy in force")
        .hint("tabellion policy show --url URL")
}

fn refused(code: &str, why: impl ToString) -> Failure {
    Failure::new(Exit::Failure, code, "the service did not start").fact("because", why.to_string())
}

/// The failure for a pin that cannot be read or reached, `pin-unusable`.
pub fn unreadable_pin(error: PinError) -> Failure {
    Failure::new(Exit::Failure, "pin-unusable", "the pin cannot be read").fact("because", error.to_string())
}
