//! Machines at native speed: wasmtime behind the kernel's seam for engines.
//!
//! A call runs as a future that owns its store. The future yields when an interval of fuel is spent
//! and waits in each host call; [`EngineInstance::run`] polls it until either, so that the kernel
//! slices and meters such a machine as any other.
//!
//! A yield doesn't say how much was spent, which a bulk instruction can make more than an interval.
//! So the epoch is advanced at each: where the machine goes on, wasmtime calls back before the
//! bulk instruction is done, the meter is read, and a machine that has overspent yields again until
//! it has paid.
//!
//! wasmtime lends a machine's memory only to the host call that is being made. So what a host call
//! names is copied to a *window*, an array as long as the memory, where the kernel reads and writes
//! it, and copied back when the call goes on. Of the rest of the window nothing is ever read.

#[allow(unsafe_code)] // code that another process has compiled, which nobody can check
mod child;
mod compiler;
mod cost;
mod memory;
mod price;
mod turns;

use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tenure_kernel::{Code, Engine, EngineError, EngineInstance};
use tenure_vm::{Frame, InstanceConfig, Outcome, Trap, TrapKind, Value};
use tenure_wire::host_call::{HostCall, MODULE, TABLE};
use tenure_wire::limits::BUFFER_BYTES_MAX;
use tenure_wire::{CodeKind, Digest, VerifyingKey};
use wasmtime::{
    Caller, Config, Extern, ExternType, FrameInfo, Instance, Linker, Module, Store, UpdateDeadline,
    Val, WasmBacktrace,
};

pub use child::compile_for_a_device;
use compiler::{Compiled, Compiler, Program};
use memory::{MemoryBudget, Window, copy_ranges};
use price::{COPIED_PARTS_PER_BYTE, PARTS_PER_UNIT};

/// The most calls of a trap's that are kept.
const CALLERS_MAX: usize = 16;
/// Parts of units of fuel between two yields.
const INTERVAL_PARTS: u64 = 10_000 * PARTS_PER_UNIT;

/// An engine that compiles modules to the processor's own code. Until a machine asks for it, it takes no memory and no thread.
pub struct NativeSpeed {
    /// Starts the process that compiles.
    compiler: Program,
    started: Option<Started>,
}

/// Wasmtime and the compiler's thread.
struct Started {
    engine: wasmtime::Engine,
    compiler: Compiler,
}

impl NativeSpeed {
    /// An engine whose modules are compiled by the processes that `compiler` names, one for each: they call
    /// [`compile_for_a_device`].
    pub fn new(compiler: impl Fn() -> Command + Send + Sync + 'static) -> Self {
        Self { compiler: Arc::new(compiler), started: None }
    }

    /// The engine, started by the first question; `None` if wasmtime can't compile for this processor, or the
    /// system has no thread left.
    fn started(&mut self) -> Option<&mut Started> {
        if self.started.is_none() {
            self.started = Started::new(self.compiler.clone());
        }
        self.started.as_mut()
    }
}

/// Wasmtime with the settings that the compiler's process and the device share.
fn engine() -> wasmtime::Result<wasmtime::Engine> {
    let mut config = Config::new();
    // The vm has validated each module already, and takes less than wasmtime but for these.
    config.wasm_custom_page_sizes(true).wasm_tail_call(true);
    config.wasm_simd(false).wasm_relaxed_simd(false);
    config.wasm_multi_memory(false).wasm_memory64(false);
    config.consume_fuel(true).operator_cost(price::prices());
    config.epoch_interruption(true);
    wasmtime::Engine::new(&config)
}

impl Started {
    fn new(command: Program) -> Option<Self> {
        let engine = engine().ok()?;
        let compiler = Compiler::start(engine.clone(), command)?;
        Some(Self { engine, compiler })
    }

