//! Checks the backends of one instruction set against the portable one on an emulated machine, then
//! counts their instructions where the machine can. Prints `check NAME ok` and `count BENCH SUBJECT INSTRUCTIONS BYTES`.
#![no_std]
#![no_main]

#[cfg_attr(target_arch = "riscv32", path = "riscv.rs")]
#[cfg_attr(target_arch = "arm", path = "arm.rs")]
#[cfg_attr(any(target_arch = "aarch64", target_arch = "riscv64"), path = "linux.rs")]
mod machine;

mod check;
mod count;

use tenure_bench_report::line;

/// Runs everything; the machine's start code calls it with a stack and nothing else.
fn run() -> Result<(), &'static str> {
    check(&tenure_cipher::backend::portable::Portable)?;
    for backend in machine::backends() {
        check(backend)?;
    }
    if !machine::COUNTS {
        return Ok(());
    }
    count::count(&tenure_cipher::backend::portable::Portable);
    for backend in machine::backends() {
        count::count(backend);
    }
    #[cfg(feature = "peers")]
    count::peers::count();
    Ok(())
}

fn check(backend: &dyn tenure_cipher::backend::Backend) -> Result<(), &'static str> {
    let result = check::check(backend);
    let verdict = if result.is_ok() { " ok" } else { " failed" };
    line(machine::write, &["check ", backend.name(), verdict], &[]);
    result
}

/// Ends the run, with the reason if it failed.
fn finish(result: Result<(), &'static str>) -> ! {
    if let Err(reason) = result {
        line(machine::write, &["failed: ", reason], &[]);
    }
    machine::exit(result.is_ok())
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    finish(Err("panicked"))
}
