//! A PULP cluster: RI5CY cores over one memory in banks, and a DMA engine. Cycles are an estimate.
//!
//! A bank serves one access a cycle; who comes second waits. The engine moves 8 bytes a cycle and
//! takes no bank from the cores. Fork and join are assumed to cost 100 cycles, about what the GAP8
//! SDK's `pi_cl_team_fork` may take.

use crate::elf::Image;
use crate::ri5cy::{Core, Memory, RETURN};

/// Banks of the cluster's memory, a word wide.
pub(crate) const BANKS: usize = 16;
const DMA_BYTES_PER_CYCLE: u64 = 8;
const FORK_CYCLES: u64 = 100;
const MEMORY_BYTES: usize = 16 << 20;
/// Places in the model's memory, beyond the image.
const ARGUMENTS: u32 = Memory::BASE + (1 << 20);
const DATA: u32 = Memory::BASE + (2 << 20);
const STACKS: u32 = Memory::BASE + (8 << 20);

/// The request to the kernel.
#[derive(Clone, Copy)]
pub(crate) struct Job {
    /// The key.
    pub(crate) key: [u8; 32],
    /// The nonce.
    pub(crate) nonce: [u8; 12],
    /// The number of the first block.
    pub(crate) first: u32,
    /// Double rounds.
    pub(crate) double_rounds: u32,
}

/// Cuts whole blocks among `cores`, which run `function` of the image (`xpulp_xor` or `scalar_xor`)
/// at once; the cycles of the slowest.
pub(crate) fn fork_join(
    image: &Image,
    function: &str,
    job: Job,
    data: &mut [u8],
    cores: usize,
) -> u64 {
    let function = image.address(function).expect("the image has the function");
    let mut memory = Memory::new(MEMORY_BYTES);
    for (address, bytes) in &image.segments {
        memory.at(*address, bytes.len()).copy_from_slice(bytes);
    }
    memory.at(DATA, data.len()).copy_from_slice(data);
    let blocks = data.len() / 64;
    let mut start = 0;
    let mut team: Vec<Core> = (0..cores)
        .map(|core| {
            let count = blocks / cores + usize::from(core < blocks % cores);
            let arguments = ARGUMENTS + 64 * core as u32;
            write_job(&mut memory, arguments, Job { first: job.first + start as u32, ..job });
            let part = DATA + 64 * start as u32;
            start += count;
            // Stacks a bank apart, as the SDK's are not aligned to the banks' period.
            let stack = STACKS + 0x1000 * (core as u32 + 1) - 16 * core as u32;
            Core::calling(function, &[arguments, part, count as u32], stack)
        })
        .collect();
    run_together(&mut team, &mut memory);
    data.copy_from_slice(memory.at(DATA, data.len()));
    team.iter().map(|core| core.cycles).max().unwrap_or(0)
}

/// The core that is behind goes first, so that accesses meet in the order of time.
fn run_together(team: &mut [Core], memory: &mut Memory) {
    let mut bank_free = [0u64; BANKS];
    while let Some(core) =
        team.iter_mut().filter(|core| core.pc != RETURN).min_by_key(|core| core.cycles)
    {
        let at = core.cycles;
        if let Some(access) = core.step(memory) {
            let bank = &mut bank_free[(access.address / 4) as usize % BANKS];
            let wait = bank.saturating_sub(at);
            core.cycles += wait;
            *bank = at + wait + 1;
        }
    }
}

fn write_job(memory: &mut Memory, address: u32, job: Job) {
    memory.at(address, 32).copy_from_slice(&job.key);
    memory.at(address + 32, 12).copy_from_slice(&job.nonce);
    memory.at(address + 44, 4).copy_from_slice(&job.first.to_le_bytes());
    memory.at(address + 48, 4).copy_from_slice(&job.double_rounds.to_le_bytes());
}

/// Streams `data` from far memory through three rotating buffers of `chunk` bytes: while the cores
/// work on one, the engine fills the next and empties the last. Cycles from the first byte in to
/// the last byte out.
pub(crate) fn stream(image: &Image, job: Job, data: &mut [u8], cores: usize, chunk: usize) -> u64 {
    let (mut engine_free, mut cores_free) = (0u64, 0u64);
    let mut first = job.first;
    let lengths: Vec<usize> = data.chunks(chunk).map(<[u8]>::len).collect();
    // The engine's work: transfers in come first, as far ahead as there are buffers.
    let mut arrived = Vec::new();
    let mut worked: Vec<u64> = Vec::new();
    let mut emptied: Vec<u64> = Vec::new();
    for (i, part) in data.chunks_mut(chunk).enumerate() {
        while arrived.len() < lengths.len().min(i + 2) {
            let next: usize = arrived.len();
            // The buffer was last emptied three chunks ago.
            if let Some(before) = next.checked_sub(3) {
                while emptied.len() <= before {
                    let chunk = emptied.len();
                    let start = worked[chunk].max(engine_free);
                    engine_free = start + lengths[chunk] as u64 / DMA_BYTES_PER_CYCLE;
                    emptied.push(engine_free);
                }
                engine_free = engine_free.max(emptied[before]);
            }
            engine_free += lengths[next] as u64 / DMA_BYTES_PER_CYCLE;
            arrived.push(engine_free);
        }
        let start = cores_free.max(arrived[i]) + FORK_CYCLES;
        cores_free = start + fork_join(image, "xpulp_xor", Job { first, ..job }, part, cores);
        worked.push(cores_free);
        first += part.len() as u32 / 64;
    }
    while emptied.len() < lengths.len() {
        let chunk = emptied.len();
        engine_free = worked[chunk].max(engine_free) + lengths[chunk] as u64 / DMA_BYTES_PER_CYCLE;
        emptied.push(engine_free);
    }
    engine_free
}
