//! A gateway that knows its agent, before a server that answers whatever reaches it. Its records wait for a log that is not
//! there: what is looked at is what it says, and what the server hears.

use crate::gateway::{Gateway, GatewayProcess};
use crate::mcp::McpClient;
use crate::upstream::Upstream;
use crate::vap::Agent;

/// The gateway with all that is around it.
pub struct Guarded {
    /// What stands behind it.
    pub upstream: Upstream,
    /// Whom it knows.
    pub agent: Agent,
    /// Its folder.
    pub gateway: Gateway,
    /// Its process.
    pub running: GatewayProcess,
}

impl Guarded {
    /// Before the ordinary server.
    #[track_caller]
    pub fn new() -> Self {
        Self::built(Upstream::ordinary(), |gateway| gateway)
    }

    /// The same, with this in its route.
    #[track_caller]
    pub fn with(route: &str) -> Self {
        Self::built(Upstream::ordinary(), |gateway| gateway.route(route))
    }

    /// One that is made as a test wants it.
    #[track_caller]
    pub fn built(upstream: Upstream, build: impl FnOnce(Gateway) -> Gateway) -> Self {
        let agent = Agent::new("a-session-that-nobody-guesses");
        let gateway = build(Gateway::before(&upstream.url()).knowing(&agent));
        let running = gateway.start();
        Self { upstream, agent, gateway, running }
    }

    /// Plays a scenario with a client of each era, each with a session of its own.
    pub fn in_both_eras(&self, scenario: impl Fn(&Agent, &mut McpClient)) {
        for (era, mut client) in [("older", self.running.in_session()), ("newer", self.running.modern())] {
            scenario(&self.agent.also_in(&format!("{}-{era}", self.agent.session)), &mut client);
        }
    }
}

impl Default for Guarded {
    fn default() -> Self {
        Self::new()
    }
}
