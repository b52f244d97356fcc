//! A pretended device on another engine than ours: enough host calls to run one machine.

use std::collections::BTreeMap;

use tenure_package::{CodeKind, Package};
use tenure_wire::host_call::{HostCall, HostError, TABLE, WasmType};
use tenure_wire::limits::VALUE_BYTES_MAX;
use wasmi::{Caller, Config, Engine, Extern, Func, FuncType, Instance, Linker, Module, Store, Val};
use wasmi::{Memory, StoreLimits, StoreLimitsBuilder, ValType};

/// The outcome of a call.
pub(crate) type Answer = Result<Option<Vec<u8>>, HostError>;

/// The machine's surroundings, and its traces in them.
#[derive(Default)]
pub(crate) struct World {
    pub tree: BTreeMap<String, Vec<u8>>,
    pub log: Vec<String>,
    pub parameter: Option<Vec<u8>>,
    pub reply: Option<Vec<u8>>,
    pub queued: Vec<Queued>,
    /// The outcomes of calls, by target and function.
    pub callees: BTreeMap<(String, String), Answer>,
    pub local_peers: Vec<[u8; 32]>,
    /// These are found only after the machine has slept a little.
    pub remote_peers: Vec<[u8; 32]>,
    /// How often the machine asked for peers: each time costs it a message.
    pub peers_asked: usize,
    pub slept_ms: u32,
    /// How many calls the queue holds; by default any number.
    pub queue_length: Option<usize>,
    /// Functions that can't be queued.
    pub refused: Vec<String>,
    /// Whether the call that is served fails.
    pub failed: bool,
    /// The tree after each write to it, if somebody wants to know.
    pub past: Option<Vec<BTreeMap<String, Vec<u8>>>>,
    result: Vec<u8>,
    limits: StoreLimits,
}

/// A call that the machine queued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queued {
    pub target: String,
    pub function: String,
    pub parameter: Option<Vec<u8>>,
    pub on_success: String,
    pub on_failure: String,
}

/// A device with one machine.
pub(crate) struct Device {
    store: Store<World>,
    instance: Instance,
}

impl Device {
    /// A machine of `package`, started.
    pub(crate) fn start(package: &[u8]) -> Self {
        Self::with(package, |_| ())
    }

    /// As [`Self::start`], in a world that `prepare` makes.
    pub(crate) fn with(package: &[u8], prepare: impl FnOnce(&mut World)) -> Self {
        let package = Package::parse(package).unwrap();
        package.verify().unwrap();
        validate(package.code(CodeKind::WebAssembly).unwrap());
        let mut config = Config::default();
        config.wasm_custom_page_sizes(true);
        let engine = Engine::new(&config);
        let module = Module::new(&engine, package.code(CodeKind::WebAssembly).unwrap()).unwrap();
        let mut world = World::default();
        for entry in package.tree().entries() {
            world.tree.insert(entry.path.into(), entry.value.into());
        }
        prepare(&mut world);
        let memory_bytes = package.manifest().budget.memory_bytes as usize;
        world.limits = StoreLimitsBuilder::new().memory_size(memory_bytes).build();
        let mut store = Store::new(&engine, world);
        store.limiter(|world| &mut world.limits);
        let mut linker = Linker::new(&engine);
        for call in TABLE {
            let value_type = |wasm_type| match wasm_type {
                WasmType::I32 => ValType::I32,
                WasmType::I64 => ValType::I64,
            };
            let signature = FuncType::new(
                call.wasm_parameters().map(value_type).collect::<Vec<_>>(),
                call.wasm_result().map(value_type),
            );
            let function = Func::new(&mut store, signature, move |caller, slots, results| {
                serve(caller, call.number, slots, results)
            });
            linker.define("tenure", call.name, function).unwrap();
        }
        let instance = linker.instantiate_and_start(&mut store, &module).unwrap();
        let mut device = Self { store, instance };
        if package.manifest().exports.iter().any(|name| name == "entry") {
            device.call("entry", None).unwrap();
        }
        device
    }

