//! Hosts with virtual cables that can be disconnected: network namespaces, inside another one to which the test program
//! moves.
//!
//! Requires root, and a kernel with namespaces, bridges and veth pairs. All of them disappear when the program ends.

use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::log::{Log, Ran};
use crate::owned_child::OwnedChild;
use crate::service::Service;
use crate::tally::count;

/// Variable that is set if the program runs in its own network namespace.
const MOVED: &str = "TABELLION_TEST_NETWORK";

/// Cables of a host, named by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cable {
    /// Clients of the service.
    Clients = 1,
    /// Database of the log.
    Database = 2,
    /// Database of the pins.
    Pins = 3,
}

impl Cable {
    const ALL: [Self; 3] = [Self::Clients, Self::Database, Self::Pins];

    /// Returns the address of the cable's other end.
    pub fn far_end(self) -> Ipv4Addr {
        Ipv4Addr::new(10, 99, self as u8, 1)
    }
}

/// Faults of a cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// No packet passes.
    BothWays,
    /// Packets to the host are lost.
    Inwards,
    /// Packets from the host are lost.
    Outwards,
    /// The rate is limited to 10 kB per second in each direction.
    Slow,
}

/// Network switches: one per kind of cable, to which all hosts are connected.
pub struct Network(());

/// A host in its own network namespace, with a cable of each kind.
pub struct Host {
    number: u8,
    /// Process that keeps the namespace alive.
    holder: OwnedChild,
}

impl Network {
    /// Executes the program again in its own network namespace, unless it runs in one, and creates the switches.
    pub fn enter() -> Self {
        if std::env::var_os(MOVED).is_none() {
            let program = std::env::current_exe().expect("a program knows where it is");
            let mut again = Command::new("unshare");
            again.arg("--net").arg("--").arg(program).args(std::env::args_os().skip(1)).env(MOVED, "1");
            let why = again.exec();
            panic!("no network namespace: `unshare --net` (util-linux) is needed, as root: {why}");
        }
        run("ip link set lo up");
        for cable in Cable::ALL {
            let number = cable as u8;
            run(&format!("ip link add switch{number} type bridge"));
            run(&format!("ip addr add {}/24 dev switch{number}", cable.far_end()));
            run(&format!("ip link set switch{number} up"));
        }
        Self(())
    }

    /// Creates a host.
    pub fn host(&self, number: u8) -> Host {
        let mut holder = Command::new("unshare");
        holder.args(["--net", "sh", "-c", "echo; exec sleep infinity"]).stdout(Stdio::piped());
        let mut holder = holder.spawn().expect("unshare runs");
        let mut line = [0];
        let out = holder.stdout.as_mut().expect("it was asked for");
        std::io::Read::read_exact(out, &mut line).expect("a namespace");
        let host = Host { number, holder: OwnedChild(holder) };
        host.inside("ip link set lo up");
        for cable in Cable::ALL {
            let (outer, inner) = (host.outer(cable), inner(cable));
            run(&format!("ip link add {outer} type veth peer name {inner} netns {}", host.holder.id()));
            run(&format!("ip link set {outer} master switch{}", cable as u8));
            run(&format!("ip link set {outer} up"));
            host.inside(&format!("ip addr add {}/24 dev {inner}", host.address(cable)));
            host.inside(&format!("ip link set {inner} up"));
        }
        host
    }
}

impl Host {
    /// Returns the host's own address on a cable.
    pub fn address(&self, cable: Cable) -> Ipv4Addr {
        Ipv4Addr::new(10, 99, cable as u8, 10 + self.number)
    }

    /// Starts a service of the log on this host, which listens on the clients' cable.
    pub fn serve(&self, log: &Log) -> Result<Service, Ran> {
        let listen = format!("{}:0", self.address(Cable::Clients));
        let variables = [
            ("TABELLION_LISTEN", listen.clone()),
            ("TABELLION_ADMIN_LISTEN", listen),
            ("TABELLION_STATE_DIR", format!("state-{}", self.number)),
        ];
        Service::started_through(log, "nsenter", &[&self.namespace()], &variables)
    }

    /// Applies a fault to a cable.
    pub fn cut(&self, cable: Cable, how: Break) {
        const NOTHING: &str = "tbf rate 8bit burst 1 limit 1";
        const LITTLE: &str = "tbf rate 80kbit burst 5kb latency 2s";
        let (outer, inner) = (self.outer(cable), inner(cable));
        let outwards = |queue| self.inside(&format!("tc qdisc add dev {inner} root {queue}"));
        let inwards = |queue| run(&format!("tc qdisc add dev {outer} root {queue}"));
        match how {
            Break::BothWays => run(&format!("ip link set {outer} down")),
            Break::Inwards => inwards(NOTHING),
            Break::Outwards => outwards(NOTHING),
            Break::Slow => {
                inwards(LITTLE);
                outwards(LITTLE);
            }
        }
        count(&format!("partitions: {cable:?} {how:?}"), 1);
    }

    /// Removes a fault from a cable.
    pub fn mend(&self, cable: Cable, how: Break) {
        let (outer, inner) = (self.outer(cable), inner(cable));
        if how == Break::BothWays {
            run(&format!("ip link set {outer} up"));
        }
        if matches!(how, Break::Inwards | Break::Slow) {
            run(&format!("tc qdisc del dev {outer} root"));
        }
        if matches!(how, Break::Outwards | Break::Slow) {
            self.inside(&format!("tc qdisc del dev {inner} root"));
        }
    }

    fn outer(&self, cable: Cable) -> String {
        format!("host{}cable{}", self.number, cable as u8)
    }

    fn namespace(&self) -> String {
        format!("--net=/proc/{}/ns/net", self.holder.id())
    }

    fn inside(&self, command: &str) {
        run(&format!("nsenter {} {command}", self.namespace()));
    }
}

fn inner(cable: Cable) -> String {
    format!("cable{}", cable as u8)
}

/// Runs a command of iproute2 or util-linux.
fn run(command: &str) {
    let mut words = command.split(' ');
    let mut process = Command::new(words.next().expect("a program"));
    let output = process.args(words).output().unwrap_or_else(|why| panic!("{command}: {why}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command}: {said}(network namespaces, bridges and root are needed)");
}
