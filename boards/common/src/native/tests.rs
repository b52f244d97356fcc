use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use tenure_hal::{Context, Instant, Region, UnixTime};
use tenure_kernel::NativeParts;

use super::*;

const MEMORY_BYTES: usize = 4096 + 8;
const CODE_BYTES: usize = 64;

/// Memory protection that protects nothing: its programs are what a test does to their memory.
#[derive(Clone)]
struct Open {
    firmware: usize,
    /// Where no memory can be had.
    taken: Arc<AtomicUsize>,
}

/// Asks for a value: `tree_get`, with a path and a buffer.
const CALL: usize = 9;

impl Guard for Open {
    type Memory = Vec<u8>;

    fn memory(&self, bytes: usize, _: usize, at: Option<usize>) -> Option<Vec<u8>> {
        let is_taken = at.is_some_and(|at| self.taken.load(Ordering::Relaxed) == at);
        (!is_taken).then(|| vec![0; bytes])
    }

    fn enter(&self, entry: usize, argument: usize, stack_top: usize) -> Context {
        let mut context = Context::default();
        context.words[..4].copy_from_slice(&[entry, argument, stack_top, self.firmware]);
        context
    }

    fn run(&mut self, context: &mut Context, memory: &mut Vec<u8>, _: u32) -> Exit {
        // Each turn leaves its mark, far apart from each other.
        context.words[8] += 1;
        let turn = context.words[8];
        memory[CODE_BYTES + 600 * turn] = turn as u8;
        *memory.last_mut().unwrap() = turn as u8;
        if turn.is_multiple_of(2) { Exit::Time } else { Exit::Call }
    }

    fn run_firmware(&mut self, _: &mut Context, _: &mut [Region<'_>], _: u32) -> Exit {
        Exit::Time
    }

    fn call(&self, context: &Context) -> tenure_hal::Call {
        let turn = context.words[8];
        tenure_hal::Call { number: CALL, arguments: [turn, 0, turn, 0, 0, 0] }
    }

    fn position(&self, context: &Context) -> usize {
        context.words[0]
    }

    fn finish_call(&self, context: &mut Context, results: [usize; 2]) {
        context.words[6..8].copy_from_slice(&results);
    }
}

#[derive(Clone)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Instant {
        Instant::BOOT
    }

    fn unix_time(&self) -> Option<UnixTime> {
        None
    }
}

fn binary() -> Vec<u8> {
    let parts = NativeParts {
        kind: CodeKind::Rv32,
        code: vec![0xA5; CODE_BYTES],
        stack_bytes: 256,
        data: vec![7; 16],
        zero_bytes: 16,
        relocations: vec![8],
        exports: vec![("work".to_string(), 4)],
    };
    parts.to_bytes().unwrap()
}

fn machines(firmware: usize) -> NativeMachines<Open, Still> {
    let guard = Open { firmware, taken: Arc::default() };
    NativeMachines::new(CodeKind::Rv32, guard, Still)
}

fn limits(memory_bytes_max: usize) -> InstanceConfig {
    InstanceConfig { stack_bytes: 0, memory_bytes_max }
}

fn resume(
    machines: &mut NativeMachines<Open, Still>,
    state: &[u8],
) -> Result<Box<dyn EngineInstance>, EngineError> {
    let bytes = binary();
    let code = Code::Native(NativeBinary::parse(&bytes).unwrap());
    machines.resume(code, &limits(MEMORY_BYTES), state)
}

/// A machine that has had so many turns.
fn after(turns: usize) -> Box<dyn EngineInstance> {
    let bytes = binary();
    let code = Code::Native(NativeBinary::parse(&bytes).unwrap());
    let started = machines(1).start(&Digest([0; 32]), code, &limits(MEMORY_BYTES));
    let mut machine = started.unwrap();
    assert!(machine.prepare("work"));
    for _ in 0..turns {
        machine.finish_host_call(&[Value::I32(77)]);
        machine.run(&mut 1_000_000, 1000);
    }
    machine
}

