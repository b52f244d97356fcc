//! The backends of small cores: under QEMU, and those that QEMU does not know on a model.
//!
//! A test is skipped where the cross toolchain or QEMU is missing; with `CI=true` it fails there.

use std::path::{Path, PathBuf};

use tenure_cipher::backend::{Operations, portable::Portable};
use tenure_cipher::{ChaCha20, Form, Ietf};
use tenure_hal::simulated::Random;
use tenure_testbed::skip_without_tool;

use cortex::{Core, Trace};
use device::{Machine, Missing};
use elf::Image;
use pulp::{Job, fork_join, stream};
use ri5cy::Memory;

mod cortex;
mod device;
mod elf;
mod pulp;
mod ri5cy;

/// Builds the image of a machine, or says why not.
fn build(machine: Machine) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
    match machine.build(&folder, false) {
        Ok(image) => Some(image),
        Err(Missing::Tool(tool)) => {
            skip_without_tool(&format!("{tool}, for {}", machine.name()));
            None
        }
        Err(Missing::Build(error)) => panic!("{error}"),
    }
}

fn check_under_qemu(machine: Machine, backends: &[&str]) {
    let Some(image) = build(machine) else { return };
    match machine.run(&image) {
        Ok((output, ended_well)) => {
            assert!(ended_well, "{output}");
            for backend in backends {
                assert!(output.contains(&format!("check {backend} ok\n")), "{output}");
            }
        }
        Err(Missing::Tool(tool)) => skip_without_tool(&format!("{tool}, for {}", machine.name())),
        Err(Missing::Build(error)) => panic!("{error}"),
    }
}

#[test]
fn riscv_backends_agree_with_the_portable_one_under_qemu() {
    check_under_qemu(Machine::Riscv32, &["rv32im", "rv32+zbb", "rv32+zbb-small-loop"]);
}

/// The backend chosen by target feature.
#[test]
fn riscv_build_for_zbb_agrees_with_the_portable_one_under_qemu() {
    check_under_qemu(Machine::Riscv32Zbb, &["portable", "rv32+zbb"]);
}

#[test]
fn armv7m_backend_agrees_with_the_portable_one_under_qemu() {
    check_under_qemu(Machine::Thumbv7m, &["armv7m"]);
}

#[test]
fn armv6m_backend_agrees_with_the_portable_one_under_qemu() {
    check_under_qemu(Machine::Thumbv6m, &["armv6m"]);
}

#[test]
fn neon_backend_agrees_with_the_portable_one_under_qemu() {
    check_under_qemu(Machine::Aarch64, &["neon"]);
}

#[test]
fn rv64_backends_agree_with_the_portable_one_under_qemu() {
    check_under_qemu(Machine::Riscv64, &["rv64im", "rv64+zbb", "rv64+zbb-small-loop"]);
}

/// `gap8.rs` and `tenure_gap8.c` with a stand-in for the GAP SDK's runtime.
#[test]
fn gap8_interface_streams_through_the_engine_on_the_model() {
    let Some(clang) = device::newest("clang") else {
        skip_without_tool("a clang, for the interface to GAP8");
        return;
    };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("machines");
    let image = match device::build_gap8(&folder, &clang) {
        Ok(image) => Image::parse(&std::fs::read(image).unwrap()).unwrap(),
        Err(Missing::Tool(tool)) => return skip_without_tool(&format!("{tool}, for GAP8")),
        Err(Missing::Build(error)) => panic!("{error}"),
    };
    let mut random = Random::new(3);
    let (key, text) = (random.bytes(32), random.bytes(5 * 1024 + 77));
    let mut memory = Memory::new(16 << 20);
    for (address, bytes) in &image.segments {
        memory.at(*address, bytes.len()).copy_from_slice(bytes);
    }
    let [key_at, from, to, stack] = [1, 2, 3, 8].map(|mib| Memory::BASE + (mib << 20));
    memory.at(key_at, 32).copy_from_slice(&key);
    memory.at(from, text.len()).copy_from_slice(&text);
    let function = image.address("gap8_stream").unwrap();
    let arguments = [key_at, from, to, text.len() as u32];
    let mut core = ri5cy::Core::calling(function, &arguments, stack);
    while core.pc != ri5cy::RETURN {
        core.step(&mut memory);
    }
    assert_eq!(core.x[10], 1, "it was refused");
    let mut expected = text.clone();
    ChaCha20::with_key(key[..].try_into().unwrap(), &[9; 12]).xor(&mut expected).unwrap();
    assert!(memory.at(to, text.len()) == expected);
    let mut count = |name: &str| {
        let bytes = memory.at(image.address(name).unwrap(), 4);
        u32::from_le_bytes(bytes.try_into().unwrap())
    };
    // Six buffers full go in and out, each with its wait; one fork for each.
    assert_eq!(["pmsis_copies_in", "pmsis_copies_out", "pmsis_waits"].map(&mut count), [6, 6, 12]);
    assert_eq!(count("pmsis_forks"), 6);
}

