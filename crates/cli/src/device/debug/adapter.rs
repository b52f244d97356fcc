//! The debugger as an adapter of the Debug Adapter Protocol: machines are threads, each at a moment of its own history.
//!
//! Invariant: a request that can't be served has an error for an answer, and changes nothing.

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use data_encoding::BASE64;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::Subject;
use super::client::Allowed;
use super::console::Console;
use super::expression::{self, Worth};
use super::lines::is_own;
use super::protocol::{Came, Outlet, Request, read};
use super::session::{BreakAt, Debuggee, Reason, Session, Step, Way};
use super::view::{CALLS_MAX, Call};
use crate::make::variables::{Number, Place, Program, Value, Variable, Variables};

/// The most values that a client may have open, and bytes of memory that it is shown at once.
const HANDLES_MAX: usize = 100_000;
const READ_BYTES_MAX: u64 = 1024 * 1024;
/// Threads and frames are numbered from 1 on.
const FIRST: i64 = 1;

/// Serves a client until it leaves.
///
/// # Errors
/// The connection fails, or what comes is no message.
pub(super) fn serve(
    input: &mut dyn BufRead,
    output: &mut dyn Write,
    subject: &Subject,
    client: &dyn Allowed,
    open: &mut dyn FnMut(&Subject) -> anyhow::Result<Session>,
) -> anyhow::Result<()> {
    let mut outlet = Outlet::new(output);
    let mut adapter = Adapter::new(subject.clone(), client, open);
    loop {
        match read(input)? {
            Came::Request(request) => {
                let (result, after) = match adapter.answer(&request) {
                    Ok((body, after)) => (Ok(body), after),
                    Err(error) => (Err(format!("{error:#}")), After::Nothing),
                };
                outlet.respond(&request, result)?;
                match after {
                    After::Nothing => {}
                    After::End => return Ok(()),
                    // Steps may take long, so the answer comes first.
                    other => {
                        for (event, body) in adapter.go_on(other) {
                            outlet.event(event, body)?;
                        }
                    }
                }
            }
            Came::Other(why) => outlet.refuse(&why)?,
            Came::End => return Ok(()),
        }
    }
}

/// The effect that follows an answer.
enum After {
    Nothing,
    /// The client may say where to stop.
    Initialized,
    /// All machines go to their first stop, or one shows where it begins.
    Begin,
    /// A machine goes a step.
    Step(usize, Step, Way),
    /// A command has moved a machine.
    Moved(usize),
    End,
}

