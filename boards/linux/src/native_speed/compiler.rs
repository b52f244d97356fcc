//! The compiler: a thread that hands one module after the other to a process, so that no tenant's module holds up the device.
//!
//! Invariants:
//! - A module whose functions are too long or too much effort, or which is that itself, never reaches the compiler, and the
//!   process that compiles the others has limits: [`super::cost`], [`super::child`].
//! - Tenants have turns, and each its share of the places: nobody's module waits for all of somebody else's.

use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tenure_kernel::EngineError;
use tenure_wire::{Digest, VerifyingKey};
use wasmparser::{Parser, Payload, TypeRef};
use wasmtime::Module;

use super::child;
use super::cost::{Arity, Effort};
use super::memory::ELEMENT_BYTES;
use super::turns::{Tenant, Turns};

/// The longest function that is compiled, in bytes of wasm: the register allocator's time grows
/// faster than a function's length.
const FUNCTION_BYTES_MAX: usize = 16 * 1024;
/// The longest module that is compiled, in bytes of wasm.
pub(super) const MODULE_BYTES_MAX: usize = 512 * 1024;
/// The most modules that are remembered, compiled or refused.
const MODULES_MAX: usize = 64;

/// A module that can be started.
#[derive(Clone)]
pub(super) struct Compiled {
    pub(super) module: Module,
    /// Bytes that its tables take when it starts.
    pub(super) table_bytes: u64,
}

/// The fate of a module.
#[derive(Clone)]
enum Progress {
    Compiling,
    Done(Result<Compiled, EngineError>),
}

/// A module that is remembered.
struct Known {
    tenant: Tenant,
    progress: Progress,
}

struct Job {
    package: Digest,
    wasm: Vec<u8>,
    table_bytes: u64,
}

/// The findings of a look at a module before it is compiled.
#[derive(Clone, Copy, Debug)]
struct LookedAt {
    /// Bytes that its tables take when it starts.
    table_bytes: u64,
    /// The effort that it is to the compiler.
    effort: u64,
}

/// The state that the device and the compiler's thread share.
#[derive(Default)]
struct Shared {
    modules: BTreeMap<[u8; 32], Known>,
    /// The order in which they came.
    order: Vec<[u8; 32]>,
    turns: Turns<Job>,
    /// Whether the device has ended.
    ended: bool,
}

/// How the process is started that compiles.
pub(super) type Program = Arc<dyn Fn() -> Command + Send + Sync>;

/// The state that both have, and the bell by which the device wakes the thread.
type Office = (Mutex<Shared>, Condvar);

/// Compiles modules, one after the other.
pub(super) struct Compiler {
    office: Arc<Office>,
}

impl Compiler {
    /// Starts the compiler's thread; `None` if the system has none left. `command` is the process that compiles.
    pub(super) fn start(engine: wasmtime::Engine, command: Program) -> Option<Self> {
        let office = Arc::<Office>::default();
        let of_thread = office.clone();
        let thread = thread::Builder::new().name("compiler".to_owned());
        thread.spawn(move || work(&engine, &of_thread, &command)).ok()?;
        Some(Self { office })
    }

    /// Whether [`Compiler::module`] has an answer that stays; begins to compile the module if need be.
    pub(super) fn is_done(&mut self, package: &Digest, tenant: &VerifyingKey, wasm: &[u8]) -> bool {
        let (shared, bell) = &*self.office;
        let mut shared = lock(shared);
        if let Some(known) = shared.modules.get(&package.0) {
            return matches!(known.progress, Progress::Done(_));
        }
        if shared.order.len() >= MODULES_MAX && !shared.make_room(&tenant.0) {
            return false;
        }
        let progress = match check(wasm) {
            Err(error) => Progress::Done(Err(error)),
            Ok(LookedAt { table_bytes, effort }) => {
                let job = Job { package: *package, wasm: wasm.to_vec(), table_bytes };
                shared.turns.push(tenant.0, effort, job);
                bell.notify_one();
                Progress::Compiling
            }
        };
        let done = matches!(progress, Progress::Done(_));
        shared.modules.insert(package.0, Known { tenant: tenant.0, progress });
        shared.order.push(package.0);
        done
    }

