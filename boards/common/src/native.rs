//! Native machines: binaries of the processor's own code, run unprivileged behind memory protection.
//!
//! A machine's code and memory are one piece of RAM that its binary is loaded to. Its host calls are
//! the processor's calls to whoever is privileged, with the numbers of the host-call table: up to six
//! words of arguments in registers, and of a call that has more, five and the address of the others. Its
//! pointers are addresses. What the kernel sees of it is that piece of RAM, and pointers into it
//! counted from its start, so that both kinds of machine are checked by the same code.
//!
//! It is metered by time, which the device's calibration turns into fuel.
//!
//! Where it stands can be written down at any time ([`state`]). Its registers and its memory hold addresses, so
//! that it goes on at the same place in memory and by the same firmware, or not at all.

mod state;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use tenure_hal::{ARGUMENTS, Cause, Clock, Exit, Guard, RETURNED, Violation};
use tenure_kernel::{Code, Engine, EngineError, EngineInstance, NativeBinary};
use tenure_vm::{Breach, InstanceConfig, Outcome, Trap, TrapKind, Value};
use tenure_wire::host_call::{HostCallInfo, ParameterKind, TABLE};
use tenure_wire::{CodeKind, Digest};

use self::state::{Place, Stand};
use crate::wall::breach;

/// The most words of arguments that a host call has.
const WORDS_MAX: usize = 12;
const WORD_BYTES: usize = size_of::<u32>();
/// Where nothing is.
const NOWHERE: u64 = u32::MAX as u64;
/// The longest that a machine runs without a look at the meter.
const SLICE_MICROSECONDS_MAX: u32 = 1_000_000;

/// Runs native machines behind `guard`, by `clock`.
pub struct NativeMachines<G, C> {
    kind: CodeKind,
    guard: G,
    clock: C,
}

impl<G, C> NativeMachines<G, C> {
    /// An engine for binaries of this kind.
    pub fn new(kind: CodeKind, guard: G, clock: C) -> Self {
        Self { kind, guard, clock }
    }
}

impl<G, C> Engine for NativeMachines<G, C>
where
    G: Guard + Clone + Send + 'static,
    C: Clock + Clone + Send + 'static,
{
    fn kind(&self) -> CodeKind {
        self.kind
    }

    fn start(
        &mut self,
        _: &Digest,
        code: Code<'_>,
        limits: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        let Code::Native(binary) = code else { return Err(EngineError::Module) };
        let bytes = limits.memory_bytes_max;
        let memory = self.load(&binary, bytes, None)?;
        Ok(Box::new(self.machine(&binary, memory, Stand::default())))
    }

    fn resume(
        &mut self,
        code: Code<'_>,
        limits: &InstanceConfig,
        state: &[u8],
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        let Code::Native(binary) = code else { return Err(EngineError::Module) };
        let written = state::read(state).ok_or(EngineError::State)?;
        let Place { base, bytes, code_bytes, firmware } = written.place;
        if code_bytes != binary.code_bytes() as usize || firmware != self.guard.firmware() {
            return Err(EngineError::State);
        }
        if bytes > limits.memory_bytes_max {
            return Err(EngineError::Memory);
        }
        let mut memory = self.load(&binary, bytes, Some(base))?;
        let stand = written.stand.clone();
        if !written.restore(&mut memory[code_bytes..]) {
            return Err(EngineError::State);
        }
        Ok(Box::new(self.machine(&binary, memory, stand)))
    }
}

impl<G, C> NativeMachines<G, C>
where
    G: Guard + Clone,
    C: Clone,
{
    /// Memory with a binary in it, at that address if it must be there.
    fn load(
        &self,
        binary: &NativeBinary<'_>,
        bytes: usize,
        at: Option<usize>,
    ) -> Result<G::Memory, EngineError> {
        if bytes < binary.memory_bytes() as usize {
            return Err(EngineError::Memory);
        }
        let memory = self.guard.memory(bytes, binary.code_bytes() as usize, at);
        let none = if at.is_some() { EngineError::Place } else { EngineError::Memory };
        let mut memory = memory.ok_or(none)?;
        let base = memory.as_ptr().expose_provenance();
        binary.load(&mut memory, base as u32).map_err(|_| EngineError::Memory)?;
        Ok(memory)
    }

    fn machine(
        &self,
        binary: &NativeBinary<'_>,
        memory: G::Memory,
        stand: Stand,
    ) -> NativeMachine<G, C> {
        NativeMachine {
            guard: self.guard.clone(),
            clock: self.clock.clone(),
            base: memory.as_ptr().expose_provenance(),
            memory,
            layout: Layout::of(binary),
            functions: binary.exports().map(|(name, at)| (name.to_string(), at)).collect(),
            stand,
            breach: None,
        }
    }
}