    /// A store for one machine, whose meter is full.
    fn store(&self, memory_bytes_max: usize, meter: &Arc<Meter>) -> Option<Store<MemoryBudget>> {
        let mut store = Store::new(&self.engine, MemoryBudget::new(memory_bytes_max));
        store.limiter(|budget| budget);
        let meter = meter.clone();
        store.epoch_deadline_callback(move |machine| {
            let overspent = meter.read(machine.get_fuel()?);
            Ok(if overspent { UpdateDeadline::Yield(1) } else { UpdateDeadline::Continue(1) })
        });
        store.set_epoch_deadline(1);
        store.set_fuel(u64::MAX).ok()?;
        store.fuel_async_yield_interval(Some(INTERVAL_PARTS)).ok()?;
        Some(store)
    }
}

impl Engine for NativeSpeed {
    fn kind(&self) -> CodeKind {
        CodeKind::WebAssembly
    }

    fn is_prepared(&mut self, package: &Digest, tenant: &VerifyingKey, code: Code<'_>) -> bool {
        let Code::WebAssembly(wasm) = code else { return true };
        let started = self.started();
        started.is_none_or(|started| started.compiler.is_done(package, tenant, wasm))
    }

    fn start(
        &mut self,
        package: &Digest,
        code: Code<'_>,
        limits: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        let Code::WebAssembly(_) = code else { return Err(EngineError::Module) };
        let started = self.started().ok_or(EngineError::NoCompiler)?;
        let Compiled { module, table_bytes } = started.compiler.module(package)?;
        let (memory_name, memory_bytes) = memory_of(&module)?;
        if memory_bytes.saturating_add(table_bytes) > limits.memory_bytes_max as u64 {
            return Err(EngineError::Memory);
        }
        let meter = Arc::new(Meter::new());
        let store = started.store(limits.memory_bytes_max, &meter).ok_or(EngineError::Module)?;
        let exchange = Arc::new(Mutex::new(Exchange::default()));
        let linker = link(&started.engine, &module, &memory_name.into(), &exchange)?;
        Ok(Box::new(Machine {
            engine: started.engine.clone(),
            resting: Some(Resting { store, instance: None }),
            module,
            linker,
            under_way: None,
            callers: Vec::new(),
            exchange,
            window: Window::default(),
            arguments: None,
            meter,
            parts_owed: 0,
        }))
    }
}

/// The name that a module exports its memory by, and how long that is at first, in bytes.
fn memory_of(module: &Module) -> Result<(String, u64), EngineError> {
    let mut memories = module.exports().filter_map(|export| {
        let ExternType::Memory(memory) = export.ty() else { return None };
        let bytes = memory.minimum().saturating_mul(memory.page_size());
        Some((export.name().to_owned(), bytes))
    });
    // Host calls need the memory, which wasmtime shows only of modules that export it.
    memories.next().ok_or(EngineError::Module)
}

/// The host calls that `module` imports, each of which leaves a note in `exchange` and waits.
fn link(
    engine: &wasmtime::Engine,
    module: &Module,
    memory: &Arc<str>,
    exchange: &Arc<Mutex<Exchange>>,
) -> Result<Linker<MemoryBudget>, EngineError> {
    let mut linker = Linker::new(engine);
    // A module may import one function twice.
    linker.allow_shadowing(true);
    for import in module.imports() {
        let call =
            TABLE.iter().find(|call| import.module() == MODULE && call.name == import.name());
        let (Some(call), ExternType::Func(signature)) = (call, import.ty()) else {
            return Err(EngineError::Module);
        };
        let host = HostFunction {
            number: call.number,
            memory: memory.clone(),
            exchange: exchange.clone(),
        };
        let linked = linker.func_new_async(
            MODULE,
            call.name,
            signature,
            move |caller, parameters, results| {
                Box::new(host.clone().call(caller, parameters, results))
            },
        );
        linked.map_err(|_| EngineError::Module)?;
    }
    Ok(linker)
}

