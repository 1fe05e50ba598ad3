//! The servers of a route, from its configuration.
//!
//! Not here: what runs in front of a server (`gateway`), and the protocol with it ([`upstream`](crate::upstream)).

use std::sync::Arc;

use crate::config::{CommandServer, Config, Route, Server};
use crate::isolation::{Confinement, OwnFiles};
use crate::start_error::StartError;
use crate::upstream::Upstream;
use crate::upstream::http::Http;
use crate::upstream::stdio::{Program, Stdio};

/// Makes one server of a route.
pub fn one_server(
    route: &Route,
    server: &Server,
    confinement: impl Fn(&CommandServer) -> Confinement,
    children: &mut Vec<Arc<Stdio>>,
) -> Result<Arc<dyn Upstream>, StartError> {
    match server {
        Server::Http(server) => {
            let http = Http::new(server, route.timeout)
                .map_err(|error| StartError::Upstream { route: route.path.clone(), error })?;
            Ok(Arc::new(http))
        }
        Server::Command(server) => {
            let program = Program {
                command: server.command.clone(),
                env: server.env.clone(),
                pass_env: server.pass_env.clone(),
                folder: server.folder.clone(),
                children: server.children,
                confinement: Some(confinement(server)),
            };
            let child = Arc::new(Stdio::new(program, &route.path));
            children.push(child.clone());
            Ok(child)
        }
    }
}

/// The sandbox that keeps a child process from the gateway's files and memory.
pub fn confinement(server: &CommandServer, own_files: &OwnFiles, config: &Config) -> Confinement {
    Confinement {
        own_files: own_files.clone(),
        writable: server.writable.clone(),
        user: server.user.clone(),
        limits: server.limits,
        landlock_optional: config.unsafe_shared_user,
    }
}