/// Where the parts of a machine's memory are.
#[derive(Clone, Copy)]
struct Layout {
    /// Where the code ends.
    code_bytes: usize,
    /// Where the stack begins, growing down.
    stack_top: usize,
}

impl Layout {
    fn of(binary: &NativeBinary<'_>) -> Self {
        let (code_bytes, stack_top) = (binary.code_bytes() as usize, binary.data_at() as usize);
        Self { code_bytes, stack_top }
    }
}

/// A machine's memory with all that changes while it runs.
struct NativeMachine<G: Guard, C> {
    guard: G,
    clock: C,
    memory: G::Memory,
    /// The address of its memory.
    base: usize,
    layout: Layout,
    functions: Vec<(String, u32)>,
    stand: Stand,
    breach: Option<Breach>,
}

/// A host call that a machine makes.
#[derive(Clone, Debug, Default)]
struct Call {
    arguments: [u64; WORDS_MAX],
    /// How many of them it has.
    count: usize,
}

impl<G, C> EngineInstance for NativeMachine<G, C>
where
    G: Guard + Send,
    C: Clock + Send,
{
    fn prepare(&mut self, function: &str) -> bool {
        let found = self.functions.iter().find(|(name, _)| name == function);
        let Some((_, offset)) = found.filter(|_| !self.stand.is_under_way) else { return false };
        let entry = self.base + *offset as usize;
        let stack_top = self.base + self.layout.stack_top;
        self.stand.context = self.guard.enter(entry, 0, stack_top);
        self.stand.is_under_way = true;
        true
    }

    fn run(&mut self, fuel: &mut u64, fuel_per_ms: u32) -> Outcome {
        let paid = self.stand.overspent.min(*fuel);
        self.stand.overspent -= paid;
        *fuel -= paid;
        if *fuel == 0 {
            return Outcome::OutOfFuel;
        }
        if !self.stand.is_under_way {
            return Outcome::Done;
        }
        let began = self.clock.now();
        let microseconds = microseconds_of(*fuel, fuel_per_ms);
        let exit = self.guard.run(&mut self.stand.context, &mut self.memory, microseconds);
        let used = fuel_of(self.clock.now().as_micros() - began.as_micros(), fuel_per_ms);
        let paid = used.min(*fuel);
        *fuel -= paid;
        self.stand.overspent += used - paid;
        let outcome = match exit {
            Exit::Time => Ok(Outcome::OutOfFuel),
            Exit::Call => self.take_call(),
            Exit::Violation(violation) => Err(violation),
        };
        let outcome = outcome.unwrap_or_else(|violation| self.stop(violation));
        if matches!(outcome, Outcome::Done | Outcome::Trap(_)) {
            self.stand.is_under_way = false;
        }
        outcome
    }

    fn host_arguments(&self) -> &[u64] {
        &self.stand.call.arguments[..self.stand.call.count]
    }

    fn finish_host_call(&mut self, results: &[Value]) -> bool {
        if !self.stand.is_under_way || !self.stand.waits {
            return false;
        }
        let results = match results.first() {
            Some(Value::I32(value)) => [*value as usize, 0],
            Some(Value::I64(value)) => [*value as usize, (*value >> 32) as usize],
            _ => [0, 0],
        };
        self.guard.finish_call(&mut self.stand.context, results);
        self.stand.waits = false;
        true
    }

    fn suspend(&self, spare: usize) -> Result<Option<Vec<u8>>, EngineError> {
        let (bytes, code_bytes) = (self.memory.len(), self.layout.code_bytes);
        let place = Place { base: self.base, bytes, code_bytes, firmware: self.guard.firmware() };
        let state = state::write(&place, &self.stand, &self.memory[code_bytes..], spare);
        state.map(Some).ok_or(EngineError::Memory)
    }

    fn breach(&self) -> Option<Breach> {
        self.breach
    }

    fn memory(&self) -> &[u8] {
        &self.memory
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl<G: Guard, C> NativeMachine<G, C> {
    /// The call that the machine has made.
    fn take_call(&mut self) -> Result<Outcome, Violation> {
        let call = self.guard.call(&self.stand.context);
        if call.number == RETURNED {
            return Ok(Outcome::Done);
        }
        let at = self.guard.position(&self.stand.context);
        let none = Violation { cause: Cause::Instruction, address: call.number, at };
        let info = u16::try_from(call.number).ok().and_then(info_of).ok_or(none)?;
        let count: usize = info.parameters.iter().map(|parameter| parameter.kind.slots()).sum();
        self.stand.call.count = count.min(WORDS_MAX);
        let in_registers = if count > ARGUMENTS { ARGUMENTS - 1 } else { count };
        for (word, argument) in
            self.stand.call.arguments.iter_mut().zip(&call.arguments[..in_registers])
        {
            *word = *argument as u64;
        }
        if count > ARGUMENTS {
            let address = call.arguments[ARGUMENTS - 1];
            let mut rest = [0; WORD_BYTES * WORDS_MAX];
            let rest = &mut rest[..WORD_BYTES * (self.stand.call.count - in_registers)];
            let there = address.checked_sub(self.base).and_then(|offset| self.memory.get(offset..));
            let bytes = there.and_then(|memory| memory.get(..rest.len()));
            rest.copy_from_slice(bytes.ok_or(Violation { cause: Cause::Read, address, at })?);
            let (words, _) = rest.as_chunks::<WORD_BYTES>();
            for (word, bytes) in self.stand.call.arguments[in_registers..].iter_mut().zip(words) {
                *word = u64::from(u32::from_le_bytes(*bytes));
            }
        }
        self.translate(info);
        self.stand.waits = true;
        Ok(Outcome::HostCall { function: info.number })
    }

    /// Makes the pointers among the arguments offsets in the machine's memory. Where a range
    /// must not be, it becomes one that is nowhere, as the kernel finds out when it uses it.
    fn translate(&mut self, info: &HostCallInfo) {
        let (base, end) = (self.base, self.memory.len());
        let mut next = 0;
        for parameter in info.parameters {
            let (least, nullable) = match parameter.kind {
                ParameterKind::Word => (None, false),
                ParameterKind::Text | ParameterKind::Bytes => (Some(0), false),
                ParameterKind::Optional => (Some(0), true),
                // The machine itself may not write to its code either.
                ParameterKind::Buffer => (Some(self.layout.code_bytes), false),
            };
            if let (Some(least), Some([pointer, length])) =
                (least, self.stand.call.arguments.get_mut(next..next + 2))
                && !(nullable && *pointer == 0)
            {
                let offset = (*pointer as usize).checked_sub(base);
                *pointer = match offset {
                    // Where nothing is, is anywhere; but null is another thing.
                    _ if *length == 0 => WORD_BYTES as u64,
                    Some(offset) if (least..end).contains(&offset) => offset as u64,
                    _ => NOWHERE,
                };
            }
            next += parameter.kind.slots();
        }
    }

    /// Ends what is under way: the machine has tried what it may not.
    fn stop(&mut self, violation: Violation) -> Outcome {
        let at = violation.at.wrapping_sub(self.base);
        let at = if at < self.layout.code_bytes { at } else { violation.at };
        self.breach = Some(breach(Violation { at, ..violation }));
        Outcome::Trap(Trap { kind: TrapKind::Host, function: 0, offset: at as u32 })
    }
}

/// The host call with that number.
fn info_of(number: u16) -> Option<&'static HostCallInfo> {
    // Most stand at the place of their number.
    let there = TABLE.get(usize::from(number)).filter(|call| call.number == number);
    there.or_else(|| TABLE.iter().find(|call| call.number == number))
}

/// The fuel that so much time is worth.
fn fuel_of(microseconds: u64, fuel_per_ms: u32) -> u64 {
    // In 32 bits where that is enough, as nearly always: this is done at each host call.
    match u32::try_from(microseconds).ok().and_then(|micros| micros.checked_mul(fuel_per_ms)) {
        Some(product) => u64::from(product / 1000),
        None => microseconds.saturating_mul(u64::from(fuel_per_ms)) / 1000,
    }
}

/// The time that `fuel` is worth.
fn microseconds_of(fuel: u64, fuel_per_ms: u32) -> u32 {
    let micros = match u32::try_from(fuel).ok().and_then(|fuel| fuel.checked_mul(1000)) {
        Some(fuel) => fuel / fuel_per_ms,
        None => u32::try_from(fuel.saturating_mul(1000) / u64::from(fuel_per_ms))
            .unwrap_or(SLICE_MICROSECONDS_MAX),
    };
    micros.clamp(1, SLICE_MICROSECONDS_MAX)
}

#[cfg(test)]
mod tests;
