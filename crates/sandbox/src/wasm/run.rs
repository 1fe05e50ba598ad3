//! One run: a thread for the guest, with a stack that is large enough, while the caller's thread watches the time.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use wasmtime::{Store, Trap, UpdateDeadline};

use super::guest::{Guest, GuestResult, MemoryBound, Stage, Stop};
use super::{GUEST_STACK, Wasm, failed};
use crate::checks::{check_file_exists, check_files, exception, read_value};
use crate::{Call, Ending, Job, Language, Outcome, SandboxError};

/// Bytes of native stack for the functions around the guest.
const HOST_STACK: usize = 1 << 20;

/// What QuickJS throws if memory is exhausted.
const OUT_OF_MEMORY: &[u8] = b"InternalError: out of memory";

/// Time between two attempts to interrupt a guest.
const INTERRUPT_AGAIN: Duration = Duration::from_millis(10);

/// Runs the job and waits for its end.
pub(super) fn run(wasm: &Wasm, job: &Job) -> Result<Outcome, SandboxError> {
    let begun = Instant::now();
    let guest = new_guest(job, begun)?;
    let (outcome, running) = mpsc::channel();
    thread::scope(|scope| {
        let start = move || outcome.send(run_guest(wasm, guest)).is_ok();
        thread::Builder::new()
            .stack_size(GUEST_STACK + HOST_STACK)
            .spawn_scoped(scope, start)
            .map_err(|error| SandboxError::Failed(format!("no thread for the guest: {error}")))?;
        wait(wasm, &running, job.limits.time)
    })
    .map(|outcome| Outcome { elapsed_ms: elapsed_ms(begun), ..outcome })
}

fn new_guest(job: &Job, begun: Instant) -> Result<Guest, SandboxError> {
    check_files(job)?;
    let Call::Function { language: Language::JavaScript, file, function, arguments } = &job.call else {
        return Err(SandboxError::Unsupported("calls other than of JavaScript functions".to_owned()));
    };
    check_file_exists(job, file)?;
    Ok(Guest {
        inputs: [file, function, arguments].map(|text| text.clone().into_bytes()),
        deadline: begun + job.limits.time,
        memory: MemoryBound {
            bytes: usize::try_from(job.limits.memory).unwrap_or(usize::MAX),
            refused: false,
        },
        job: Arc::new(job.clone()),
        stdout: Vec::new(),
        stderr: Vec::new(),
        result: None,
    })
}

/// Waits for the outcome. After the time is up it interrupts all guests of this runtime; those with time left continue.
fn wait(
    wasm: &Wasm,
    running: &mpsc::Receiver<Result<Outcome, SandboxError>>,
    time: Duration,
) -> Result<Outcome, SandboxError> {
    let mut patience = time;
    loop {
        match running.recv_timeout(patience) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) => wasm.runtime.increment_epoch(),
            Err(RecvTimeoutError::Disconnected) => {
                return Err(SandboxError::Failed("the thread of the guest panicked".to_owned()));
            }
        }
        patience = INTERRUPT_AGAIN;
    }
}

fn run_guest(wasm: &Wasm, guest: Guest) -> Result<Outcome, SandboxError> {
    let fuel = guest.job.limits.fuel;
    let mut store = Store::new(&wasm.runtime, guest);
    store.limiter(|guest| &mut guest.memory);
    store.set_fuel(fuel).map_err(|error| failed("no fuel", &error))?;
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(|store| {
        if Instant::now() >= store.data().deadline {
            return Err(Stop::OutOfTime.into());
        }
        Ok(UpdateDeadline::Continue(1))
    });
    let ended = start(wasm, &mut store);
    let left = store.get_fuel().map_err(|error| failed("no fuel", &error))?;
    Ok(read_outcome(store.into_data(), ended, fuel - left))
}

fn start(wasm: &Wasm, store: &mut Store<Guest>) -> wasmtime::Result<()> {
    let instance = wasm.quickjs.instantiate(&mut *store)?;
    instance.get_typed_func::<(), ()>(&mut *store, "_start")?.call(store, ())
}

fn read_outcome(guest: Guest, ended: wasmtime::Result<()>, fuel: u64) -> Outcome {
    let (ending, value) = match ended {
        Ok(()) => read_result(guest.result),
        Err(error) => (read_error(&error, guest.memory.refused), None),
    };
    Outcome { ending, value, stdout: guest.stdout, stderr: guest.stderr, fuel: Some(fuel), elapsed_ms: 0 }
}

fn read_result(result: Option<GuestResult>) -> (Ending, Option<String>) {
    match result {
        Some(GuestResult::Returned(text)) => match read_value(&text) {
            Ok(value) => (Ending::Finished, Some(value)),
            Err(ending) => (ending, None),
        },
        Some(GuestResult::ReturnedNothing) => (Ending::Finished, None),
        Some(GuestResult::Failed(_, text)) if text == OUT_OF_MEMORY => (Ending::OutOfMemory, None),
        Some(GuestResult::Failed(stage, text)) => (read_exception(stage, &text), None),
        None => (Ending::Exited(0), None),
    }
}

fn read_exception(stage: Stage, text: &[u8]) -> Ending {
    let text = exception(text);
    match stage {
        Stage::Loading => Ending::NotLoaded(text),
        Stage::Calling => Ending::Threw(text),
        Stage::Returning => Ending::NotJson(text),
    }
}

fn read_error(error: &wasmtime::Error, refused_memory: bool) -> Ending {
    match (error.downcast_ref::<Stop>(), error.downcast_ref::<Trap>()) {
        (Some(Stop::TooMuchOutput), _) => Ending::TooMuchOutput,
        (Some(Stop::OutOfTime), _) => Ending::OutOfTime,
        (Some(Stop::Exited(code)), _) => Ending::Exited(*code),
        (_, Some(Trap::OutOfFuel)) => Ending::OutOfFuel,
        _ if refused_memory => Ending::OutOfMemory,
        (_, Some(trap)) => Ending::Crashed(trap.to_string()),
        _ => Ending::Crashed(error.to_string()),
    }
}

fn elapsed_ms(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