    pub(crate) fn world(&mut self) -> &mut World {
        self.store.data_mut()
    }

    /// Calls a function; an error is a trap, or what the machine said when it failed the call.
    pub(crate) fn call(
        &mut self,
        name: &str,
        parameter: Option<&str>,
    ) -> Result<Option<String>, String> {
        self.world().parameter = parameter.map(|text| text.as_bytes().to_vec());
        self.call_again(name)
    }

    /// Calls a function with the parameter that is there.
    pub(crate) fn call_again(&mut self, name: &str) -> Result<Option<String>, String> {
        self.world().reply = None;
        self.world().failed = false;
        let function = self.instance.get_typed_func::<(), ()>(&self.store, name).unwrap();
        function.call(&mut self.store, ()).map_err(|error| error.to_string())?;
        if self.world().failed {
            return Err(self.world().log.pop().unwrap());
        }
        Ok(self.world().reply.take().map(|bytes| String::from_utf8(bytes).unwrap()))
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.instance.get_memory(&self.store, "memory").unwrap().data_size(&self.store)
    }
}

/// Checks a module against what the vm takes.
fn validate(code: &[u8]) {
    use wasmparser::WasmFeatures as Features;
    let features = Features::MVP
        | Features::SIGN_EXTENSION
        | Features::SATURATING_FLOAT_TO_INT
        | Features::BULK_MEMORY
        | Features::MULTI_VALUE
        | Features::MUTABLE_GLOBAL
        | Features::REFERENCE_TYPES
        | Features::CUSTOM_PAGE_SIZES;
    wasmparser::Validator::new_with_features(features).validate_all(code).unwrap();
}

fn serve(
    mut caller: Caller<'_, World>,
    number: u16,
    slots: &[Val],
    results: &mut [Val],
) -> Result<(), wasmi::Error> {
    let slots: Vec<u64> = slots.iter().map(|slot| slot.i32().unwrap() as u32 as u64).collect();
    let call = HostCall::decode(number, &slots).unwrap();
    let memory = caller.get_export("memory").and_then(Extern::into_memory).unwrap();
    let outcome = answer(&mut caller, memory, call)?;
    if let Some(result) = results.first_mut() {
        *result = match outcome {
            Outcome::Status(status) => {
                Val::I32(status.map_or_else(|error| error.code(), |length| length as i32))
            }
            Outcome::Time(time) => Val::I64(time),
        };
    }
    Ok(())
}

enum Outcome {
    Status(Result<usize, HostError>),
    Time(i64),
}

