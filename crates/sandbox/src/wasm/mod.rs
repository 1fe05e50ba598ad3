//! JavaScript in QuickJS-ng, compiled to WebAssembly and run by wasmtime.
//!
//! The guest is one instance of `engines/quickjs.wasm` (built by `tools/quickjs-wasm`) with a fresh memory. It can reach the functions
//! of [`host`] and nothing else. The same job gives the same outcome and uses the same fuel on every run, because clock and
//! random numbers are fixed and NaNs have one form; only [`Ending::OutOfTime`](crate::Ending::OutOfTime) depends on the machine.

mod guest;
mod host;
mod run;
mod self_test;

use wasmtime::{Config, Engine as Runtime, InstancePre, Linker, Module};

use crate::digest::sha256;
use crate::{Call, Engine, Job, Language, Outcome, Sandbox, SandboxError};
use guest::Guest;

/// The engine as checked in, and built anew by `tools/quickjs-wasm`.
const QUICKJS: &[u8] = include_bytes!("../../engines/quickjs.wasm");

/// Versions of QuickJS-ng and wasmtime, on which results depend.
const VERSION: &str = "0.16.2 in 48.0.8";

/// Bytes of native stack for the guest, reserved, not used. JavaScript reaches the bound of the driver (1 MiB of the stack in its
/// memory) before, so that how deep it can recurse does not depend on the compiler.
const GUEST_STACK: usize = 64 << 20;

/// A sandbox for JavaScript functions.
pub struct Wasm {
    engine: Engine,
    runtime: Runtime,
    quickjs: InstancePre<Guest>,
}

impl Wasm {
    /// Compiles the engine, which takes seconds: make one sandbox per process.
    pub fn new() -> Result<Self, SandboxError> {
        let runtime = Runtime::new(&config())
            .map_err(|error| failed("the WebAssembly runtime cannot start", &error))?;
        let quickjs = link(&runtime).map_err(|error| failed("quickjs.wasm cannot be compiled", &error))?;
        Ok(Self { engine: describe(), runtime, quickjs })
    }
}

impl Sandbox for Wasm {
    fn engine(&self) -> &Engine {
        &self.engine
    }

    fn supports(&self, call: &Call) -> bool {
        matches!(call, Call::Function { language: Language::JavaScript, .. })
    }

    fn run(&self, job: &Job) -> Result<Outcome, SandboxError> {
        run::run(self, job)
    }

    fn self_test(&self) -> Result<(), SandboxError> {
        self_test::run(self)
    }
}

fn config() -> Config {
    let mut config = Config::new();
    config
        .consume_fuel(true)
        .epoch_interruption(true)
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .wasm_memory64(false)
        .max_wasm_stack(GUEST_STACK)
        .async_stack_size(GUEST_STACK); // not used, but must not be smaller
    config
}

fn link(runtime: &Runtime) -> wasmtime::Result<InstancePre<Guest>> {
    let module = Module::new(runtime, QUICKJS)?;
    let mut linker = Linker::new(runtime);
    host::define(&mut linker, &module)?;
    linker.instantiate_pre(&module)
}

fn describe() -> Engine {
    Engine {
        sandbox: "wasm".to_owned(),
        name: "quickjs-ng in wasmtime".to_owned(),
        version: VERSION.to_owned(),
        digests: vec![("quickjs.wasm".to_owned(), sha256(QUICKJS))],
    }
}

fn failed(what: &str, error: &wasmtime::Error) -> SandboxError {
    SandboxError::Failed(format!("{what}: {error:#}"))
}
