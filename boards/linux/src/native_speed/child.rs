//! The compiler as a process of its own, which ends alone where a module is more than it may take.
//!
//! Invariants:
//! - It has so much memory and so much of a processor's time, and ends with the device.
//! - It reads a module from its standard input, a socket that nobody else has, and writes the code there, or nothing.

use std::io::{Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Command, Stdio};

use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
use tenure_kernel::EngineError;
use wasmtime::{Engine, Module};

use super::compiler::MODULE_BYTES_MAX;

/// Seconds of a processor: four times what the worst took that the bounds on a module's effort let through.
const PROCESSOR_S_MAX: u64 = 20;
/// Bytes of memory; the worst took 150 MB.
const DATA_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// The longest code, in bytes; the worst had 13 MB.
const CODE_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// The exit code that says that the module can't be compiled.
const REFUSED: i32 = 1;

/// Has `wasm` compiled by the process that `command` starts, which calls [`compile_for_a_device`].
pub(super) fn compile(
    engine: &Engine,
    mut command: Command,
    wasm: &[u8],
) -> Result<Module, EngineError> {
    let (mut ours, theirs) = UnixStream::pair().map_err(|_| EngineError::NoCompiler)?;
    command.stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|_| EngineError::NoCompiler)?;
    // It has the other end, which would stay open after the process.
    drop(command);

    // Where the process has ended, its status says more than what fails here.
    let _ = ours.write_all(wasm).and_then(|()| ours.shutdown(Shutdown::Write));
    let mut code = Vec::new();
    let _ = ours.take(CODE_BYTES_MAX).read_to_end(&mut code);
    match child.wait().ok().and_then(|status| status.code()) {
        Some(0) => load(engine, &code),
        Some(REFUSED) => Err(EngineError::Module),
        // A signal has ended it, at one of the limits.
        _ => Err(EngineError::TooLong),
    }
}

fn load(engine: &Engine, code: &[u8]) -> Result<Module, EngineError> {
    // SAFETY: these are the bytes that this program's compiler made with the same settings. It is trusted as it would be in
    // this process, where it could forge code, too.
    let module = unsafe { Module::deserialize(engine, code) };
    module.map_err(|_| EngineError::Module)
}

/// Compiles the module that comes by the standard input, for the device that started this process, which must end now:
/// well if this is `true`, and with status 1 if the module can't be compiled.
#[must_use]
pub fn compile_for_a_device() -> bool {
    serve().is_some()
}

fn serve() -> Option<()> {
    bound().ok()?;
    let mut device = UnixStream::from(std::io::stdin().as_fd().try_clone_to_owned().ok()?);
    let mut wasm = Vec::new();
    (&device).take(MODULE_BYTES_MAX as u64).read_to_end(&mut wasm).ok()?;
    let code = super::engine().ok()?.precompile_module(&wasm).ok()?;
    device.write_all(&code).ok()
}

fn bound() -> rustix::io::Result<()> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    for (resource, most) in
        [(Resource::Cpu, PROCESSOR_S_MAX), (Resource::Data, DATA_BYTES_MAX), (Resource::Core, 0)]
    {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    // Where the system's memory runs out all the same, it ends before the device does.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    Ok(())
}