/// The requests and results that the machine and the kernel hand each other.
#[derive(Default)]
struct Exchange {
    /// The host call that was made last, until the kernel has been told of it.
    waiting: Option<Waiting>,
    /// The result, once the kernel has done it.
    results: Option<Vec<Value>>,
    /// The kernel's view of the memory, while the machine runs.
    window: Window,
}

/// A host call that was made.
struct Waiting {
    number: u16,
    arguments: Vec<u64>,
    parts_left: u64,
}

/// No code that holds the lock can fail, so a poisoned one is as good as another.
fn lock(exchange: &Mutex<Exchange>) -> MutexGuard<'_, Exchange> {
    exchange.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A host call as the machine makes it.
#[derive(Clone)]
struct HostFunction {
    number: u16,
    /// The name of the memory that its arguments point into.
    memory: Arc<str>,
    exchange: Arc<Mutex<Exchange>>,
}

impl HostFunction {
    /// Leaves a note of the call and waits for the kernel to do it.
    async fn call(
        self,
        mut caller: Caller<'_, MemoryBudget>,
        parameters: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let arguments: Vec<u64> = parameters.iter().map(slot_of).collect();
        let memory = caller.get_export(&self.memory).and_then(Extern::into_memory);
        let memory = memory.ok_or_else(|| wasmtime::Error::msg("no memory"))?;
        let ranges = ranges_of(self.number, &arguments);
        // There and back.
        let copied = 2 * ranges.iter().map(|range| range.len() as u64).sum::<u64>();
        let parts_left = caller.get_fuel()?.saturating_sub(copied * COPIED_PARTS_PER_BYTE);
        caller.set_fuel(parts_left)?;
        {
            let mut exchange = lock(&self.exchange);
            exchange.window.show(&ranges, memory.data(&caller));
            exchange.waiting = Some(Waiting { number: self.number, arguments, parts_left });
        }
        let values = poll_fn(|_| match lock(&self.exchange).results.take() {
            Some(values) => Poll::Ready(values),
            None => Poll::Pending,
        })
        .await;
        copy_ranges(&ranges, &lock(&self.exchange).window.bytes, memory.data_mut(&mut caller));
        for (result, value) in results.iter_mut().zip(values) {
            *result = val_of(value);
        }
        Ok(())
    }
}

/// The ranges of memory that a call's arguments name, as far as the kernel looks at them.
fn ranges_of(number: u16, arguments: &[u64]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if let Some(call) = HostCall::decode(number, arguments) {
        call.for_each_range(|range| {
            let start = range.pointer() as usize;
            ranges.push(start..start.saturating_add(range.length().min(BUFFER_BYTES_MAX)));
        });
    }
    ranges
}

fn slot_of(value: &Val) -> u64 {
    match value {
        Val::I32(value) => u64::from(*value as u32),
        Val::I64(value) => *value as u64,
        // No host call has other parameters.
        _ => 0,
    }
}

fn val_of(value: Value) -> Val {
    match value {
        Value::I64(value) => Val::I64(value),
        Value::I32(value) => Val::I32(value),
        // No host call has other results.
        _ => Val::I32(0),
    }
}

/// The fuel left in a machine's store, as it was last read and as it was last charged to the machine; in
/// parts of a unit, counted down.
struct Meter {
    /// The count when it was last read in the middle of a call.
    seen: AtomicU64,
    /// The count when use was last put down to the machine.
    counted: AtomicU64,
    /// Whether the machine yields because more is seen than was counted.
    overspent: AtomicBool,
}

impl Meter {
    fn new() -> Self {
        let (seen, counted) = (AtomicU64::new(u64::MAX), AtomicU64::new(u64::MAX));
        Self { seen, counted, overspent: AtomicBool::new(false) }
    }

    /// Notes what the store shows; returns whether the machine has to pay before it goes on.
    fn read(&self, parts_left: u64) -> bool {
        self.seen.store(parts_left, Ordering::Relaxed);
        let uncounted = self.counted.load(Ordering::Relaxed).saturating_sub(parts_left);
        let overspent = uncounted > INTERVAL_PARTS;
        self.overspent.store(overspent, Ordering::Relaxed);
        overspent
    }

