//! The operator's rules about AgentROA on a route.

use serde_json::{Value, json};

use crate::rules::sensitivity::SensitivityRules;
use vap::glob::Pattern;
use vap::message::Sensitivity;

/// The rules of a route about AgentROA.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AuthorityRules {
    /// The treatment of delegation chains.
    pub demand: AuthorityDemand,
    /// The identifiers of the servers behind the route, which begin a capability.
    pub servers: CapabilityServers,
    /// The classes of tools, which the scope of a chain is compared with. All matching entries apply.
    pub classes: Vec<(Pattern, ToolClass)>,
    /// The calls that are permitted while the registry is out of date.
    pub degraded: DegradedMode,
}

/// The treatment of delegation chains on a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AuthorityDemand {
    /// `off`: a call with a chain is denied, since nothing would enforce it.
    #[default]
    Off,
    /// `advisory`: each call is decided and has its execution receipt, and no call is denied.
    Advisory,
    /// `required`: a call without a chain that authorizes it is denied.
    Required,
}

/// The identifiers of the servers behind a route.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CapabilityServers {
    /// No server has an identifier.
    #[default]
    None,
    /// All tools are of one server.
    One(String),
    /// The tools of several servers have the identifier and a separator before their names.
    Prefixed {
        /// The text between an identifier and a name.
        separator: String,
        /// The identifiers of all servers.
        servers: Vec<String>,
    },
}

/// The classes of the tools that an entry matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolClass {
    /// The price class.
    pub price: Option<u32>,
    /// The class of service level.
    pub slo: Option<u32>,
    /// The classification of the data that the tool accesses.
    pub classification: Option<String>,
}

/// The calls that are permitted while the registry is out of date.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DegradedMode {
    /// `deny`: none.
    #[default]
    Deny,
    /// `reads`: calls of tools that only read, by the operator's sensitivities.
    Reads,
}

impl AuthorityDemand {
    /// Returns the name used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            AuthorityDemand::Off => "off",
            AuthorityDemand::Advisory => "advisory",
            AuthorityDemand::Required => "required",
        }
    }
}

impl DegradedMode {
    /// Returns the name used in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            DegradedMode::Deny => "deny",
            DegradedMode::Reads => "reads",
        }
    }
}

impl CapabilityServers {
    /// Splits the name that a client sees into the server's identifier and the server's own name of the tool. `None` if the
    /// name begins with the identifier of no server: an identifier is never taken from a request.
    #[must_use]
    pub fn split<'a>(&'a self, tool: &'a str) -> Option<(&'a str, &'a str)> {
        match self {
            CapabilityServers::None => None,
            CapabilityServers::One(server) => Some((server, tool)),
            CapabilityServers::Prefixed { separator, servers } => {
                let (server, own_name) = tool.split_once(separator.as_str())?;
                servers.iter().any(|known| known == server).then_some((server, own_name))
            }
        }
    }
}

impl AuthorityRules {
    /// Returns the classes of all entries that match a tool.
    pub fn classes_of(&self, tool: &str) -> impl Iterator<Item = &ToolClass> {
        self.classes.iter().filter(move |(pattern, _)| pattern.matches(tool)).map(|(_, class)| class)
    }

    /// Returns `true` if a call of the tool is permitted while the registry is out of date.
    #[must_use]
    pub fn permits_degraded(&self, sensitivities: &SensitivityRules, tool: &str) -> bool {
        self.degraded == DegradedMode::Reads && sensitivities.of(tool, None) == Some(Sensitivity::Reads)
    }

    /// Returns the rules as JSON; `None` if AgentROA is not enforced.
    pub(super) fn describe(&self) -> Option<Value> {
        let AuthorityRules { demand, servers, classes, degraded } = self;
        if *demand == AuthorityDemand::Off {
            return None;
        }
        let servers = match servers {
            CapabilityServers::None => Value::Null,
            CapabilityServers::One(server) => json!({ "server": server }),
            CapabilityServers::Prefixed { separator, servers } => {
                json!({ "separator": separator, "servers": servers })
            }
        };
        let classes = classes.iter().map(|(pattern, ToolClass { price, slo, classification })| {
            json!({ "tool": pattern.as_str(), "price": price, "slo": slo, "classification": classification })
        });
        Some(json!({
            "demand": demand.as_str(),
            "servers": servers,
            "classes": classes.collect::<Vec<_>>(),
            "degraded": degraded.as_str(),
        }))
    }
}
