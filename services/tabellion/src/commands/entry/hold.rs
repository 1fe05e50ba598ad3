//! `tabellion entry hold`, `release`, `holds`: what a case needs is not erased. Asked of the service's admin listener.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use client::Verb;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::cli::Context;
use crate::commands::receipt::entry_named;
use crate::commands::serve::config;
use crate::console::{Exit, Failure, Report, safe};
use crate::service::{Service, ServiceArgs};
use crate::settings;

/// The admin listener's socket in the folder of `serve --dev`.
const DEV_SOCKET: &str = "tabellion-dev/admin.sock";
/// How a Unix socket is named where a URL could stand.
const UNIX: &str = "unix:";

#[derive(Debug, Args)]
pub struct Admin {
    /// The service's admin listener, or unix:PATH [default: setting admin_socket]
    #[arg(long, value_name = "URL")]
    admin_url: Option<String>,
    /// An operator's bearer token, in a file: for a URL
    #[arg(long, value_name = "FILE", hide = true)]
    token_file: Option<PathBuf>,
    /// Believe these certificates too (PEM)
    #[arg(long, value_name = "FILE", hide = true)]
    cacert: Option<PathBuf>,
    /// Seconds to keep trying
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

#[derive(Debug, Args)]
pub struct Hold {
    /// An entry ID, or a file that holds the statement
    entry: String,
    /// What the case is called
    #[arg(long, value_name = "NAME")]
    case: String,
    #[command(flatten)]
    admin: Admin,
}

impl Admin {
    /// A client of it.
    pub fn connect(self, context: &Context) -> Result<Service, Failure> {
        let Self { admin_url, token_file, cacert, timeout } = self;
        let address = match admin_url {
            Some(url) => url,
            None => format!("{UNIX}{}", socket(context)?.display()),
        };
        let (url, unix_socket) = match address.strip_prefix(UNIX) {
            // HTTP wants a host, and there is none.
            Some(path) => ("http://localhost".to_owned(), Some(PathBuf::from(path))),
            None => (address, None),
        };
        let args = ServiceArgs { url: Some(url), cacert, token_file, timeout };
        args.connect_over(context, unix_socket)
    }
}

/// The socket of the configured service; without a configuration, of the one that `serve --dev` runs here.
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
    /// From now on the entry is not erased.
    pub fn begin(self, context: &Context) -> Result<(), Failure> {
        let told = self.told()?;
        let service = self.admin.connect(context)?;
        let hold = service.block_on(service.client.tell(Verb::Post, "holds", &told))?;
        context.console.result(&Holds(vec![hold]))
    }

    /// The case needs it no more.
    pub fn end(self, context: &Context) -> Result<(), Failure> {
        let told = self.told()?;
        let service = self.admin.connect(context)?;
        service.block_on(service.client.tell(Verb::Delete, "holds", &told))?;
        context.console.note(format!("released   {}", self.entry));
        Ok(())
    }

    fn told(&self) -> Result<Json, Failure> {
        Ok(json!({ "entry_id": entry_named(&self.entry)?.to_string(), "case": self.case }))
    }
}

/// Every hold there is and was.
pub fn list(admin: Admin, context: &Context) -> Result<(), Failure> {
    let service = admin.connect(context)?;
    let mut all = Vec::new();
    let mut path = "holds".to_owned();
    loop {
        let mut page: Json = service.block_on(service.client.json(&path))?;
        let Some(Json::Array(holds)) = page.get_mut("holds").map(Json::take) else { break };
        let Some(last) = holds.last().and_then(|hold| hold.get("index")).and_then(Json::as_u64) else {
            break;
        };
        path = format!("holds?after={last}");
        all.extend(holds);
    }
    context.console.result(&Holds(all))
}

#[derive(Serialize)]
#[serde(transparent)]
struct Holds(Vec<Json>);

impl Report for Holds {
    fn human(&self, out: &mut dyn Write) -> io::Result<()> {
        self.0.iter().try_for_each(|hold| {
            let text = |name: &str| safe(hold.get(name).and_then(Json::as_str).unwrap_or("-")).into_owned();
            writeln!(out, "{}  {}  {}  {}", text("entry_id"), text("since"), text("released"), text("case"))
        })
    }
}