    /// The rest after a yield, as far as it is known.
    fn left_after_yield(&self) -> u64 {
        let by_interval = !self.overspent.swap(false, Ordering::Relaxed);
        let spent = if by_interval { INTERVAL_PARTS } else { 0 };
        let counted = self.counted.load(Ordering::Relaxed).saturating_sub(spent);
        counted.min(self.seen.load(Ordering::Relaxed))
    }

    /// Counts all that was used until the store showed `parts_left`; returns what of it wasn't yet.
    fn count(&self, parts_left: u64) -> u64 {
        let before = self.counted.fetch_min(parts_left, Ordering::Relaxed);
        before.saturating_sub(parts_left)
    }
}

/// A machine between two calls.
struct Resting {
    store: Store<MemoryBudget>,
    /// Absent until the first call, which also runs the module's start function.
    instance: Option<Instance>,
}

type Call = Pin<Box<dyn Future<Output = (Resting, wasmtime::Result<()>)> + Send>>;

/// A machine's module with all that changes while it runs.
struct Machine {
    engine: wasmtime::Engine,
    module: Module,
    linker: Linker<MemoryBudget>,
    resting: Option<Resting>,
    under_way: Option<Call>,
    /// The calls that led to its last trap, without the one that trapped.
    callers: Vec<Frame>,
    exchange: Arc<Mutex<Exchange>>,
    window: Window,
    /// The arguments of the host call that it waits in.
    arguments: Option<Vec<u64>>,
    meter: Arc<Meter>,
    /// Use that isn't paid yet, in parts.
    parts_owed: u64,
}

impl Machine {
    /// Pays from `fuel` what is owed; returns whether that covered it and some is left.
    fn pay(&mut self, fuel: &mut u64) -> bool {
        let paid = (self.parts_owed / PARTS_PER_UNIT).min(*fuel);
        self.parts_owed -= paid * PARTS_PER_UNIT;
        *fuel -= paid;
        self.parts_owed < PARTS_PER_UNIT && *fuel > 0
    }

    /// Takes from `fuel` what was used until the store's meter showed `parts_left`.
    fn charge(&mut self, fuel: &mut u64, parts_left: u64) {
        self.parts_owed += self.meter.count(parts_left);
        self.pay(fuel);
    }

    /// Takes from `fuel` what a yield shows to be used: an interval, unless the machine yielded for what
    /// it saw on the meter.
    fn charge_for_yield(&mut self, fuel: &mut u64) {
        let parts_left = self.meter.left_after_yield();
        self.charge(fuel, parts_left);
        self.engine.increment_epoch();
    }

    /// Lets the call go on until it yields, waits or ends.
    fn poll(&mut self, call: &mut Call) -> Poll<(Resting, wasmtime::Result<()>)> {
        core::mem::swap(&mut self.window, &mut lock(&self.exchange).window);
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        core::mem::swap(&mut self.window, &mut lock(&self.exchange).window);
        polled
    }
}

impl EngineInstance for Machine {
    fn prepare(&mut self, function: &str) -> bool {
        let Some(ExternType::Func(signature)) = self.module.get_export(function) else {
            return false;
        };
        if signature.params().len() + signature.results().len() > 0 {
            return false;
        }
        let Some(resting) = self.resting.take() else { return false };
        let (module, linker) = (self.module.clone(), self.linker.clone());
        self.under_way = Some(Box::pin(call(resting, module, linker, function.to_owned())));
        true
    }