fn answer(
    caller: &mut Caller<'_, World>,
    memory: Memory,
    call: HostCall,
) -> Result<Outcome, wasmi::Error> {
    let (bytes, world) = memory.data_and_store_mut(caller);
    macro_rules! text {
        ($text:expr) => {
            $text.read(bytes, usize::MAX).unwrap().to_owned()
        };
    }
    macro_rules! give {
        ($into:expr, $value:expr) => {{
            let value: &[u8] = $value;
            $into.write(bytes, value).unwrap();
            Ok(value.len())
        }};
    }
    let status = match call {
        HostCall::log { message, .. } => {
            world.log.push(text!(message));
            Ok(0)
        }
        HostCall::fail {} => {
            world.failed = true;
            Ok(0)
        }
        HostCall::abort { message } => return Err(wasmi::Error::new(text!(message))),
        HostCall::uptime_us {} => return Ok(Outcome::Time(1_234_567)),
        HostCall::unix_time_s {} => return Ok(Outcome::Time(-1)),
        HostCall::parameter_length {} => {
            world.parameter.as_ref().map(Vec::len).ok_or(HostError::NotFound)
        }
        HostCall::parameter_read { offset, into } => match &world.parameter {
            Some(parameter) => {
                let rest = &parameter[offset as usize..];
                give!(into, &rest[..rest.len().min(into.capacity())])
            }
            None => Err(HostError::NotFound),
        },
        HostCall::reply { value } => {
            world.reply = value.map(|value| value.read(bytes).unwrap().to_vec());
            Ok(0)
        }
        HostCall::tree_set { path, value, .. } => {
            let value = value.read(bytes).unwrap().to_vec();
            if value.len() > VALUE_BYTES_MAX {
                return Ok(Outcome::Status(Err(HostError::TooLong)));
            }
            world.tree.insert(text!(path), value);
            world.note_tree();
            Ok(0)
        }
        HostCall::tree_get { path, into } => {
            match world.tree.get(path.read(bytes, usize::MAX).unwrap()) {
                Some(value) => give!(into, value),
                None => Err(HostError::NotFound),
            }
        }
        HostCall::tree_delete { path } => Ok(world.delete(&text!(path))),
        HostCall::tree_list { path, into } => give!(into, &world.children(&text!(path))),
        HostCall::call { target, function, .. } => {
            let called = world.callees.get(&(text!(target), text!(function)));
            match called.cloned().unwrap_or(Err(HostError::NotFound)) {
                Ok(Some(result)) => {
                    world.result = result;
                    Ok(world.result.len())
                }
                Ok(None) => Err(HostError::Null),
                Err(error) => Err(error),
            }
        }
        HostCall::result_read { offset, into } => give!(into, &world.result[offset as usize..]),
        HostCall::queue { target, function, parameter, on_success, on_failure, .. } => {
            let function = text!(function);
            if world.queue_left() == 0 {
                return Ok(Outcome::Status(Err(HostError::QueueBudget)));
            }
            if world.refused.contains(&function) {
                return Ok(Outcome::Status(Err(HostError::Denied)));
            }
            world.queued.push(Queued {
                target: text!(target),
                function,
                parameter: parameter.map(|value| value.read(bytes).unwrap().to_vec()),
                on_success: text!(on_success),
                on_failure: text!(on_failure),
            });
            Ok(world.queued.len())
        }
        HostCall::budget_left { .. } => Ok(world.queue_left()),
        HostCall::sleep_ms { duration_ms } => {
            world.slept_ms += duration_ms;
            Ok(0)
        }
        HostCall::peers { which, into } => {
            world.peers_asked += 1;
            give!(into, &world.peers(which))
        }
        HostCall::public_key { into } | HostCall::caller { into } => give!(into, &[7; 32]),
        HostCall::random { into } => give!(into, &vec![4; into.capacity()]),
        HostCall::resolve { .. } => Err(HostError::NotFound),
        HostCall::yield_now {} => Ok(0),
        #[allow(unreachable_patterns, reason = "the table may grow")]
        _ => Err(HostError::Denied),
    };
    Ok(Outcome::Status(status))
}

impl World {
    /// Deletes what is at and below `path`, one value after the other.
    fn delete(&mut self, path: &str) -> usize {
        let below = format!("{path}.");
        let is_it = |key: &&String| *key == path || key.starts_with(&below);
        let keys: Vec<String> = self.tree.keys().filter(is_it).cloned().collect();
        for key in &keys {
            self.tree.remove(key);
            self.note_tree();
        }
        keys.len()
    }

    fn note_tree(&mut self) {
        if let Some(past) = &mut self.past {
            past.push(self.tree.clone());
        }
    }

    fn queue_left(&self) -> usize {
        let length = self.queue_length.unwrap_or(i32::MAX as usize);
        length.saturating_sub(self.queued.len())
    }

    fn children(&self, path: &str) -> Vec<u8> {
        let below = if path.is_empty() { String::new() } else { format!("{path}.") };
        let mut names: Vec<&str> = self
            .tree
            .keys()
            .filter_map(|key| key.strip_prefix(&below)?.split('.').next())
            .collect();
        names.dedup();
        names.iter().flat_map(|name| name.bytes().chain([0])).collect()
    }

    fn peers(&self, which: u32) -> Vec<u8> {
        let remote = if self.slept_ms > 0 { self.remote_peers.as_slice() } else { &[] };
        let local = self.local_peers.iter().filter(|_| which & 1 != 0);
        local.chain(remote.iter().filter(|_| which & 2 != 0)).flatten().copied().collect()
    }
}
