//! `tabellion entry hold`, `release`, `holds`: holds that protect entries from erasure. Holds and releases are
//! statements of the operator, submitted to the service's admin listener.

use std::path::{Path, PathBuf};

use clap::Args;
use client::Verb;
use data_encoding::BASE64URL_NOPAD;
use merkle::EntryDigest;
use registration::OPERATOR_ACTION_CONTENT_TYPE;
use registration::operator::Action;
use scitt::SigningKey;
use serde_json::{Value as Json, json};
use transparency::{LogPolicy, NextHold};
use url::form_urlencoded::Serializer;

use crate::commands::operator::{self, Signer, Signing};
use crate::commands::receipt::entry_named;
use crate::commands::serve::config;
use crate::console::{Cell, Column, Exit, Failure, Table};
use crate::context::Context;
use crate::keyfile;
use crate::service::{Service, ServiceArgs};
use crate::settings;
use crate::show;

/// The admin listener's socket of `serve --dev`.
const DEV_SOCKET: &str = "tabellion-dev/admin.sock";
/// The columns of a list of holds.
const COLUMNS: &[Column] = &[
    Column::text("entry", 0),
    Column::text("since", 20),
    Column::text("released", 20),
    Column::text("case", 0),
];
/// The prefix of a Unix socket's path in `--admin-url`.
const UNIX: &str = "unix:";

#[derive(Debug, Args)]
pub struct Admin {
    /// The service's admin listener, or unix:PATH [default: setting admin_socket]
    #[arg(long, value_name = "URL")]
    admin_url: Option<String>,
    /// An operator's bearer token, in a file: for a URL
    #[arg(long, value_name = "FILE", hide = true)]
    token_file: Option<PathBuf>,
    /// Additional trusted CA certificates (PEM)
    #[arg(long, value_name = "FILE", hide = true)]
    cacert: Option<PathBuf>,
    /// Maximum seconds, including retries
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

#[derive(Debug, Args)]
pub struct Hold {
    #[command(flatten)]
    of: Case,
    /// A key of the log's operator
    #[arg(long, value_name = "FILE")]
    key: PathBuf,
    #[command(flatten)]
    admin: Admin,
}

#[derive(Debug, Args)]
pub struct Release {
    #[command(flatten)]
    of: Case,
    #[command(flatten)]
    signing: Signing,
    #[command(flatten)]
    admin: Admin,
}

#[derive(Debug, Args)]
struct Case {
    /// An entry ID, or a file that holds the statement
    entry: String,
    /// The case's name, permanently on the log
    #[arg(long, value_name = "NAME")]
    case: String,
}

impl Admin {
    /// Creates a client of the admin listener at `--admin-url`, or at the configured socket.
    pub fn connect(self, context: &Context) -> Result<Service, Failure> {
        let Self { admin_url, token_file, cacert, timeout } = self;
        let address = match admin_url {
            Some(url) => url,
            None => format!("{UNIX}{}", socket(context)?.display()),
        };
        let (url, unix_socket) = match address.strip_prefix(UNIX) {
            // HTTP requires a host, which a Unix socket does not have.
            Some(path) => ("http://localhost".to_owned(), Some(PathBuf::from(path))),
            None => (address, None),
        };
        let args = ServiceArgs { url: Some(url), cacert, token_file, timeout };
        args.connect_over(context, unix_socket)
    }
}

/// Returns the socket of the configured service; without a configuration, that of `serve --dev` in this folder.
fn socket(context: &Context) -> Result<PathBuf, Failure> {
    let settings = context.settings(Vec::new())?;
    let is_configured = matches!(settings.get::<String>("origin"), Ok(Some(_)));
    if !is_configured && Path::new(DEV_SOCKET).exists() {
        return Ok(DEV_SOCKET.into());
    }
    let socket = config::admin_socket(&settings).map_err(|mistake| settings::refuse(vec![mistake]))?;
    socket.ok_or_else(|| {
        Failure::new(Exit::Usage, "usage", "the service is configured without an admin socket")
            .hint("name its admin listener with --admin-url and --token-file")
    })
}

impl Hold {
    /// Registers a hold, unless the case holds the entry already.
    pub fn begin(self, context: &Context) -> Result<(), Failure> {
        let key = keyfile::read(&self.key)?;
        let entry = entry_named(&self.of.entry)?;
        let service = self.admin.connect(context)?;
        let next = self.of.next(&service, &entry)?;
        if !next.number.is_multiple_of(2) {
            context.console.note("the case holds it already");
            return print(context, &self.of.in_force(&service, &entry)?);
        }
        let hold = self.of.hand_in(
            &service,
            Verb::Post,
            Action::numbered(entry, &self.of.case, next.number),
            &key,
        )?;
        print(context, &[hold])
    }
}

impl Release {
    /// Registers a release of the hold.
    pub fn end(self, context: &Context) -> Result<(), Failure> {
        let signer = self.signing.signer()?;
        let entry = entry_named(&self.of.entry)?;
        let service = self.admin.connect(context)?;
        let NextHold { number } = self.of.next(&service, &entry)?;
        if number.is_multiple_of(2) {
            return Err(Failure::new(
                Exit::NotFound,
                "not-held",
                format!("no case of that name holds {entry}"),
            ));
        }
        let action = Action::numbered(entry, &self.of.case, number);
        let key = match signer {
            Signer::Write(proposals) => {
                return proposals.write(context, OPERATOR_ACTION_CONTENT_TYPE, action.payload());
            }
            Signer::Key(key) => key,
        };
        self.of.hand_in(&service, Verb::Delete, action, &key)?;
        context.console.note(format!("released   {}", self.of.entry));
        Ok(())
    }
}

impl Case {
    /// Fetches the number of the next statement about this entry and case.
    fn next(&self, service: &Service, entry: &EntryDigest) -> Result<NextHold, Failure> {
        let mut query = Serializer::new(String::new());
        query.append_pair("entry_id", &entry.to_string()).append_pair("case", &self.case);
        service.block_on(service.client.json(&format!("holds/next?{}", query.finish())))
    }