    fn run(&mut self, fuel: &mut u64, _: u32) -> Outcome {
        let Some(mut call) = self.under_way.take() else { return Outcome::Done };
        while self.pay(fuel) {
            match self.poll(&mut call) {
                Poll::Ready((resting, outcome)) => {
                    let parts_left = resting.store.get_fuel().unwrap_or(0);
                    self.resting = Some(resting);
                    self.charge(fuel, parts_left);
                    self.callers = outcome.as_ref().err().map(callers_of).unwrap_or_default();
                    return outcome
                        .map_or_else(|error| Outcome::Trap(trap_of(&error)), |()| Outcome::Done);
                }
                Poll::Pending => {
                    let Some(waiting) = lock(&self.exchange).waiting.take() else {
                        self.charge_for_yield(fuel);
                        continue;
                    };
                    self.charge(fuel, waiting.parts_left);
                    self.under_way = Some(call);
                    let function = waiting.number;
                    self.arguments = Some(waiting.arguments);
                    return Outcome::HostCall { function };
                }
            }
        }
        self.under_way = Some(call);
        Outcome::OutOfFuel
    }

    fn host_arguments(&self) -> &[u64] {
        self.arguments.as_deref().unwrap_or_default()
    }

    fn finish_host_call(&mut self, results: &[Value]) -> bool {
        let waited = self.arguments.take().is_some();
        if waited {
            lock(&self.exchange).results = Some(results.to_vec());
        }
        waited
    }

    fn callers(&self) -> &[Frame] {
        &self.callers
    }

    fn memory(&self) -> &[u8] {
        &self.window.bytes
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.window.bytes
    }
}

/// One call of a machine's function, and of its module's start function before the first.
async fn call(
    mut resting: Resting,
    module: Module,
    linker: Linker<MemoryBudget>,
    function: String,
) -> (Resting, wasmtime::Result<()>) {
    let outcome = async {
        let instance = match resting.instance {
            Some(instance) => instance,
            None => linker.instantiate_async(&mut resting.store, &module).await?,
        };
        resting.instance = Some(instance);
        let function = instance.get_typed_func::<(), ()>(&mut resting.store, &function)?;
        function.call_async(&mut resting.store, ()).await
    }
    .await;
    (resting, outcome)
}

/// Why a machine stopped, in the vm's words.
fn trap_of(error: &wasmtime::Error) -> Trap {
    use wasmtime::Trap as Cause;
    let kind = match error.downcast_ref() {
        Some(Cause::UnreachableCodeReached) => TrapKind::Unreachable,
        Some(Cause::MemoryOutOfBounds) => TrapKind::OutOfBounds,
        Some(Cause::IntegerDivisionByZero) => TrapKind::DivideByZero,
        Some(Cause::IntegerOverflow) => TrapKind::IntegerOverflow,
        Some(Cause::BadConversionToInteger) => TrapKind::InvalidConversion,
        Some(Cause::StackOverflow) => TrapKind::StackOverflow,
        Some(Cause::TableOutOfBounds) => TrapKind::TableOutOfBounds,
        Some(Cause::IndirectCallToNull) => TrapKind::UninitializedElement,
        Some(Cause::BadSignature) => TrapKind::SignatureMismatch,
        Some(_) => TrapKind::Host,
        // Not the program's doing: its memory or tables could not be made.
        None => TrapKind::OutOfMemory,
    };
    let frame = error.downcast_ref::<WasmBacktrace>().and_then(|trace| trace.frames().first());
    let Frame { function, offset } = frame.map_or(Frame { function: 0, offset: 0 }, place_of);
    Trap { kind, function, offset }
}

/// The calls that led to where a machine stopped, without the innermost one.
fn callers_of(error: &wasmtime::Error) -> Vec<Frame> {
    let trace = error.downcast_ref::<WasmBacktrace>().map(WasmBacktrace::frames);
    trace.unwrap_or_default().iter().skip(1).take(CALLERS_MAX).map(place_of).collect()
}

fn place_of(frame: &FrameInfo) -> Frame {
    let offset = frame.module_offset().unwrap_or(0);
    Frame { function: frame.func_index(), offset: u32::try_from(offset).unwrap_or(u32::MAX) }
}
