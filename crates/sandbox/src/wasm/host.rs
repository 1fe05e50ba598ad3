//! The functions that a guest can call: inputs and results of the driver, and those of WASI that the C library imports.
//!
//! Of WASI, writing to the descriptors 1 and 2 works. The clock stands still, random numbers are zeros, there are no
//! arguments and no environment. Every other function returns `ENOSYS` and does nothing.

use wasmtime::{Caller, Extern, ExternType, Linker, Memory, Module};

use super::guest::{Guest, GuestResult, Stage, Stop};

const WASI: &str = "wasi_snapshot_preview1";
const HOST: &str = "host";

/// Numbers of errors in WASI.
const SUCCESS: i32 = 0;
const BAD_DESCRIPTOR: i32 = 8;
const NOT_SUPPORTED: i32 = 52;

/// The time at which the clocks stand, 2000-01-01T00:00:00Z, in nanoseconds since 1970.
const NOW: u64 = 946_684_800_000_000_000;

/// Buffers that one write may name.
const MAX_BUFFERS: u32 = 1024;

/// Defines what `module` imports.
pub(super) fn define(linker: &mut Linker<Guest>, module: &Module) -> wasmtime::Result<()> {
    define_inputs(linker)?;
    define_results(linker)?;
    define_wasi(linker)?;
    refuse_other_wasi(linker, module)
}

fn define_inputs(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.func_wrap(
        HOST,
        "input_length",
        |caller: Caller<'_, Guest>, input: u32| -> wasmtime::Result<i32> {
            length(caller.data().inputs.get(input as usize).ok_or(Stop::BadAddress)?)
        },
    )?;
    linker.func_wrap(HOST, "input_read", |mut caller: Caller<'_, Guest>, input: u32, to: u32| {
        let text = caller.data().inputs.get(input as usize).cloned().ok_or(Stop::BadAddress)?;
        write(&mut caller, to, &text)
    })?;
    linker.func_wrap(
        HOST,
        "file_length",
        |mut caller: Caller<'_, Guest>, name: u32, size: u32| -> wasmtime::Result<i32> {
            let name = read(&mut caller, name, size)?;
            file(&caller, &name).map_or(Ok(-1), |text| length(text))
        },
    )?;
    linker.func_wrap(HOST, "file_read", |mut caller: Caller<'_, Guest>, name: u32, size: u32, to: u32| {
        let name = read(&mut caller, name, size)?;
        let text = file(&caller, &name).cloned().ok_or(Stop::BadAddress)?;
        write(&mut caller, to, &text)
    })?;
    Ok(())
}

fn define_results(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.func_wrap(HOST, "returned", |mut caller: Caller<'_, Guest>, text: u32, size: u32| {
        let text = read_output(&mut caller, text, size)?;
        caller.data_mut().result = Some(GuestResult::Returned(text));
        wasmtime::Result::Ok(())
    })?;
    linker.func_wrap(HOST, "returned_nothing", |mut caller: Caller<'_, Guest>| {
        caller.data_mut().result = Some(GuestResult::ReturnedNothing);
    })?;
    linker.func_wrap(HOST, "failed", |mut caller: Caller<'_, Guest>, stage: i32, text: u32, size: u32| {
        let stage = Stage::of_number(stage).ok_or(Stop::UnknownStage)?;
        let text = read(&mut caller, text, size)?;
        caller.data_mut().result = Some(GuestResult::Failed(stage, text));
        wasmtime::Result::Ok(())
    })?;
    Ok(())
}

fn define_wasi(linker: &mut Linker<Guest>) -> wasmtime::Result<()> {
    linker.func_wrap(WASI, "fd_write", fd_write)?;
    linker.func_wrap(
        WASI,
        "clock_time_get",
        |mut caller: Caller<'_, Guest>, _clock: u32, _precision: u64, to: u32| {
            write(&mut caller, to, &NOW.to_le_bytes()).map(|()| SUCCESS)
        },
    )?;
    linker.func_wrap(WASI, "random_get", |mut caller: Caller<'_, Guest>, to: u32, size: u32| {
        slice_mut(&mut caller, to, size)?.fill(0);
        wasmtime::Result::Ok(SUCCESS)
    })?;
    for name in ["environ_sizes_get", "args_sizes_get"] {
        linker.func_wrap(WASI, name, |mut caller: Caller<'_, Guest>, count: u32, size: u32| {
            write(&mut caller, count, &[0; 4])?;
            write(&mut caller, size, &[0; 4]).map(|()| SUCCESS)
        })?;
    }
    for name in ["environ_get", "args_get"] {
        linker.func_wrap(WASI, name, |_: Caller<'_, Guest>, _: u32, _: u32| SUCCESS)?;
    }
    linker.func_wrap(WASI, "proc_exit", |_: Caller<'_, Guest>, code: i32| -> wasmtime::Result<()> {
        Err(Stop::Exited(code).into())
    })?;
    Ok(())
}