    /// The compiled module.
    ///
    /// # Errors
    /// [`EngineError::Compiling`] as long as it isn't done; the others say why it never will be.
    pub(super) fn module(&self, package: &Digest) -> Result<Compiled, EngineError> {
        match lock(&self.office.0).modules.get(&package.0).map(|known| &known.progress) {
            Some(Progress::Done(result)) => result.clone(),
            _ => Err(EngineError::Compiling),
        }
    }
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let (shared, bell) = &*self.office;
        lock(shared).ended = true;
        bell.notify_one();
    }
}

impl Shared {
    /// Forgets a module of the tenant who has the most, so that `tenant` has a place; `false` if that is the same one, and
    /// all that it has is still to be compiled.
    fn make_room(&mut self, tenant: &Tenant) -> bool {
        let places = |of: &Tenant| self.places(of).count();
        // Of several who have as many it is the one who asks.
        let tenants = self.order.iter().map(|digest| self.modules[digest].tenant);
        let most = tenants.max_by_key(|of| (places(of), of == tenant));
        let Some(most) = most else { return false };
        let is_done =
            |digest: &[u8; 32]| matches!(self.modules[digest].progress, Progress::Done(_));
        let oldest = self.places(&most).find(|at| is_done(&self.order[*at]));
        let forgotten = match oldest {
            Some(at) => self.order.remove(at),
            None if most == *tenant => return false,
            None => {
                // The one that is being compiled waits no longer, and stays.
                let Some(job) = self.turns.withdraw(&most) else { return false };
                self.order.retain(|digest| *digest != job.package.0);
                job.package.0
            }
        };
        self.modules.remove(&forgotten);
        true
    }

    /// The modules of a tenant, by their places in the order.
    fn places(&self, tenant: &Tenant) -> impl Iterator<Item = usize> {
        let is_its = move |digest: &[u8; 32]| self.modules[digest].tenant == *tenant;
        (0..self.order.len()).filter(move |at| is_its(&self.order[*at]))
    }
}

