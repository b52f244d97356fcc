//! Machines at native speed: wasmtime behind the kernel's seam for engines.
//!
//! A call runs as a future that owns its store. The future yields when an interval of fuel is spent
//! and waits in each host call; [`EngineInstance::run`] polls it until either, so that the kernel
//! slices and meters such a machine as any other.
//!
//! wasmtime lends a machine's memory only to the host call that is being made. So what a host call
//! names is copied to a *window*, an array as long as the memory, where the kernel reads and writes
//! it, and copied back when the call goes on. Of the rest of the window nothing is ever read.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Range;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tenure_kernel::{Code, Engine, EngineError, EngineInstance};
use tenure_vm::{InstanceConfig, Outcome, Trap, TrapKind, Value};
use tenure_wire::host_call::{HostCall, MODULE, TABLE};
use tenure_wire::{CodeKind, Digest};
use wasmtime::{
    Caller, Config, Extern, ExternType, Instance, Linker, Module, Store, StoreLimits,
    StoreLimitsBuilder, Val, WasmBacktrace,
};

/// Fuel between two looks at the meter, one unit a wasm instruction. A slice overspends by less than
/// this, which the next one pays.
const INTERVAL_FUEL: u64 = 10_000;
/// The most compiled modules that are kept for a machine's next start.
const COMPILED_MAX: usize = 64;
/// How many elements a table may have for each byte of memory budget.
const BYTES_PER_ELEMENT: usize = 8;

/// An engine that compiles modules to the processor's own code.
pub struct NativeSpeed {
    engine: wasmtime::Engine,
    compiled: BTreeMap<[u8; 32], Module>,
}

impl NativeSpeed {
    /// An engine; `None` if wasmtime can't compile for this processor.
    pub fn new() -> Option<Self> {
        let mut config = Config::new();
        // The vm has validated each module already, and takes less than wasmtime but for these.
        config.wasm_custom_page_sizes(true).wasm_tail_call(true);
        config.wasm_simd(false).wasm_relaxed_simd(false);
        config.wasm_multi_memory(false).wasm_memory64(false);
        config.consume_fuel(true);
        let engine = wasmtime::Engine::new(&config).ok()?;
        Some(Self { engine, compiled: BTreeMap::new() })
    }

    fn compile(&mut self, package: &Digest, wasm: &[u8]) -> Result<Module, EngineError> {
        if let Some(module) = self.compiled.get(&package.0) {
            return Ok(module.clone());
        }
        let module = Module::new(&self.engine, wasm).map_err(|_| EngineError::Module)?;
        if self.compiled.len() >= COMPILED_MAX {
            self.compiled.pop_first();
        }
        self.compiled.insert(package.0, module.clone());
        Ok(module)
    }
}

impl Engine for NativeSpeed {
    fn kind(&self) -> CodeKind {
        CodeKind::WebAssembly
    }

