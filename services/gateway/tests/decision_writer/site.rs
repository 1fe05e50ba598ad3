//! A real log on a socket, in a folder of its own, that can be stopped and started again at the same address.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use client::Options;
use gateway::decision_writer::LogConnection;
use log_for_tests::LocalLog;
use scitt::Signer;
use transparency::Limits;

/// A log that knows the gateway.
pub struct Site(LocalLog);

impl Site {
    /// A log that runs.
    pub async fn start() -> Self {
        Self::with(&policy(), Limits::default()).await
    }

    /// The same under another policy or other limits.
    pub async fn with(policy: &str, limits: Limits) -> Self {
        let mut site = Self::stopped_under(policy);
        site.go_on_with(limits).await;
        site
    }

    /// A log that does not run yet.
    pub fn stopped() -> Self {
        Self::stopped_under(&policy())
    }

    /// The same under another policy.
    pub fn stopped_under(policy: &str) -> Self {
        Self(LocalLog::stopped(policy))
    }

    /// The log as a gateway is told of it.
    pub fn log(&self) -> LogConnection {
        let options = Options { patience: Duration::from_secs(1), ..Options::default() };
        LogConnection { url: self.url(), client: self.client_with(options), trust: Some(self.trust()) }
    }

    /// How many leaves it has.
    pub async fn size(&self) -> u64 {
        let checkpoint = self.client().bytes("checkpoint").await.unwrap();
        let text = String::from_utf8(checkpoint.to_vec()).unwrap();
        text.lines().nth(1).unwrap().parse().unwrap()
    }
}

impl Deref for Site {
    type Target = LocalLog;

    fn deref(&self) -> &LocalLog {
        &self.0
    }
}

impl DerefMut for Site {
    fn deref_mut(&mut self) -> &mut LocalLog {
        &mut self.0
    }
}

/// A policy that admits the gateway's records, under the name that its key really has.
pub fn policy() -> String {
    let key = testkit::gateway();
    let did = key.public_key().did_key();
    let before =
        format!("iss = \"{}\"\nkeys = [{{ key = \"{did}\", kid = \"{}\" }}]", testkit::GATEWAY, testkit::KID);
    let policy = testkit::policy_toml();
    assert!(policy.contains(&before), "the policy of the test kit binds the gateway");
    policy.replace(&before, &format!("iss = \"{}\"\nkeys = [\"{did}\"]", testkit::GATEWAY))
}