/// No code that holds the lock can fail, so a poisoned one is as good as another.
fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Checks that a module may be given to the compiler.
fn check(wasm: &[u8]) -> Result<LookedAt, EngineError> {
    if wasm.len() > MODULE_BYTES_MAX {
        return Err(EngineError::TooLong);
    }
    let (mut table_bytes, mut effort) = (0_u64, Effort::default());
    for payload in Parser::new(0).parse_all(wasm) {
        match payload.map_err(|_| EngineError::Module)? {
            Payload::CodeSectionEntry(body) if body.range().len() > FUNCTION_BYTES_MAX => {
                return Err(EngineError::TooLong);
            }
            Payload::CodeSectionEntry(body) => {
                effort.add(&body).map_err(|_| EngineError::TooLong)?;
            }
            Payload::TypeSection(types) => {
                for kind in types.into_iter_err_on_gc_types() {
                    let kind = kind.map_err(|_| EngineError::Module)?;
                    let (parameters, results) = (kind.params().len(), kind.results().len());
                    let arity = Arity { parameters: parameters as u64, results: results as u64 };
                    effort.types.push(arity);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import.map_err(|_| EngineError::Module)?;
                    if let TypeRef::Func(kind) = import.ty {
                        effort.functions.push(kind);
                        effort.imported += 1;
                    }
                }
            }
            Payload::FunctionSection(functions) => {
                for kind in functions {
                    effort.functions.push(kind.map_err(|_| EngineError::Module)?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    let elements = table.map_err(|_| EngineError::Module)?.ty.initial;
                    let bytes = elements.saturating_mul(ELEMENT_BYTES as u64);
                    table_bytes = table_bytes.saturating_add(bytes);
                }
            }
            _ => {}
        }
    }
    // A long module is effort, too.
    Ok(LookedAt { table_bytes, effort: effort.sum().saturating_add(wasm.len() as u64) })
}

/// The compiler's thread.
fn work(engine: &wasmtime::Engine, office: &Office, command: &Program) {
    while let Some(Job { package, wasm, table_bytes }) = next_job(office) {
        let module = child::compile(engine, command(), &wasm);
        let result = module.map(|module| Compiled { module, table_bytes });
        if let Some(known) = lock(&office.0).modules.get_mut(&package.0) {
            known.progress = Progress::Done(result);
        }
    }
}

/// The next job, waited for if there is none; `None` once the device has ended.
fn next_job(office: &Office) -> Option<Job> {
    let (shared, bell) = office;
    let mut shared = lock(shared);
    loop {
        if shared.ended {
            return None;
        }
        if let Some(job) = shared.turns.pop() {
            return Some(job);
        }
        shared = bell.wait(shared).unwrap_or_else(PoisonError::into_inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait_for_turn(compiler: &mut Compiler, package: u8, tenant: u8, wasm: &[u8]) -> bool {
        compiler.is_done(&Digest([package; 32]), &VerifyingKey([tenant; 32]), wasm)
    }

    /// A compiler whose thread never comes.
    fn unattended() -> Compiler {
        Compiler { office: Arc::default() }
    }

    #[test]
    fn tenant_that_fills_all_places_leaves_another_its_own() {
        // B-9: 64 modules of one tenant stood in the queue, and everybody else before it.
        let wasm = wat::parse_str("(module)").unwrap();
        let mut compiler = unattended();
        let holds = |compiler: &Compiler, package: u8| {
            lock(&compiler.office.0).modules.contains_key(&[package; 32])
        };
        for package in 0..MODULES_MAX as u8 {
            assert!(!wait_for_turn(&mut compiler, package, 1, &wasm));
        }
        // It has all the places, and its own next one waits until one is done.
        assert!(!wait_for_turn(&mut compiler, 100, 1, &wasm) && !holds(&compiler, 100));
        // Two others have theirs, for as long as they have fewer; what came last makes room.
        for (package, tenant) in (101..=132).zip([2, 3].into_iter().cycle()) {
            assert!(!wait_for_turn(&mut compiler, package, tenant, &wasm));
            assert!(holds(&compiler, package), "{package}");
            // It comes back, and takes nothing away.
            assert!(!wait_for_turn(&mut compiler, 63, 1, &wasm) && !holds(&compiler, 63));
        }
        assert!(holds(&compiler, 0) && holds(&compiler, 31) && !holds(&compiler, 32));
        let mut shared = lock(&compiler.office.0);
        let order: Vec<u8> =
            std::iter::from_fn(|| shared.turns.pop()).map(|job| job.package.0[0]).collect();
        assert_eq!(order.len(), MODULES_MAX);
        assert_eq!(order[..6], [0, 101, 102, 1, 103, 104]);
    }

    #[test]
    fn module_of_many_blocks_with_many_variables_never_reaches_the_compiler() {
        // B-9: variables by loops and by branches, parameters by blocks, results of calls, what a table of branches brings
        // along; loops in loops, which took seconds without a variable; and what each function costs. None has 16 KiB.
        let many = |text: &str, times: usize| text.repeat(times);
        let (values, consts) = (many("i32 ", 900), many("i32.const 0 ", 900));
        let kind = format!("(type $many (func (result {values})))");
        let bombs = [
            format!("(func (local {}) {})", many("i64 ", 2500), many("(loop) ", 2500)),
            format!(
                "(func (local {}) {})",
                many("i64 ", 7000),
                many("(if (i32.const 0) (then) (else)) ", 100)
            ),
            format!("(func (param {values}) {})", many("(block) ", 500)),
            format!(
                "{kind} (func $f (type $many) {consts}) (func {} return)",
                many("call $f ", 7000)
            ),
            format!(
                "{kind} (func (type $many) (block (type $many) {consts} i32.const 0 br_table {}))",
                many("0 ", 900)
            ),
            format!("(func {} {})", many("loop ", 500), many("i32.const 1 br_if 0 end ", 500)),
            format!("{kind} {}", many("(func (type $many) unreachable)", 200)),
            many("(func)", 25_500),
            format!(
                "(type $f (func)) (table 1 funcref) (func {})",
                many("i32.const 0 call_indirect (type $f) ", 3_000)
            ),
        ];
        for bomb in bombs {
            let wasm = wat::parse_str(format!("(module {bomb})")).unwrap();
            let refused = check(&wasm).map(|_| ());
            assert_eq!(refused, Err(EngineError::TooLong), "{bomb:.60}");
        }
        let modest = format!("(func (local {}) {})", many("i64 ", 150), many("(loop) ", 500));
        let looked_at = check(&wat::parse_str(format!("(module {modest})")).unwrap()).unwrap();
        assert!(looked_at.effort > 75_000, "{looked_at:?}");
        // One such function is nothing much, and sixty are.
        let sixty = wat::parse_str(format!("(module {})", many(&modest, 60))).unwrap();
        assert_eq!(check(&sixty).map(|_| ()), Err(EngineError::TooLong));
    }
}
