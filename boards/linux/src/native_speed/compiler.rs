//! The compiler: a thread of its own, so that no tenant's module holds up the device.
//!
//! Invariants:
//! - A module whose functions are too long or too much effort, or which is that itself, never reaches the compiler:
//!   the time and memory of the largest that does are measured in docs/benchmarks.md.
//! - Of the modules that wait, the one that came first and the one that is the least effort have turns: nobody's small
//!   module waits for all of somebody's large ones.
//! - A mark on disk names the module that is being compiled. A mark that is found at the start is of
//!   a module that ended the process: the vm runs it from then on.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use tenure_kernel::EngineError;
use tenure_wire::Digest;
use wasmparser::{Parser, Payload, TypeRef};
use wasmtime::Module;

use super::cost::{Arity, Effort};
use super::memory::ELEMENT_BYTES;

/// The longest function that is compiled, in bytes of wasm: the register allocator's time grows
/// faster than a function's length.
const FUNCTION_BYTES_MAX: usize = 16 * 1024;
/// The longest module that is compiled, in bytes of wasm.
const MODULE_BYTES_MAX: usize = 512 * 1024;
/// The most modules that are remembered, compiled or refused.
const MODULES_MAX: usize = 64;
/// The most marks of modules that ended the process; the oldest make room.
const MARKS_MAX: usize = 64;
/// The folder of the marks, in the device's.
const FOLDER: &str = "compiling";

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

struct Job {
    package: Digest,
    wasm: Vec<u8>,
    looked_at: LookedAt,
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
    modules: BTreeMap<[u8; 32], Progress>,
    /// The order in which they came.
    order: Vec<[u8; 32]>,
    /// The module that is being compiled, by its mark.
    mark: Option<PathBuf>,
    /// Whether the device has ended.
    ended: bool,
}

/// Compiles modules, one after the other.
pub(super) struct Compiler {
    shared: Arc<Mutex<Shared>>,
    jobs: Sender<Job>,
}

impl Compiler {
    /// Starts the compiler's thread; `None` if the system has none left. Marks are kept in `folder`.
    pub(super) fn start(engine: wasmtime::Engine, folder: Option<&Path>) -> Option<Self> {
        let folder = folder.map(|folder| folder.join(FOLDER));
        let shared = Shared { modules: ended_the_process(folder.as_deref()), ..Shared::default() };
        let shared = Arc::new(Mutex::new(shared));
        let (jobs, inbox) = channel();
        let thread = thread::Builder::new().name("compiler".to_owned());
        let of_thread = shared.clone();
        thread.spawn(move || work(&engine, &of_thread, &inbox, folder.as_deref())).ok()?;
        Some(Self { shared, jobs })
    }

    /// Whether [`Compiler::module`] has an answer; begins to compile the module if need be.
    pub(super) fn is_done(&mut self, package: &Digest, wasm: &[u8]) -> bool {
        let mut shared = lock(&self.shared);
        if let Some(progress) = shared.modules.get(&package.0) {
            return matches!(progress, Progress::Done(_));
        }
        if shared.order.len() >= MODULES_MAX && !shared.forget_oldest() {
            return false;
        }
        let progress = match check(wasm) {
            Err(error) => Progress::Done(Err(error)),
            Ok(looked_at) => {
                let job = Job { package: *package, wasm: wasm.to_vec(), looked_at };
                match self.jobs.send(job) {
                    Ok(()) => Progress::Compiling,
                    // The thread is gone.
                    Err(_) => Progress::Done(Err(EngineError::Module)),
                }
            }
        };
        let done = matches!(progress, Progress::Done(_));
        shared.modules.insert(package.0, progress);
        shared.order.push(package.0);
        done
    }

    /// The compiled module.
    ///
    /// # Errors
    /// [`EngineError::Compiling`] as long as it isn't done; the others say why it never will be.
    pub(super) fn module(
        &mut self,
        package: &Digest,
        wasm: &[u8],
    ) -> Result<Compiled, EngineError> {
        if !self.is_done(package, wasm) {
            return Err(EngineError::Compiling);
        }
        match lock(&self.shared).modules.get(&package.0) {
            Some(Progress::Done(result)) => result.clone(),
            _ => Err(EngineError::Compiling),
        }
    }
}

impl Drop for Compiler {
    /// The compiler's input didn't end the process: the device did.
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.ended = true;
        if let Some(mark) = shared.mark.take() {
            let _ = fs::remove_file(mark);
        }
    }
}

