//! The choice between backends.

use sandbox::{Call, Engine, Job, Language, Outcome, Sandbox, SandboxError, Sandboxes};

use crate::support::honest;

/// A backend that fails its self-test.
struct Leaky(Engine);

impl Sandbox for Leaky {
    fn engine(&self) -> &Engine {
        &self.0
    }

    fn supports(&self, _: &Call) -> bool {
        true
    }

    fn run(&self, _: &Job) -> Result<Outcome, SandboxError> {
        panic!("a backend that does not isolate was used")
    }

    fn self_test(&self) -> Result<(), SandboxError> {
        Err(SandboxError::NotIsolated("guests reach the network".to_owned()))
    }
}

fn leaky() -> Leaky {
    let name = "none".to_owned();
    Leaky(Engine { sandbox: name.clone(), name: name.clone(), version: name, digests: Vec::new() })
}

#[test]
fn a_backend_that_does_not_isolate_is_never_used() {
    let mut sandboxes = Sandboxes::default();
    sandboxes.add(Ok(leaky()));

    assert_eq!(sandboxes.engines().count(), 0);
    assert!(sandboxes.find(&honest(Language::Python).call).is_none());
    assert_eq!(
        sandboxes.run(&honest(Language::Python)).expect_err("no backend").to_string(),
        "this sandbox cannot run Python functions on this machine; the sandbox does not isolate: guests reach the network"
    );
}

#[cfg(all(target_os = "linux", feature = "wasm"))]
#[test]
fn each_call_runs_in_the_backend_that_supports_it() {
    let sandboxes = Sandboxes::of_this_machine();

    assert!(sandboxes.refused().is_empty(), "{:?}", sandboxes.refused());
    for (language, backend) in [(Language::JavaScript, "wasm"), (Language::Python, "subprocess")] {
        let job = honest(language);
        assert_eq!(sandboxes.find(&job.call).map(|found| found.engine().sandbox.as_str()), Some(backend));
        assert_eq!(crate::support::describe(&sandboxes.run(&job).expect("the sandbox works")), "returned 5");
    }
}