/// Defines the functions that have no other definition, so that they exist and fail.
fn refuse_other_wasi(linker: &mut Linker<Guest>, module: &Module) -> wasmtime::Result<()> {
    for import in module.imports().filter(|import| import.module() == WASI) {
        let ExternType::Func(function) = import.ty() else { continue };
        if defined(import.name()) {
            continue;
        }
        linker.func_new(WASI, import.name(), function, |_, _, results| {
            results.iter_mut().for_each(|result| *result = NOT_SUPPORTED.into());
            Ok(())
        })?;
    }
    Ok(())
}

fn defined(name: &str) -> bool {
    matches!(
        name,
        "fd_write"
            | "clock_time_get"
            | "random_get"
            | "environ_sizes_get"
            | "args_sizes_get"
            | "environ_get"
            | "args_get"
            | "proc_exit"
    )
}

/// Writes to standard output or standard error, within the bound of the job.
fn fd_write(
    mut caller: Caller<'_, Guest>,
    descriptor: u32,
    buffers: u32,
    count: u32,
    written: u32,
) -> wasmtime::Result<i32> {
    if !matches!(descriptor, 1 | 2) || count > MAX_BUFFERS {
        return Ok(BAD_DESCRIPTOR);
    }
    let mut total = 0_u32;
    for buffer in read(&mut caller, buffers, count * 8)?.chunks_exact(8) {
        let (address, size) = (word(&buffer[..4]), word(&buffer[4..]));
        append(&mut caller, descriptor, address, size)?;
        total = total.saturating_add(size);
    }
    write(&mut caller, written, &total.to_le_bytes())?;
    Ok(SUCCESS)
}

/// Appends what fits, so that the outcome shows how an output that is too long begins.
fn append(caller: &mut Caller<'_, Guest>, descriptor: u32, address: u32, size: u32) -> wasmtime::Result<()> {
    let bytes = read(caller, address, size)?;
    let bound = output_bound(caller);
    let guest = caller.data_mut();
    let stream = if descriptor == 1 { &mut guest.stdout } else { &mut guest.stderr };
    let fits = bytes.len().min(bound.saturating_sub(stream.len()));
    stream.extend_from_slice(&bytes[..fits]);
    if fits < bytes.len() {
        return Err(Stop::TooMuchOutput.into());
    }
    Ok(())
}

fn read_output(caller: &mut Caller<'_, Guest>, address: u32, size: u32) -> wasmtime::Result<Vec<u8>> {
    if size as usize > output_bound(caller) {
        return Err(Stop::TooMuchOutput.into());
    }
    read(caller, address, size)
}

fn output_bound(caller: &Caller<'_, Guest>) -> usize {
    usize::try_from(caller.data().job.limits.output).unwrap_or(usize::MAX)
}

fn file<'a>(caller: &'a Caller<'_, Guest>, name: &[u8]) -> Option<&'a Vec<u8>> {
    caller.data().job.files.get(std::str::from_utf8(name).ok()?)
}

fn length(bytes: &[u8]) -> wasmtime::Result<i32> {
    Ok(i32::try_from(bytes.len())?)
}

fn word(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte))
}

fn read(caller: &mut Caller<'_, Guest>, address: u32, size: u32) -> wasmtime::Result<Vec<u8>> {
    let end = (address as usize).checked_add(size as usize).ok_or(Stop::BadAddress)?;
    let memory = memory(caller)?;
    Ok(memory.data(&*caller).get(address as usize..end).ok_or(Stop::BadAddress)?.to_vec())
}

fn write(caller: &mut Caller<'_, Guest>, address: u32, bytes: &[u8]) -> wasmtime::Result<()> {
    let size = u32::try_from(bytes.len())?;
    slice_mut(caller, address, size)?.copy_from_slice(bytes);
    Ok(())
}

fn slice_mut<'a>(
    caller: &'a mut Caller<'_, Guest>,
    address: u32,
    size: u32,
) -> wasmtime::Result<&'a mut [u8]> {
    let end = (address as usize).checked_add(size as usize).ok_or(Stop::BadAddress)?;
    let memory = memory(caller)?;
    Ok(memory.data_mut(caller).get_mut(address as usize..end).ok_or(Stop::BadAddress)?)
}

fn memory(caller: &mut Caller<'_, Guest>) -> wasmtime::Result<Memory> {
    Ok(caller.get_export("memory").and_then(Extern::into_memory).ok_or(Stop::BadAddress)?)
}