    /// Signs an action and submits it to the service.
    fn hand_in(
        &self,
        service: &Service,
        verb: Verb,
        action: Action,
        key: &SigningKey,
    ) -> Result<Json, Failure> {
        let log: LogPolicy = service.block_on(service.client.json("operator"))?;
        let policy = operator::policy_in(&log.policy)?;
        let statement = operator::sign(&policy, OPERATOR_ACTION_CONTENT_TYPE, action.payload(), None, key)?;
        let asked = json!({ "statement": BASE64URL_NOPAD.encode(statement.bytes()) });
        service.block_on(service.client.send_json(verb, "holds", &asked))
    }

    /// Returns the case's current hold on this entry.
    fn in_force(&self, service: &Service, entry: &EntryDigest) -> Result<Vec<Json>, Failure> {
        let is_it = |hold: &Json| {
            hold["entry_id"] == entry.to_string() && hold["case"] == self.case && hold["released"].is_null()
        };
        Ok(all(service)?.into_iter().filter(is_it).collect())
    }
}

/// Lists all holds, including released ones.
pub fn list(admin: Admin, context: &Context) -> Result<(), Failure> {
    print(context, &all(&admin.connect(context)?)?)
}

fn all(service: &Service) -> Result<Vec<Json>, Failure> {
    let mut all = Vec::new();
    let mut path = "holds".to_owned();
    loop {
        let mut page: Json = service.block_on(service.client.json(&path))?;
        let Some(Json::Array(holds)) = page.get_mut("holds").map(Json::take) else { return Ok(all) };
        let Some(last) = holds.last().and_then(|hold| hold.get("index")).and_then(Json::as_u64) else {
            return Ok(all);
        };
        path = format!("holds?after={last}");
        all.extend(holds);
    }
}

fn print(context: &Context, holds: &[Json]) -> Result<(), Failure> {
    let rows: Vec<Vec<Cell>> = holds.iter().map(row).collect();
    let table = Table::of(&context.console, COLUMNS);
    context.console.print(&holds, |out| table.write(out, &rows))
}

fn row(hold: &Json) -> Vec<Cell> {
    let of = |name| Cell::text(&show::text(hold, name));
    vec![Cell::id(&show::text(hold, "entry_id")), of("since"), of("released"), of("case")]
}