    fn start(
        &mut self,
        package: &Digest,
        code: Code<'_>,
        limits: &InstanceConfig,
    ) -> Result<Box<dyn EngineInstance>, EngineError> {
        let Code::WebAssembly(wasm) = code else { return Err(EngineError::Module) };
        let module = self.compile(package, wasm)?;
        let memory_bytes_max = limits.memory_bytes_max;
        let (memory_name, memory_bytes) = memory_of(&module)?;
        if memory_bytes > memory_bytes_max as u64 {
            return Err(EngineError::Memory);
        }
        let limits = StoreLimitsBuilder::new()
            .memory_size(memory_bytes_max)
            .table_elements(memory_bytes_max / BYTES_PER_ELEMENT)
            .instances(1)
            .memories(1)
            .build();
        let mut store = Store::new(&self.engine, limits);
        store.limiter(|limits| limits);
        let exchange = Arc::new(Mutex::new(Exchange::default()));
        let linker = link(&self.engine, &module, &memory_name.into(), &exchange)?;
        let metered = store
            .set_fuel(u64::MAX)
            .and_then(|()| store.fuel_async_yield_interval(Some(INTERVAL_FUEL)));
        metered.map_err(|_| EngineError::Module)?;
        Ok(Box::new(Compiled {
            resting: Some(Resting { store, instance: None }),
            module,
            linker,
            under_way: None,
            exchange,
            window: Vec::new(),
            arguments: None,
            fuel_left: u64::MAX,
            overspent: 0,
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
) -> Result<Linker<StoreLimits>, EngineError> {
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

/// What the machine and the kernel hand each other.
#[derive(Default)]
struct Exchange {
    /// The host call that was made last, until the kernel has been told of it.
    waiting: Option<Waiting>,
    /// What it returns, once the kernel has done it.
    results: Option<Vec<Value>>,
    /// What the kernel sees of the memory, while the machine runs.
    window: Vec<u8>,
}

/// A host call that was made.
struct Waiting {
    number: u16,
    arguments: Vec<u64>,
    fuel_left: u64,
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
        mut caller: Caller<'_, StoreLimits>,
        parameters: &[Val],
        results: &mut [Val],
    ) -> wasmtime::Result<()> {
        let arguments: Vec<u64> = parameters.iter().map(slot_of).collect();
        let memory = caller.get_export(&self.memory).and_then(Extern::into_memory);
        let memory = memory.ok_or_else(|| wasmtime::Error::msg("no memory"))?;
        let ranges = ranges_of(self.number, &arguments);
        {
            let fuel_left = caller.get_fuel()?;
            let mut exchange = lock(&self.exchange);
            let bytes = memory.data(&caller);
            exchange.window.resize(bytes.len(), 0);
            copy_ranges(&ranges, bytes, &mut exchange.window);
            exchange.waiting = Some(Waiting { number: self.number, arguments, fuel_left });
        }
        let values = poll_fn(|_| match lock(&self.exchange).results.take() {
            Some(values) => Poll::Ready(values),
            None => Poll::Pending,
        })
        .await;
        copy_ranges(&ranges, &lock(&self.exchange).window, memory.data_mut(&mut caller));
        for (result, value) in results.iter_mut().zip(values) {
            *result = val_of(value);
        }
        Ok(())
    }
}

/// The ranges of memory that a call's arguments name.
fn ranges_of(number: u16, arguments: &[u64]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    if let Some(call) = HostCall::decode(number, arguments) {
        call.for_each_range(|range| {
            let start = range.pointer() as usize;
            ranges.push(start..start.saturating_add(range.length()));
        });
    }
    ranges
}

/// Copies what of `ranges` lies in both.
fn copy_ranges(ranges: &[Range<usize>], from: &[u8], to: &mut [u8]) {
    for range in ranges {
        if let (Some(from), Some(to)) = (from.get(range.clone()), to.get_mut(range.clone())) {
            to.copy_from_slice(from);
        }
    }
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

/// A machine between two calls.
struct Resting {
    store: Store<StoreLimits>,
    /// Absent until the first call, which also runs the module's start function.
    instance: Option<Instance>,
}

type Call = Pin<Box<dyn Future<Output = (Resting, wasmtime::Result<()>)> + Send>>;

/// A machine's module with all that changes while it runs.
struct Compiled {
    module: Module,
    linker: Linker<StoreLimits>,
    resting: Option<Resting>,
    under_way: Option<Call>,
    exchange: Arc<Mutex<Exchange>>,
    window: Vec<u8>,
    /// The arguments of the host call that it waits in.
    arguments: Option<Vec<u64>>,
    /// What the store's meter shows, as far as it was read.
    fuel_left: u64,
    /// What was used beyond the fuel that was given.
    overspent: u64,
}

impl Compiled {
    /// Takes what was overspent before from `fuel`; gives whether that covered it.
    fn pay(&mut self, fuel: &mut u64) -> bool {
        let paid = self.overspent.min(*fuel);
        self.overspent -= paid;
        *fuel -= paid;
        self.overspent == 0 && *fuel > 0
    }

    /// Takes from `fuel` what the meter shows to be used since it was last read.
    fn read_meter(&mut self, fuel: &mut u64, fuel_left: u64) {
        self.overspent += self.fuel_left.saturating_sub(fuel_left);
        self.fuel_left = fuel_left;
        self.pay(fuel);
    }

    /// Lets the call go on until it yields, waits or ends.
    fn poll(&mut self, call: &mut Call) -> Poll<(Resting, wasmtime::Result<()>)> {
        core::mem::swap(&mut self.window, &mut lock(&self.exchange).window);
        let polled = call.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        core::mem::swap(&mut self.window, &mut lock(&self.exchange).window);
        polled
    }
}

impl EngineInstance for Compiled {
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
                    let fuel_left = resting.store.get_fuel().unwrap_or(self.fuel_left);
                    self.resting = Some(resting);
                    self.read_meter(fuel, fuel_left);
                    return outcome
                        .map_or_else(|error| Outcome::Trap(trap_of(&error)), |()| Outcome::Done);
                }
                Poll::Pending => {
                    let Some(waiting) = lock(&self.exchange).waiting.take() else {
                        self.read_meter(fuel, self.fuel_left.saturating_sub(INTERVAL_FUEL));
                        continue;
                    };
                    self.read_meter(fuel, waiting.fuel_left);
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

    fn memory(&self) -> &[u8] {
        &self.window
    }

    fn memory_mut(&mut self) -> &mut [u8] {
        &mut self.window
    }
}

/// One call of a machine's function, and of its module's start function before the first.
async fn call(
    mut resting: Resting,
    module: Module,
    linker: Linker<StoreLimits>,
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
    let offset = frame.and_then(|frame| frame.module_offset()).unwrap_or(0);
    Trap {
        kind,
        function: frame.map_or(0, |frame| frame.func_index()),
        offset: u32::try_from(offset).unwrap_or(u32::MAX),
    }
}