type Events = Vec<(&'static str, Json)>;
type Answer = anyhow::Result<(Json, After)>;

/// A list of variables that the client may ask for.
#[derive(Clone)]
enum Handle {
    Locals(usize),
    Raw(usize),
    Parts(usize, Value),
}

struct Adapter<'a> {
    subject: Subject,
    client: &'a dyn Allowed,
    open: &'a mut dyn FnMut(&Subject) -> anyhow::Result<Session>,
    console: Option<Console>,
    stops_on_entry: bool,
    /// The number of the first line, as the client counts.
    first_line: i64,
    /// Each with its machine; those go when it moves.
    handles: HashMap<i64, (usize, Handle)>,
    last_handle: i64,
    /// The breakpoints by source files, of functions, and watched ranges, by their numbers.
    by_source: BTreeMap<String, Vec<u32>>,
    of_functions: Vec<u32>,
    of_data: Vec<u32>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Initialize {
    lines_start_at1: Option<bool>,
}

/// An editor's configuration.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Launch {
    record: Option<PathBuf>,
    packages: Vec<PathBuf>,
    machine: Option<tenure_wire::Name>,
    stop_on_entry: bool,
    /// The word that the debugger has printed, where it listens.
    token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfThread {
    thread_id: i64,
    granularity: Option<String>,
    start_frame: Option<usize>,
    levels: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfFrame {
    frame_id: i64,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct OfVariables {
    variables_reference: i64,
    start: Option<usize>,
    count: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Evaluate {
    expression: String,
    frame_id: Option<i64>,
    context: Option<String>,
}

#[derive(Deserialize)]
struct Source {
    path: Option<String>,
    name: Option<String>,
}

#[derive(Deserialize)]
struct SetBreakpoints {
    source: Source,
    #[serde(default)]
    breakpoints: Vec<SourceBreakpoint>,
}

#[derive(Deserialize)]
struct SourceBreakpoint {
    line: i64,
    #[serde(flatten)]
    only: Only,
}

/// When a breakpoint counts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Only {
    condition: Option<String>,
    hit_condition: Option<String>,
    log_message: Option<String>,
}

#[derive(Deserialize)]
struct SetFunctionBreakpoints {
    breakpoints: Vec<FunctionBreakpoint>,
}

#[derive(Deserialize)]
struct FunctionBreakpoint {
    name: String,
    #[serde(flatten)]
    only: Only,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataInfo {
    variables_reference: Option<i64>,
    name: String,
    frame_id: Option<i64>,
}

#[derive(Deserialize)]
struct SetDataBreakpoints {
    breakpoints: Vec<DataBreakpoint>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataBreakpoint {
    data_id: String,
    access_type: Option<String>,
    #[serde(flatten)]
    only: Only,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadMemory {
    memory_reference: String,
    #[serde(default)]
    offset: i64,
    count: u64,
}

impl Only {
    /// The condition, if there is one.
    ///
    /// # Errors
    /// It is of a kind that isn't kept; the client was told so.
    fn condition(&self) -> anyhow::Result<Option<&str>> {
        fn said(text: &Option<String>) -> Option<&str> {
            text.as_deref().filter(|text| !text.trim().is_empty())
        }
        anyhow::ensure!(
            said(&self.hit_condition).is_none(),
            "breakpoints don't count how often they are hit"
        );
        anyhow::ensure!(said(&self.log_message).is_none(), "breakpoints write no log");
        Ok(said(&self.condition))
    }
}

impl<'a> Adapter<'a> {
    fn new(
        subject: Subject,
        client: &'a dyn Allowed,
        open: &'a mut dyn FnMut(&Subject) -> anyhow::Result<Session>,
    ) -> Self {
        Self {
            subject,
            client,
            open,
            console: None,
            stops_on_entry: false,
            first_line: 1,
            handles: HashMap::new(),
            last_handle: 0,
            by_source: BTreeMap::new(),
            of_functions: Vec::new(),
            of_data: Vec::new(),
        }
    }

    fn answer(&mut self, request: &Request) -> Answer {
        let go = |step, way| (step, way);
        let step = match request.command.as_str() {
            "initialize" => return self.initialize(arguments(request)?),
            "launch" | "attach" => return self.launch(arguments(request)?),
            "setBreakpoints" => return plain(self.set_breakpoints(arguments(request)?)),
            "setFunctionBreakpoints" => {
                return plain(self.set_function_breakpoints(arguments(request)?));
            }
            "dataBreakpointInfo" => return plain(self.data_info(&arguments(request)?)),
            "setDataBreakpoints" => return plain(self.set_data_breakpoints(&arguments(request)?)),
            "setExceptionBreakpoints" => return Ok((json!({}), After::Nothing)),
            "configurationDone" => {
                self.console()?;
                return Ok((json!({}), After::Begin));
            }
            "threads" => return plain(self.threads()),
            "stackTrace" => return plain(self.stack_trace(&arguments(request)?)),
            "scopes" => return plain(self.scopes(&arguments(request)?)),
            "variables" => return plain(self.variables(&arguments(request)?)),
            "evaluate" => return self.evaluate(&arguments(request)?),
            "readMemory" => return plain(self.read_memory(&arguments(request)?)),
            "exceptionInfo" => return plain(self.exception_info(&arguments(request)?)),
            // They always stand still.
            "pause" => return Ok((json!({}), After::Nothing)),
            "disconnect" | "terminate" => return Ok((json!({}), After::End)),
            "continue" => go(Step::On, Way::Forwards),
            "reverseContinue" => go(Step::On, Way::Backwards),
            "next" => go(Step::Over, Way::Forwards),
            "stepIn" => go(Step::Into, Way::Forwards),
            "stepOut" => go(Step::Out, Way::Forwards),
            "stepBack" => go(Step::Over, Way::Backwards),
            other => anyhow::bail!("there is no request {other} here"),
        };
        self.go(&arguments(request)?, step)
    }

    fn console(&self) -> anyhow::Result<&Console> {
        self.console.as_ref().ok_or_else(|| anyhow::anyhow!("nothing is launched yet"))
    }

    fn console_mut(&mut self) -> anyhow::Result<&mut Console> {
        self.console.as_mut().ok_or_else(|| anyhow::anyhow!("nothing is launched yet"))
    }

    fn initialize(&mut self, arguments: Initialize) -> Answer {
        self.first_line = i64::from(arguments.lines_start_at1.unwrap_or(true));
        let body = json!({
            "supportsConfigurationDoneRequest": true,
            "supportsStepBack": true,
            "supportsConditionalBreakpoints": true,
            "supportsFunctionBreakpoints": true,
            "supportsDataBreakpoints": true,
            "supportsReadMemoryRequest": true,
            "supportsEvaluateForHovers": true,
            "supportsSteppingGranularity": true,
            "supportsExceptionInfoRequest": true,
            "supportsTerminateRequest": true,
            "supportsDelayedStackTraceLoading": true,
        });
        Ok((body, After::Nothing))
    }

    fn launch(&mut self, launch: Launch) -> Answer {
        anyhow::ensure!(self.console.is_none(), "a record is open already");
        let Launch { record, packages, machine, stop_on_entry, token } = launch;
        let mut subject = self.subject.clone();
        let names_files =
            |files: &[PathBuf], of: &[PathBuf]| files.iter().all(|it| of.contains(it));
        let is_same = record.is_none() || record == subject.record;
        self.client.allow(&token, is_same && names_files(&packages, &subject.packages))?;
        subject.record = record.or(subject.record);
        subject.machine = machine.or(subject.machine);
        subject.packages.extend(packages);
        let sources = self.client.sources();
        self.console = Some(Console::new((self.open)(&subject)?, sources));
        self.stops_on_entry = stop_on_entry;
        Ok((json!({}), After::Initialized))
    }

    /// Does what follows an answer; gives the events to be sent.
    fn go_on(&mut self, after: After) -> Events {
        match after {
            After::Nothing | After::End => Vec::new(),
            After::Initialized => vec![("initialized", json!({}))],
            After::Moved(machine) => {
                self.forget(machine);
                vec![stopped(machine, "goto", "by a command", &[])]
            }
            After::Begin if self.stops_on_entry => vec![stopped(0, "entry", "", &[])],
            After::Begin => self.begin(),
            After::Step(machine, step, way) => {
                self.forget(machine);
                let Some(console) = &mut self.console else { return Vec::new() };
                let reason = console.session.step(machine, step, way);
                vec![told(console, machine, &reason, way)]
            }
        }
    }

    /// Lets all machines go to their first stop.
    fn begin(&mut self) -> Events {
        let Some(console) = &mut self.console else { return Vec::new() };
        let mut events = Vec::new();
        for machine in 0..console.session.machines.len() {
            let reason = console.session.step(machine, Step::On, Way::Forwards);
            if reason != Reason::Edge {
                events.push(told(console, machine, &reason, Way::Forwards));
            }
        }
        if events.is_empty() {
            events.push(told(console, 0, &Reason::Edge, Way::Forwards));
        }
        events
    }

    fn go(&mut self, of: &OfThread, (step, way): (Step, Way)) -> Answer {
        let (machine, _) = self.debuggee(of.thread_id)?;
        let is_fine = of.granularity.as_deref() == Some("instruction");
        let step = match step {
            Step::Over | Step::Into if is_fine => Step::Instruction,
            step => step,
        };
        Ok((json!({ "allThreadsContinued": false }), After::Step(machine, step, way)))
    }

    fn debuggee(&self, thread: i64) -> anyhow::Result<(usize, &Debuggee)> {
        let machines = &self.console()?.session.machines;
        let number = thread.checked_sub(FIRST).and_then(|number| usize::try_from(number).ok());
        let found = number.and_then(|number| Some((number, machines.get(number)?)));
        found.ok_or_else(|| anyhow::anyhow!("there is no machine {thread}"))
    }

    /// A call, by its number among those of all machines.
    fn call(&self, frame: i64) -> anyhow::Result<(usize, &Debuggee, Call)> {
        let number = frame.checked_sub(FIRST).and_then(|number| usize::try_from(number).ok());
        let found = number.and_then(|number| {
            let (machine, debuggee) = self.debuggee((number / CALLS_MAX) as i64 + FIRST).ok()?;
            let call = debuggee.view().stack().into_iter().nth(number % CALLS_MAX)?;
            Some((machine, debuggee, call))
        });
        found.ok_or_else(|| anyhow::anyhow!("there is no call {frame}"))
    }

    fn threads(&self) -> anyhow::Result<Json> {
        let machines = &self.console()?.session.machines;
        let threads = machines.iter().zip(FIRST..);
        let thread = |(machine, id): (&Debuggee, i64)| json!({ "id": id, "name": machine.name });
        Ok(json!({ "threads": threads.map(thread).collect::<Vec<_>>() }))
    }

    fn stack_trace(&self, of: &OfThread) -> anyhow::Result<Json> {
        let (machine, debuggee) = self.debuggee(of.thread_id)?;
        let stack = debuggee.view().stack();
        let has_own = stack.iter().any(|call| call.file.as_deref().is_some_and(is_own));
        let levels = of.levels.filter(|levels| *levels > 0).unwrap_or(CALLS_MAX);
        let shown = stack.iter().enumerate().take(CALLS_MAX);
        let shown = shown.skip(of.start_frame.unwrap_or(0)).take(levels);
        let frame = |(number, call): (usize, &Call)| {
            let line = call.line.map_or(0, |line| i64::from(line) - 1 + self.first_line);
            let mut frame = json!({
                "id": (machine * CALLS_MAX + number) as i64 + FIRST,
                "name": call.function,
                "line": line,
                "column": self.first_line,
                "instructionPointerReference": format!("{}:{:#x}", call.site.function, call.site.offset),
            });
            if let Some(file) = &call.file {
                frame["source"] = source(file);
            }
            // Editors look at the first call that isn't subtle.
            if !call.file.as_deref().is_some_and(is_own) && has_own {
                frame["presentationHint"] = "subtle".into();
            }
            frame
        };
        Ok(json!({
            "stackFrames": shown.map(frame).collect::<Vec<_>>(),
            "totalFrames": stack.len().min(CALLS_MAX),
        }))
    }

    fn scopes(&mut self, of: &OfFrame) -> anyhow::Result<Json> {
        let (machine, _, _) = self.call(of.frame_id)?;
        let number = (of.frame_id - FIRST) as usize % CALLS_MAX;
        let locals = self.handle(machine, Handle::Locals(number))?;
        let raw = self.handle(machine, Handle::Raw(number))?;
        Ok(json!({ "scopes": [
            { "name": "Locals", "presentationHint": "locals", "variablesReference": locals, "expensive": false },
            { "name": "WebAssembly", "presentationHint": "registers", "variablesReference": raw, "expensive": false },
        ] }))
    }

    fn handle(&mut self, machine: usize, handle: Handle) -> anyhow::Result<i64> {
        anyhow::ensure!(self.handles.len() < HANDLES_MAX, "too many values are open");
        self.last_handle += 1;
        self.handles.insert(self.last_handle, (machine, handle));
        Ok(self.last_handle)
    }

    /// Forgets what was shown of a machine.
    fn forget(&mut self, machine: usize) {
        self.handles.retain(|_, (of, _)| *of != machine);
    }

    fn variables(&mut self, of: &OfVariables) -> anyhow::Result<Json> {
        let known = self.handles.get(&of.variables_reference).cloned();
        let (machine, handle) =
            known.ok_or_else(|| anyhow::anyhow!("there is no such list now"))?;
        let (start, count) = (of.start.unwrap_or(0), of.count.filter(|count| *count > 0));
        let count = count.unwrap_or(usize::MAX);
        let (call, value) = match handle {
            Handle::Locals(call) => (call, None),
            Handle::Parts(call, value) => (call, Some(value)),
            Handle::Raw(call) => {
                let raw = self.raw(machine, call)?.into_iter().skip(start).take(count);
                return Ok(json!({ "variables": raw.collect::<Vec<_>>() }));
            }
        };
        let list = self.listed(machine, call, value.as_ref())?;
        let mut variables = Vec::new();
        for variable in list.into_iter().skip(start).take(count) {
            variables.push(self.shown(machine, call, variable)?);
        }
        Ok(json!({ "variables": variables }))
    }

    fn raw(&self, machine: usize, call: usize) -> anyhow::Result<Vec<Json>> {
        let (_, debuggee, call) = self.call((machine * CALLS_MAX + call) as i64 + FIRST)?;
        let view = debuggee.view();
        let raw = view.locals(&call).into_iter().chain(view.globals());
        Ok(raw
            .map(|raw| json!({ "name": raw.name, "value": raw.text, "variablesReference": 0 }))
            .collect())
    }

    /// The variables of a call, or the parts of a value in it.
    fn listed(
        &self,
        machine: usize,
        call: usize,
        value: Option<&Value>,
    ) -> anyhow::Result<Vec<Variable>> {
        let (_, debuggee, call) = self.call((machine * CALLS_MAX + call) as i64 + FIRST)?;
        let view = debuggee.view();
        Ok(match value {
            None => view.variables(&call),
            Some(value) => known(debuggee)?.parts(value, &view.of_call(&call)),
        })
    }

    /// A variable as the client is shown it.
    fn shown(&mut self, machine: usize, call: usize, variable: Variable) -> anyhow::Result<Json> {
        let Variable { name, value } = variable;
        let mut shown = self.shown_value(machine, call, value)?;
        shown["name"] = name.into();
        Ok(shown)
    }

    fn shown_value(&mut self, machine: usize, call: usize, value: Value) -> anyhow::Result<Json> {
        let (_, debuggee, of) = self.call((machine * CALLS_MAX + call) as i64 + FIRST)?;
        let (variables, program) = (known(debuggee)?, debuggee.view().of_call(&of));
        let name = value.of.and_then(|of| variables.describe(of)).map(|of| of.name);
        let mut shown = json!({
            "value": variables.show(&value, &program),
            "type": name,
            "memoryReference": reference(machine, variables, &value, &program),
            "variablesReference": 0,
        });
        if variables.has_parts(&value) {
            shown["variablesReference"] = self.handle(machine, Handle::Parts(call, value))?.into();
        }
        Ok(shown)
    }

    fn evaluate(&mut self, of: &Evaluate) -> Answer {
        let text = of.expression.trim();
        let frame = of.frame_id.unwrap_or(FIRST);
        if of.context.as_deref() == Some("repl") && Console::is_command(text) {
            return self.command(text, frame);
        }
        let (machine, debuggee, call) = self.call(frame)?;
        let number = (frame - FIRST) as usize % CALLS_MAX;
        let mut body = match debuggee.worth(&expression::parse(text)?, Some(&call))? {
            Worth::Number(Number::Whole(number)) => json!({ "value": number.to_string() }),
            Worth::Number(Number::Float(number)) => json!({ "value": number.to_string() }),
            Worth::Value(value) => self.shown_value(machine, number, value)?,
        };
        body["result"] = body["value"].take();
        if body["variablesReference"].is_null() {
            body["variablesReference"] = 0.into();
        }
        Ok((body, After::Nothing))
    }

    /// Executes a command of the terminal's, on the machine of a call.
    fn command(&mut self, text: &str, frame: i64) -> Answer {
        let number = frame.checked_sub(FIRST).and_then(|number| usize::try_from(number).ok());
        let (machine, call) = (number.unwrap_or(0) / CALLS_MAX, number.unwrap_or(0) % CALLS_MAX);
        let console = self.console_mut()?;
        anyhow::ensure!(machine < console.session.machines.len(), "there is no such machine");
        console.look_at(machine, call);
        let before = console.session.machines[machine].walk().position();
        let Some(answer) = console.execute(text)? else {
            anyhow::bail!("the editor ends its session itself");
        };
        let has_moved = console.session.machines[machine].walk().position() != before;
        let after = if has_moved { After::Moved(machine) } else { After::Nothing };
        Ok((json!({ "result": answer.text, "variablesReference": 0 }), after))
    }

    fn set_breakpoints(&mut self, set: SetBreakpoints) -> anyhow::Result<Json> {
        let SetBreakpoints { source: Source { path, name }, breakpoints } = set;
        let path = path.or(name).ok_or_else(|| anyhow::anyhow!("the source has no path"))?;
        let (first_line, before) = (self.first_line, self.by_source.remove(&path));
        let session = &mut self.console_mut()?.session;
        for number in before.into_iter().flatten() {
            session.remove(number);
        }
        let (mut answers, mut numbers) = (Vec::new(), Vec::new());
        for SourceBreakpoint { line, only } in breakpoints {
            let line = line.saturating_sub(first_line).saturating_add(1);
            let line = u32::try_from(line).unwrap_or(0);
            let at = BreakAt::Line(path.clone(), line);
            let added = added(session, at, &only, first_line, &mut numbers);
            answers.push(added.unwrap_or_else(|why| unverified(&why)));
        }
        self.by_source.insert(path, numbers);
        Ok(json!({ "breakpoints": answers }))
    }

    fn set_function_breakpoints(&mut self, set: SetFunctionBreakpoints) -> anyhow::Result<Json> {
        let (first_line, before) = (self.first_line, core::mem::take(&mut self.of_functions));
        let session = &mut self.console_mut()?.session;
        for number in before {
            session.remove(number);
        }
        let (mut answers, mut numbers) = (Vec::new(), Vec::new());
        for FunctionBreakpoint { name, only } in set.breakpoints {
            let at = BreakAt::Function(name);
            let added = added(session, at, &only, first_line, &mut numbers);
            answers.push(added.unwrap_or_else(|why| unverified(&why)));
        }
        self.of_functions = numbers;
        Ok(json!({ "breakpoints": answers }))
    }

    fn data_info(&self, of: &DataInfo) -> anyhow::Result<Json> {
        let found = self.data_range(of);
        let (data, description) = match &found {
            Ok((machine, range)) => {
                (Some(format!("{machine}:{}:{}", range.start, range.end)), of.name.clone())
            }
            Err(why) => (None, format!("{why:#}")),
        };
        let body = json!({
            "dataId": data, "description": description, "accessTypes": ["write"],
            "canPersist": false,
        });
        Ok(body)
    }

    /// The memory in which a variable of a list, or an expression's value, lies.
    fn data_range(&self, of: &DataInfo) -> anyhow::Result<(usize, Range<u32>)> {
        let handle = of.variables_reference.and_then(|one| self.handles.get(&one));
        let (machine, call, value) = match handle {
            Some((machine, Handle::Locals(call))) => (*machine, *call, None),
            Some((machine, Handle::Parts(call, value))) => (*machine, *call, Some(value)),
            _ => {
                let (machine, debuggee, call) = self.call(of.frame_id.unwrap_or(FIRST))?;
                let expression = expression::parse(&of.name)?;
                return Ok((machine, debuggee.range(&expression, Some(&call))?));
            }
        };
        let list = self.listed(machine, call, value)?;
        let (_, debuggee) = self.debuggee(machine as i64 + FIRST)?;
        let named = list.into_iter().rfind(|variable| variable.name == of.name);
        let range = named.and_then(|Variable { value, .. }| {
            let bytes = u32::try_from(known(debuggee).ok()?.size(&value)?).ok()?;
            match value.place {
                Place::Memory(from) => Some(from..from.checked_add(bytes)?),
                Place::Bytes(_) | Place::Gone => None,
            }
        });
        let range = range.ok_or_else(|| anyhow::anyhow!("{} isn't in memory", of.name))?;
        Ok((machine, range))
    }

    fn set_data_breakpoints(&mut self, set: &SetDataBreakpoints) -> anyhow::Result<Json> {
        let before = core::mem::take(&mut self.of_data);
        let session = &mut self.console_mut()?.session;
        for number in before {
            session.remove(number);
        }
        let (mut answers, mut numbers) = (Vec::new(), Vec::new());
        for breakpoint in &set.breakpoints {
            answers.push(match watched(session, breakpoint) {
                Ok(number) => {
                    numbers.push(number);
                    json!({ "id": number, "verified": true })
                }
                Err(why) => unverified(&why),
            });
        }
        self.of_data = numbers;
        Ok(json!({ "breakpoints": answers }))
    }

    fn read_memory(&self, of: &ReadMemory) -> anyhow::Result<Json> {
        let (machine, address) = of
            .memory_reference
            .split_once(':')
            .and_then(|(machine, address)| {
                Some((machine.parse::<usize>().ok()?, address.parse::<u32>().ok()?))
            })
            .ok_or_else(|| anyhow::anyhow!("there is no memory {}", of.memory_reference))?;
        let (_, debuggee) = self.debuggee(machine as i64 + FIRST)?;
        anyhow::ensure!(of.count <= READ_BYTES_MAX, "at most {READ_BYTES_MAX} bytes are read");
        let from = i64::from(address).saturating_add(of.offset);
        let from = u32::try_from(from).map_err(|_| anyhow::anyhow!("there is no such address"))?;
        let memory = debuggee.walk().program().memory();
        let there = memory.get(from as usize..).unwrap_or(&[]);
        let bytes = &there[..(of.count as usize).min(there.len())];
        Ok(json!({
            "address": format!("{from:#x}"),
            "data": BASE64.encode(bytes),
            "unreadableBytes": of.count as usize - bytes.len(),
        }))
    }

    fn exception_info(&self, of: &OfThread) -> anyhow::Result<Json> {
        let (_, debuggee) = self.debuggee(of.thread_id)?;
        let fault = debuggee.fault();
        let fault = fault.ok_or_else(|| anyhow::anyhow!("the machine has no fault here"))?;
        Ok(json!({ "exceptionId": "fault", "description": fault, "breakMode": "always" }))
    }
}

fn arguments<T: DeserializeOwned>(request: &Request) -> anyhow::Result<T> {
    let arguments = match &request.arguments {
        Json::Null => json!({}),
        arguments => arguments.clone(),
    };
    serde_json::from_value(arguments)
        .map_err(|error| anyhow::anyhow!("the arguments of {}: {error}", request.command))
}

fn plain(body: anyhow::Result<Json>) -> Answer {
    Ok((body?, After::Nothing))
}

fn known(debuggee: &Debuggee) -> anyhow::Result<&Variables> {
    let variables = debuggee.symbols().and_then(|symbols| symbols.variables());
    variables.ok_or_else(|| anyhow::anyhow!("nothing is known of the machine's variables"))
}

/// Where in a machine's memory a value is, or what it points to.
fn reference(
    machine: usize,
    variables: &Variables,
    value: &Value,
    program: &dyn Program,
) -> Option<String> {
    let pointed = variables.pointed(value, program).map(|pointed| pointed.place);
    match pointed.as_ref().unwrap_or(&value.place) {
        Place::Memory(address) => Some(format!("{machine}:{address}")),
        Place::Bytes(_) | Place::Gone => None,
    }
}

/// A file as the client is told of it.
fn source(file: &Path) -> Json {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = file.file_name().unwrap_or(file.as_os_str());
    json!({ "name": name.to_string_lossy(), "path": path.to_string_lossy() })
}

/// Adds a breakpoint; gives what the client is told of it.
fn added(
    session: &mut Session,
    at: BreakAt,
    only: &Only,
    first_line: i64,
    numbers: &mut Vec<u32>,
) -> anyhow::Result<Json> {
    let breakpoint = session.add_breakpoint(at, only.condition()?)?;
    numbers.push(breakpoint.number);
    let mut told = json!({ "id": breakpoint.number, "verified": true });
    if let Some((file, line)) = &breakpoint.line {
        told["line"] = (i64::from(*line) - 1 + first_line).into();
        told["source"] = source(Path::new(file));
    }
    Ok(told)
}

/// The answer of a breakpoint that can't be.
fn unverified(why: &anyhow::Error) -> Json {
    json!({ "verified": false, "message": format!("{why:#}") })
}

/// Watches what a client asks for; gives its number.
fn watched(session: &mut Session, breakpoint: &DataBreakpoint) -> anyhow::Result<u32> {
    let DataBreakpoint { data_id, access_type, only } = breakpoint;
    let is_of_writes = access_type.as_deref().is_none_or(|access| access == "write");
    anyhow::ensure!(is_of_writes, "only writes are watched, not reads");
    anyhow::ensure!(only.condition()?.is_none(), "what is watched takes no condition");
    let parts: Vec<u32> = data_id.split(':').filter_map(|part| part.parse().ok()).collect();
    match parts[..] {
        [machine, from, to] if (machine as usize) < session.machines.len() => {
            session.add_watch(machine as usize, data_id, from..to)
        }
        _ => Err(anyhow::anyhow!("there is no such data")),
    }
}

/// The event that a machine stopped, and why.
fn told(console: &Console, machine: usize, reason: &Reason, way: Way) -> (&'static str, Json) {
    match reason {
        Reason::Stepped => stopped(machine, "step", "", &[]),
        Reason::Breakpoint(number) => {
            let functions = console.session.breakpoints.iter();
            let mut functions = functions.filter(|one| matches!(one.at, BreakAt::Function(_)));
            let is_function = functions.any(|one| one.number == *number);
            let reason = if is_function { "function breakpoint" } else { "breakpoint" };
            stopped(machine, reason, "", &[*number])
        }
        Reason::Watched(number) => stopped(machine, "data breakpoint", "", &[*number]),
        Reason::Fault(fault) => stopped(machine, "exception", fault, &[]),
        Reason::Edge => stopped(machine, "pause", console.edge(way), &[]),
    }
}

fn stopped(machine: usize, reason: &str, text: &str, hit: &[u32]) -> (&'static str, Json) {
    let mut body = json!({
        "reason": reason,
        "threadId": machine as i64 + FIRST,
        "allThreadsStopped": true,
        "hitBreakpointIds": hit,
    });
    if !text.is_empty() {
        body["text"] = text.into();
        body["description"] = text.into();
    }
    ("stopped", body)
}