impl Shared {
    /// Forgets the module that came first of those that are done; `false` if none is.
    fn forget_oldest(&mut self) -> bool {
        let done = |digest: &[u8; 32]| matches!(self.modules.get(digest), Some(Progress::Done(_)));
        let Some(at) = self.order.iter().position(done) else { return false };
        let digest = self.order.remove(at);
        self.modules.remove(&digest);
        true
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
fn work(
    engine: &wasmtime::Engine,
    shared: &Mutex<Shared>,
    inbox: &Receiver<Job>,
    folder: Option<&Path>,
) {
    let mut waiting = Waiting::default();
    while let Some(Job { package, wasm, looked_at }) = waiting.next(inbox) {
        {
            let mut shared = lock(shared);
            if shared.ended {
                return;
            }
            shared.mark = folder.and_then(|folder| make_mark(folder, &package));
        }
        let module = Module::new(engine, &wasm);
        let LookedAt { table_bytes, .. } = looked_at;
        let result = module.map(|module| Compiled { module, table_bytes });
        let mut shared = lock(shared);
        if let Some(mark) = shared.mark.take() {
            let _ = fs::remove_file(mark);
        }
        let progress = Progress::Done(result.map_err(|_| EngineError::Module));
        shared.modules.insert(package.0, progress);
    }
}

/// The modules that wait for the compiler, in the order in which they came.
#[derive(Default)]
struct Waiting {
    jobs: Vec<Job>,
    /// Whether the last one was the one that had come first.
    was_first: bool,
}

impl Waiting {
    /// The next job, waited for if there is none; `None` if none will come.
    fn next(&mut self, inbox: &Receiver<Job>) -> Option<Job> {
        if self.jobs.is_empty() {
            self.jobs.push(inbox.recv().ok()?);
        }
        self.jobs.extend(inbox.try_iter());
        self.was_first = !self.was_first;
        let least = || (0..self.jobs.len()).min_by_key(|at| self.jobs[*at].looked_at.effort);
        let at = if self.was_first { 0 } else { least().unwrap_or_default() };
        Some(self.jobs.remove(at))
    }
}

/// Says on disk what is being compiled. Where that can't be said, the device compiles all the same.
///
/// The mark outlasts the process without being flushed; a loss of power is no module's fault.
fn make_mark(folder: &Path, package: &Digest) -> Option<PathBuf> {
    let mark = folder.join(package.to_string());
    fs::create_dir_all(folder).and_then(|()| fs::write(&mark, b"")).ok()?;
    Some(mark)
}

/// The modules whose compilation ended the process, by the marks that were left.
fn ended_the_process(folder: Option<&Path>) -> BTreeMap<[u8; 32], Progress> {
    let entries = folder.and_then(|folder| fs::read_dir(folder).ok());
    let mut marks: Vec<_> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let digest = entry.file_name().to_str()?.parse::<Digest>().ok()?;
            let made = entry.metadata().and_then(|metadata| metadata.modified()).ok()?;
            Some((made, digest.0, entry.path()))
        })
        .collect();
    marks.sort();
    let surplus = marks.len().saturating_sub(MARKS_MAX);
    for (_, _, path) in marks.drain(..surplus) {
        let _ = fs::remove_file(path);
    }
    let refused = Progress::Done(Err(EngineError::EndedProcess));
    marks.into_iter().map(|(_, digest, _)| (digest, refused.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: u8, effort: u64) -> Job {
        let looked_at = LookedAt { table_bytes: 0, effort };
        Job { package: Digest([name; 32]), wasm: Vec::new(), looked_at }
    }

    #[test]
    fn small_module_waits_for_no_queue_of_large_ones_and_none_waits_for_ever() {
        // B-9: one tenant's 64 modules, and another's that comes last.
        let (jobs, inbox) = channel();
        for name in 0..4 {
            jobs.send(job(name, 1000)).unwrap();
        }
        jobs.send(job(9, 10)).unwrap();
        drop(jobs);
        let mut waiting = Waiting::default();
        let order: Vec<u8> =
            std::iter::from_fn(|| waiting.next(&inbox)).map(|job| job.package.0[0]).collect();
        assert_eq!(order, [0, 9, 1, 2, 3]);
    }

    #[test]
    fn module_of_many_blocks_with_many_variables_never_reaches_the_compiler() {
        // B-9: variables by loops and by branches, parameters by blocks, results of calls, and what a table of branches brings
        // along. None of these functions has 16 KiB.
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
        ];
        for bomb in bombs {
            let wasm = wat::parse_str(format!("(module {bomb})")).unwrap();
            let refused = check(&wasm).map(|_| ());
            assert_eq!(refused, Err(EngineError::TooLong), "{}", &bomb[..40]);
        }
        let modest = format!("(func (local {}) {})", many("i64 ", 200), many("(loop) ", 500));
        let looked_at = check(&wat::parse_str(format!("(module {modest})")).unwrap()).unwrap();
        assert!(looked_at.effort > 100_000, "{looked_at:?}");
        // One such function is nothing much, and sixty are.
        let sixty = wat::parse_str(format!("(module {})", many(&modest, 60))).unwrap();
        assert_eq!(check(&sixty).map(|_| ()), Err(EngineError::TooLong));
    }
}
