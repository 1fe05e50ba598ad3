//! A gateway that knows its agent, in front of a server that answers any request. No log is reachable, so that its
//! records stay queued: tests with it look at the responses, and at the requests that reach the server.

use testkit::McpServer;

use crate::gateway::{Gateway, GatewayProcess};
use crate::mcp::McpClient;
use crate::vap::Agent;

/// A gateway with its agent and its upstream server.
pub struct Guarded {
    /// Server behind the gateway.
    pub upstream: McpServer,
    /// Agent whose key the gateway knows.
    pub agent: Agent,
    /// Folder of the gateway.
    pub gateway: Gateway,
    /// Process that runs the gateway.
    pub running: GatewayProcess,
}

impl Guarded {
    /// Starts a gateway in front of [`McpServer::ordinary`].
    #[track_caller]
    pub fn new() -> Self {
        Self::built(McpServer::ordinary(), |gateway| gateway)
    }

    /// Starts a gateway with these settings in its route.
    #[track_caller]
    pub fn with(route: &str) -> Self {
        Self::built(McpServer::ordinary(), |gateway| gateway.route(route))
    }

    /// Starts a gateway that `build` configures.
    #[track_caller]
    pub fn built(upstream: McpServer, build: impl FnOnce(Gateway) -> Gateway) -> Self {
        let agent = Agent::new("a-session-that-nobody-guesses");
        let gateway = build(Gateway::before(&upstream.url()).knowing(&agent));
        let running = gateway.start();
        Self { upstream, agent, gateway, running }
    }

    /// Runs a scenario with a client of each MCP revision, each with its own VAP session.
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