/// Cycles a byte by the timing model: estimates, and upper bounds of them.
#[test]
fn cortex_m_cycles_stay_what_the_documents_say() {
    for (machine, core, chacha20, poly1305) in [
        (Machine::Thumbv6m, Core::M0Plus, 35.0, 38.4),
        (Machine::Thumbv7m, Core::M3, 15.2, 10.4),
        (Machine::Thumbv7m, Core::M4, 15.2, 4.2),
    ] {
        let Some(image) = build(machine) else { continue };
        let image = image.with_file_name("tenure-cipher-trace");
        let log = match device::trace(&image) {
            Ok(log) => log,
            Err(Missing::Tool(tool)) => {
                skip_without_tool(&format!("{tool}, for the trace"));
                continue;
            }
            Err(Missing::Build(error)) => panic!("{error}"),
        };
        let trace = Trace::parse(&image, &log).unwrap();
        for (function, bound) in [("trace_chacha20", chacha20), ("trace_poly1305", poly1305)] {
            let (instructions, cycles) = trace.cost(function, core).unwrap();
            let per_byte = |count: u64| count as f64 / cortex::LEN as f64;
            println!(
                "{} {function}: {:.2} cycles, {:.2} instructions a byte",
                core.name(),
                per_byte(cycles),
                per_byte(instructions)
            );
            assert!(per_byte(cycles) <= bound, "{} {function}", core.name());
        }
    }
}

/// Instruction caches are small. RV32IM cannot come down to 384 bytes, and the fastest loop for Zbb
/// is not the smallest: `docs/cipher.md` says why.
#[test]
fn inner_loops_are_as_small_as_the_documents_say() {
    for (machine, kernel, bytes_max) in [
        (Machine::Riscv32, "xpulp", 384),
        (Machine::Riscv32, "rotate_small", 384),
        (Machine::Riscv32, "scalar", 422),
        (Machine::Riscv32, "rotate", 870),
        (Machine::Thumbv7m, "armv7m", 384),
        (Machine::Thumbv6m, "armv6m", 384),
    ] {
        let Some(image) = build(machine) else { continue };
        let image = Image::parse(&std::fs::read(image).unwrap()).unwrap();
        let (start, end) =
            (format!("tenure_chacha_{kernel}_loop"), format!("tenure_chacha_{kernel}_loop_end"));
        let bytes = image.distance(&start, &end).expect("both labels are in the image");
        println!("{kernel}: {bytes} bytes");
        assert!(bytes <= bytes_max, "{kernel}: {bytes} bytes");
    }
}

/// One controls, all eight work; the image beside the first.
#[test]
fn riscv_harts_work_as_a_cluster_under_qemu() {
    let Some(image) = build(Machine::Riscv32) else { return };
    match Machine::Riscv32.run_on(&image.with_file_name("tenure-cipher-harts"), 8) {
        Ok((output, ended_well)) => {
            assert!(ended_well && output.contains("cluster of harts ok"), "{output}");
        }
        Err(Missing::Tool(tool)) => skip_without_tool(&format!("{tool}, for the harts")),
        Err(Missing::Build(error)) => panic!("{error}"),
    }
}

fn random_job(random: &mut Random, double_rounds: u32) -> Job {
    let key = random.bytes(32).try_into().unwrap();
    let nonce = random.bytes(12).try_into().unwrap();
    Job { key, nonce, first: random.number() as u32 >> 1, double_rounds }
}

fn expected(job: Job, data: &[u8]) -> Vec<u8> {
    let mut state = Ietf::state::<10>(&job.key, &job.nonce);
    state.set_counter(job.first);
    let mut data = data.to_vec();
    Portable.xor(&state, job.double_rounds as usize, data.as_chunks_mut().0);
    data
}

/// Rounds are an argument, whatever the forerunner's kernel thought.
#[test]
fn xpulp_backend_agrees_with_the_portable_one_on_the_model() {
    let Some(image) = build(Machine::Riscv32) else { return };
    let image = Image::parse(&std::fs::read(image).unwrap()).unwrap();
    let mut random = Random::new(1);
    for double_rounds in [2, 4, 6, 10] {
        for blocks in [1, 2, 3, 7, 20] {
            for cores in [1, 8] {
                let job = random_job(&mut random, double_rounds);
                let mut data = random.bytes(64 * blocks);
                let expected = expected(job, &data);
                fork_join(&image, "xpulp_xor", job, &mut data, cores);
                assert!(data == expected, "{double_rounds} double rounds, {blocks} blocks");
            }
        }
    }
}

/// Two of three buffers are not enough, and a third of one must not be lost (the forerunner freed
/// a third of its buffer).
#[test]
fn streaming_cluster_of_the_model_encrypts_every_byte() {
    let Some(image) = build(Machine::Riscv32) else { return };
    let image = Image::parse(&std::fs::read(image).unwrap()).unwrap();
    let mut random = Random::new(2);
    let job = random_job(&mut random, 10);
    let mut data = random.bytes(64 * 33);
    let expected = expected(job, &data);
    stream(&image, job, &mut data, 8, 512);
    assert!(data == expected);
}