/// A machine's suspended state without the address of its memory, which in these tests differs each time; the
/// code holds that address too.
fn state_of(machine: &dyn EngineInstance) -> Vec<u8> {
    let mut state = machine.suspend(0).unwrap().unwrap();
    state[8..16].fill(0);
    state
}

#[test]
fn a_machine_goes_on_with_the_memory_registers_and_call_that_were_written_down() {
    for turns in 0..5 {
        let mut machine = after(turns);
        let state = machine.suspend(16).unwrap().unwrap();
        assert!(state.capacity() >= state.len() + 16);
        assert!(state.len() < 1000, "zeros aren't written: {}", state.len());
        let mut resumed = resume(&mut machines(1), &state).ok().unwrap();
        assert_eq!(state_of(&*resumed), state_of(&*machine));
        let own = |machine: &dyn EngineInstance| machine.memory()[CODE_BYTES..].to_vec();
        assert_eq!(own(&*resumed), own(&*machine));
        assert_eq!(resumed.memory()[12..CODE_BYTES], machine.memory()[12..CODE_BYTES]);
        assert_eq!(resumed.host_arguments(), machine.host_arguments());
        for _ in 0..2 {
            let results = [Value::I32(5)];
            assert_eq!(resumed.finish_host_call(&results), machine.finish_host_call(&results));
            let outcomes = [&mut resumed, &mut machine].map(|one| one.run(&mut 1_000_000, 1000));
            assert_eq!(outcomes[0], outcomes[1]);
        }
        assert_eq!(state_of(&*resumed), state_of(&*machine));
    }
}

#[test]
fn a_machine_does_not_go_on_elsewhere_with_other_firmware_or_as_something_else() {
    let state = after(3).suspend(0).unwrap().unwrap();
    assert_eq!(resume(&mut machines(2), &state).err(), Some(EngineError::State));
    let mut machines = machines(1);
    assert!(resume(&mut machines, &state).is_ok());
    let base = usize::from_le_bytes(*state[8..].first_chunk().unwrap());
    machines.guard.taken.store(base, Ordering::Relaxed);
    assert_eq!(resume(&mut machines, &state).err(), Some(EngineError::Place));
    machines.guard.taken.store(0, Ordering::Relaxed);
    let mut other = NativeParts {
        kind: CodeKind::Rv32,
        code: vec![0; CODE_BYTES + 16],
        stack_bytes: 256,
        data: vec![7; 16],
        zero_bytes: 0,
        relocations: Vec::new(),
        exports: Vec::new(),
    };
    let mut resume_as = |parts: &NativeParts, bytes: usize| {
        let binary = parts.to_bytes().unwrap();
        let code = Code::Native(NativeBinary::parse(&binary).unwrap());
        machines.resume(code, &limits(bytes), &state).err()
    };
    assert_eq!(resume_as(&other, MEMORY_BYTES), Some(EngineError::State));
    other.code.truncate(CODE_BYTES);
    assert_eq!(resume_as(&other, MEMORY_BYTES - 4), Some(EngineError::Memory));
    assert_eq!(resume_as(&other, MEMORY_BYTES), None);
    other.stack_bytes = MEMORY_BYTES.next_multiple_of(16) as u32;
    assert_eq!(resume_as(&other, MEMORY_BYTES), Some(EngineError::Memory));
}

#[test]
fn damaged_states_are_refused_or_have_their_form() {
    let state = after(3).suspend(0).unwrap().unwrap();
    for length in 0..state.len() {
        let error = resume(&mut machines(1), &state[..length]).err();
        assert_eq!(error, Some(EngineError::State), "{length}");
    }
    let longer = [&state[..], &[0]].concat();
    assert_eq!(resume(&mut machines(1), &longer).err(), Some(EngineError::State));
    for at in 0..state.len() {
        for bit in [0, 6, 7] {
            let mut damaged = state.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(mut machine) = resume(&mut machines(1), &damaged) {
                assert!(machine.host_arguments().len() <= WORDS_MAX);
                machine.finish_host_call(&[Value::I32(0)]);
            }
        }
    }
}
