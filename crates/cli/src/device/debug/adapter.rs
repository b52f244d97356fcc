//! The debugger as an adapter of the Debug Adapter Protocol: machines are threads, each at a moment of its own history.
//!
//! Invariant: a request that can't be served has an error for an answer, and changes nothing.

mod breakpoints;
mod requests;
mod values;

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value as Json, json};

use super::Subject;
use super::client::Allowed;
use super::console::Console;
use super::lines::is_own;
use super::protocol::{Came, Outlet, Request, read};
use super::session::{BreakAt, Debuggee, Reason, Session, Step, Way};
use super::view::{CALLS_MAX, Call};
use crate::make::variables::Value;
use requests::{Initialize, Launch, OfThread, arguments};

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

    fn exception_info(&self, of: &OfThread) -> anyhow::Result<Json> {
        let (_, debuggee) = self.debuggee(of.thread_id)?;
        let fault = debuggee.fault();
        let fault = fault.ok_or_else(|| anyhow::anyhow!("the machine has no fault here"))?;
        Ok(json!({ "exceptionId": "fault", "description": fault, "breakMode": "always" }))
    }
}

fn plain(body: anyhow::Result<Json>) -> Answer {
    Ok((body?, After::Nothing))
}

/// A file as the client is told of it.
fn source(file: &Path) -> Json {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = file.file_name().unwrap_or(file.as_os_str());
    json!({ "name": name.to_string_lossy(), "path": path.to_string_lossy() })
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
