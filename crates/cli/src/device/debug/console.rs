//! The debugger's commands, line by line: at a prompt, from a pipe or from a file.

mod completer;

use std::io::{BufRead, IsTerminal as _};
use std::ops::Range;
use std::path::Path;

use anyhow::Context as _;
use rustyline::error::ReadlineError;
use serde_json::{Value, json};
use tenure_replay::Position;
use tenure_wire::printable::counted;

use super::expression;
use super::lines::is_own;
use super::session::{BreakAt, Debuggee, Reason, Session, Step, Way};
use super::sources::Sources;
use super::view::Call;
use crate::device::recorded::seconds;
use crate::make::variables::Program as _;
use crate::terminal::output::Output;
use crate::written_file::nearest;
use completer::Words;

/// The longest line that is read, in bytes.
const LINE_BYTES_MAX: usize = 64 * 1024;
/// The lines of source before and behind the one where a machine stands, and lines of a log.
const LINES_AROUND: u32 = 5;
const LOG_LINES: usize = 20;
/// The most bytes of memory that are shown at once.
const SHOWN_BYTES_MAX: u32 = 4096;
const BYTES_A_ROW: usize = 16;

/// The effect of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Do {
    Go(Step, Way),
    Break,
    Watch,
    Breakpoints,
    Delete,
    LastWriter,
    Print,
    Locals,
    Raw,
    Memory,
    Where,
    Backtrace,
    Frame,
    Up,
    Down,
    List,
    Log,
    Faults,
    Goto,
    Machines,
    Machine,
    Help,
    Quit,
}

/// A command: its name, a short one, what stands behind it, what it does in words, and what it does.
type Command = (&'static str, &'static str, &'static str, &'static str, Do);

const COMMANDS: &[Command] = &[
    (
        "break",
        "b",
        "FILE:LINE|FUNCTION [if CONDITION]",
        "stop there, in each machine that has the place",
        Do::Break,
    ),
    (
        "watch",
        "w",
        "EXPRESSION|ADDRESS BYTES",
        "stop where these bytes of memory are changed",
        Do::Watch,
    ),
    ("breakpoints", "i", "", "show all of both", Do::Breakpoints),
    ("delete", "d", "NUMBER", "take one away", Do::Delete),
    ("continue", "c", "", "go on to the next stop or fault", Do::Go(Step::On, Way::Forwards)),
    ("reverse-continue", "rc", "", "go back to the last one", Do::Go(Step::On, Way::Backwards)),
    ("step", "s", "", "go to another line", Do::Go(Step::Into, Way::Forwards)),
    ("reverse-step", "rs", "", "go back to another line", Do::Go(Step::Into, Way::Backwards)),
    (
        "next",
        "n",
        "",
        "go to another line of this function, or out of it",
        Do::Go(Step::Over, Way::Forwards),
    ),
    (
        "reverse-next",
        "rn",
        "",
        "go back to another line of this function, or to its call",
        Do::Go(Step::Over, Way::Backwards),
    ),
    ("finish", "f", "", "go out of this function", Do::Go(Step::Out, Way::Forwards)),
    ("reverse-finish", "rf", "", "go back to its call", Do::Go(Step::Out, Way::Backwards)),
    ("stepi", "si", "", "go on by an instruction", Do::Go(Step::Instruction, Way::Forwards)),
    (
        "reverse-stepi",
        "rsi",
        "",
        "go back by an instruction",
        Do::Go(Step::Instruction, Way::Backwards),
    ),
    (
        "last-writer",
        "lw",
        "EXPRESSION|ADDRESS BYTES",
        "go back to who wrote these bytes of memory last",
        Do::LastWriter,
    ),
    ("print", "p", "EXPRESSION", "show what a variable, a member or an element is", Do::Print),
    ("locals", "l", "", "show the variables of this call", Do::Locals),
    ("raw", "r", "", "show its variables in WebAssembly: $0, $1, $g0", Do::Raw),
    ("memory", "x", "ADDRESS [BYTES]", "show bytes of memory", Do::Memory),
    ("where", "wh", "", "show where the machine stands", Do::Where),
    ("backtrace", "bt", "", "show the calls that led there", Do::Backtrace),
    ("frame", "fr", "NUMBER", "look at the variables of this call", Do::Frame),
    ("up", "u", "", "look at those of the caller", Do::Up),
    ("down", "do", "", "look at those of the call that it made", Do::Down),
    ("list", "li", "", "show the source around it", Do::List),
    ("log", "lo", "[COUNT]", "show the last lines of its log up to now", Do::Log),
    ("faults", "fa", "", "show the machine's faults, with their moments", Do::Faults),
    (
        "goto",
        "g",
        "start|end|fault|MOMENT",
        "go to a moment, such as 12+340, or to the last fault",
        Do::Goto,
    ),
    ("machines", "ms", "", "show all machines", Do::Machines),
    ("machine", "m", "NAME|NUMBER", "look at this machine", Do::Machine),
    ("help", "h", "[COMMAND]", "show this", Do::Help),
    ("quit", "q", "", "end", Do::Quit),
    ("exit", "e", "", "end", Do::Quit),
];

/// An answer: text for people, and an object of JSON.
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) object: Value,
}

/// Whether there is more to read.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

/// Gives a session commands: from a file if one is named, else from the terminal or a pipe.
///
/// # Errors
/// The file can't be read, or a command that doesn't come from a terminal fails.
pub(super) fn run(
    session: Session,
    commands: Option<&Path>,
    output: &Output,
) -> anyhow::Result<()> {
    let mut console = Console::new(session, Sources::All);
    if let Some(path) = commands {
        let shown = path.display().to_string();
        let file = std::fs::File::open(path).with_context(|| format!("can't read {shown}"))?;
        return read(&mut console, &mut std::io::BufReader::new(file), output).context(shown);
    }
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        return at_terminal(console, output);
    }
    read(&mut console, &mut std::io::stdin().lock(), output)
}

/// Executes lines until one fails.
fn read(console: &mut Console, from: &mut dyn BufRead, output: &Output) -> anyhow::Result<()> {
    for (number, line) in from.lines().enumerate() {
        let line = line?;
        let done = execute(console, &line, output);
        if done.with_context(|| format!("line {}: {}", number + 1, line.trim()))? == Next::End {
            break;
        }
    }
    Ok(())
}

/// Reads lines at a terminal until the user has had enough; a line that fails says why, and an empty one repeats the last.
fn at_terminal(mut console: Console, output: &Output) -> anyhow::Result<()> {
    let configuration = rustyline::Config::builder()
        .completion_type(rustyline::CompletionType::List)
        .auto_add_history(true)
        .build();
    let history = rustyline::history::MemHistory::new();
    let editor = rustyline::Editor::<Words, _>::with_history(configuration, history);
    let mut editor = editor.context("the terminal")?;
    editor.set_helper(Some(Words::of(&console)));
    let hint = "`help` lists the commands, Ctrl-D ends";
    output.line(&format!("{}\n{hint}", console.machines().text), &Value::Null);
    let mut last = String::new();
    loop {
        match editor.readline("debug> ") {
            Ok(line) => {
                last = if line.trim().is_empty() { last } else { line };
                match execute(&mut console, &last, output) {
                    Ok(Next::Line) => {}
                    Ok(Next::End) => return Ok(()),
                    Err(error) => output.failure(&error),
                }
            }
            Err(ReadlineError::Interrupted) => {}
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(error).context("the terminal"),
        }
    }
}

fn execute(console: &mut Console, line: &str, output: &Output) -> anyhow::Result<Next> {
    match console.execute(line)? {
        Some(answer) if !answer.text.is_empty() => output.line(&answer.text, &answer.object),
        Some(_) => {}
        None => return Ok(Next::End),
    }
    Ok(Next::Line)
}

/// A session, and what is looked at in it.
pub(super) struct Console {
    pub(super) session: Session,
    sources: Sources,
    machine: usize,
    /// The call whose variables are looked at, from the innermost on.
    call: usize,
}

impl Console {
    /// Looks at the first machine of a session, which has one.
    pub(super) fn new(session: Session, sources: Sources) -> Self {
        Self { session, sources, machine: 0, call: 0 }
    }

    /// Looks at a call of a machine that there is, from the innermost on.
    pub(super) fn look_at(&mut self, machine: usize, call: usize) {
        (self.machine, self.call) = (machine, call);
    }

    /// Whether a line begins with a command's name.
    pub(super) fn is_command(line: &str) -> bool {
        let word = line.split_whitespace().next().unwrap_or_default();
        COMMANDS.iter().any(|(name, ..)| *name == word)
    }

    /// Does what a line says; `None` at the end of the session. What follows a # is a comment.
    ///
    /// # Errors
    /// The line is no command, or its command fails; nothing has moved then.
    pub(super) fn execute(&mut self, line: &str) -> anyhow::Result<Option<Answer>> {
        anyhow::ensure!(line.len() <= LINE_BYTES_MAX, "the line is too long");
        let line = line.split_once('#').map_or(line, |(line, _)| line).trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        if word.is_empty() {
            return Ok(Some(Answer { text: String::new(), object: Value::Null }));
        }
        let rest = rest.trim();
        let known = COMMANDS.iter().find(|(name, short, ..)| *name == word || *short == word);
        let Some((.., what)) = known else {
            let near = nearest(word, COMMANDS.iter().map(|(name, ..)| *name));
            let meant = near.map_or(String::new(), |near| format!("; did you mean `{near}`?"));
            anyhow::bail!("there is no command {word}{meant}");
        };
        Ok(Some(match what {
            Do::Go(step, way) => self.go(*step, *way)?,
            Do::Break => self.add_breakpoint(rest)?,
            Do::Watch => self.watch(rest)?,
            Do::Breakpoints => self.breakpoints(),
            Do::Delete => self.delete(rest)?,
            Do::LastWriter => self.last_writer(rest)?,
            Do::Print => self.print(rest)?,
            Do::Locals => self.locals()?,
            Do::Raw => self.raw()?,
            Do::Memory => self.memory(rest)?,
            Do::Where => self.place(),
            Do::Backtrace => self.backtrace()?,
            Do::Frame => self.frame(number(rest)?)?,
            Do::Up => self.frame(self.call + 1)?,
            Do::Down => {
                self.frame(self.call.checked_sub(1).context("this is the innermost call")?)?
            }
            Do::List => self.list()?,
            Do::Log => self.log(if rest.is_empty() { LOG_LINES } else { number(rest)? }),
            Do::Faults => self.faults(),
            Do::Goto => self.go_to(rest)?,
            Do::Machines => self.machines(),
            Do::Machine => self.choose(rest)?,
            Do::Help => help(rest)?,
            Do::Quit => return Ok(None),
        }))
    }

    fn debuggee(&self) -> &Debuggee {
        &self.session.machines[self.machine]
    }

    /// The call that is looked at.
    fn looked_at(&self) -> Option<Call> {
        self.debuggee().view().stack().into_iter().nth(self.call)
    }

    fn go(&mut self, step: Step, way: Way) -> anyhow::Result<Answer> {
        self.call = 0;
        let reason = self.session.step(self.machine, step, way);
        if let Reason::Fault(_) = reason {
            self.call = self.own_call();
        }
        Ok(self.stopped(&reason, way))
    }

    /// The innermost call of the author's own source, which what ends a machine is called from; the innermost of all if
    /// there is none.
    fn own_call(&self) -> usize {
        let stack = self.debuggee().view().stack();
        stack.iter().position(|call| call.file.as_deref().is_some_and(is_own)).unwrap_or(0)
    }

    /// Where a machine stopped, and why.
    fn stopped(&self, reason: &Reason, way: Way) -> Answer {
        let place = self.place();
        let (why, word) = match reason {
            Reason::Stepped => (None, "step"),
            Reason::Breakpoint(number) => (Some(format!("breakpoint {number}")), "breakpoint"),
            Reason::Watched(number) => (Some(self.change_of(*number, way)), "watch"),
            Reason::Fault(fault) => (Some(format!("fault: {fault}")), "fault"),
            Reason::Edge => (Some(self.edge(way).to_owned()), "edge"),
        };
        let mut object = place.object;
        object["reason"] = word.into();
        object["why"] = why.clone().into();
        let text = why.map_or(place.text.clone(), |why| format!("{why}\n{}", place.text));
        Answer { text, object }
    }

    pub(super) fn edge(&self, way: Way) -> &'static str {
        match way {
            Way::Forwards => self.session.end,
            Way::Backwards => "the machine's history begins here",
        }
    }

    /// The change of a watched range, in words.
    fn change_of(&self, number: u32, way: Way) -> String {
        let watch = self.session.watches.iter().find(|watch| watch.number == number);
        let Some(watch) = watch else { return format!("watch {number}") };
        let (was, is) = self.change(&watch.range, way);
        format!("watch {number}, {}: {was} became {is}", watch.text)
    }

    /// The bytes of a range before the instruction that changed them, and behind it.
    fn change(&self, range: &Range<u32>, way: Way) -> (String, String) {
        let here = self.debuggee().walk();
        let mut other = here.clone();
        let text = |walk: &tenure_replay::Walk| {
            let (from, to) = (range.start as usize, range.end as usize);
            let memory = walk.program().memory();
            let bytes = memory.get(from..to.min(memory.len())).unwrap_or(&[]);
            let mut bytes = bytes.to_vec();
            bytes.resize(to - from, 0);
            shown_bytes(&bytes)
        };
        match way {
            Way::Forwards => {
                other.back();
                (text(&other), text(here))
            }
            Way::Backwards => {
                other.forward();
                (text(here), text(&other))
            }
        }
    }

    fn add_breakpoint(&mut self, rest: &str) -> anyhow::Result<Answer> {
        let (place, condition) = match rest.split_once(" if ") {
            Some((place, condition)) => (place.trim(), Some(condition.trim())),
            None => (rest, None),
        };
        anyhow::ensure!(!place.is_empty(), "where? break FILE:LINE or break FUNCTION");
        let line = place.rsplit_once(':').and_then(|(path, line)| Some((path, line.parse().ok()?)));
        let at = match line {
            Some((path, line)) if !path.is_empty() && !path.ends_with(':') => {
                BreakAt::Line(path.to_owned(), line)
            }
            _ => BreakAt::Function(place.to_owned()),
        };
        let breakpoint = self.session.add_breakpoint(at, condition)?;
        let number = breakpoint.number;
        let at = breakpoint.line.as_ref().map(|(file, line)| format!(" at {file}:{line}"));
        let text = format!("breakpoint {number}{}", at.unwrap_or_default());
        let object = json!({ "event": "breakpoint", "number": number, "line": breakpoint.line });
        Ok(Answer { text, object })
    }

    /// The range of memory that is meant: an expression's value, or so many bytes from an address on.
    fn range(&self, text: &str) -> anyhow::Result<Range<u32>> {
        let words: Vec<&str> = text.split_whitespace().collect();
        if let [address, bytes] = words[..]
            && let (Ok(address), Ok(bytes)) = (number::<u32>(address), number::<u32>(bytes))
        {
            let end = address.checked_add(bytes).context("there is no such memory")?;
            return Ok(address..end);
        }
        let expression = expression::parse(text)?;
        Ok(self.debuggee().range(&expression, self.looked_at().as_ref())?)
    }

    fn watch(&mut self, rest: &str) -> anyhow::Result<Answer> {
        let range = self.range(rest)?;
        let (from, bytes) = (range.start, range.end - range.start);
        let number = self.session.add_watch(self.machine, rest, range)?;
        let text = format!("watch {number}: {bytes} bytes at {from:#x}");
        let object = json!({ "event": "watch", "number": number, "address": from, "bytes": bytes });
        Ok(Answer { text, object })
    }

    fn breakpoints(&self) -> Answer {
        let Session { breakpoints, watches, machines, .. } = &self.session;
        let mut lines: Vec<String> = Vec::new();
        for one in breakpoints {
            let place = match (&one.line, &one.at) {
                (Some((file, line)), _) => format!("{file}:{line}"),
                (None, BreakAt::Line(file, line)) => format!("{file}:{line}"),
                (None, BreakAt::Function(name)) => name.clone(),
            };
            let condition = one.condition.as_ref().map(|(text, _)| format!(" if {text}"));
            lines.push(format!("{} break {place}{}", one.number, condition.unwrap_or_default()));
        }
        for one in watches {
            let machine = machines.get(one.machine).map_or("", |machine| machine.name.as_str());
            lines.push(format!("{} watch {} of {machine}", one.number, one.text));
        }
        let object = json!({ "event": "breakpoints", "breakpoints": lines });
        let text = if lines.is_empty() { "none".to_owned() } else { lines.join("\n") };
        Answer { text, object }
    }

    fn delete(&mut self, rest: &str) -> anyhow::Result<Answer> {
        let number = number(rest)?;
        anyhow::ensure!(self.session.remove(number), "there is no breakpoint {number}");
        let object = json!({ "event": "deleted", "number": number });
        Ok(Answer { text: format!("deleted {number}"), object })
    }

    fn last_writer(&mut self, rest: &str) -> anyhow::Result<Answer> {
        let range = self.range(rest)?;
        let here = self.debuggee().walk().position();
        if !self.session.last_writer(self.machine, range.clone()) {
            self.session.machines[self.machine].go(here);
            anyhow::bail!("nobody has written it before, since the machine's history begins");
        }
        self.call = 0;
        let (was, is) = self.change(&range, Way::Backwards);
        let place = self.place();
        let mut object = place.object;
        object["reason"] = "last-writer".into();
        Ok(Answer { text: format!("here {was} becomes {is}\n{}", place.text), object })
    }

    fn print(&self, rest: &str) -> anyhow::Result<Answer> {
        let text = self.evaluate(rest, self.looked_at().as_ref())?;
        let object = json!({ "event": "value", "expression": rest, "value": text });
        Ok(Answer { text, object })
    }

    /// The worth of an expression in a call.
    ///
    /// # Errors
    /// It is none, or has no value there.
    pub(super) fn evaluate(&self, text: &str, call: Option<&Call>) -> anyhow::Result<String> {
        Ok(self.debuggee().show(&expression::parse(text)?, call)?)
    }

    fn locals(&self) -> anyhow::Result<Answer> {
        let call = self.looked_at().context("no call is under way")?;
        let view = self.debuggee().view();
        let variables = view.symbols.and_then(|symbols| symbols.variables());
        let program = view.of_call(&call);
        let shown: Vec<(String, String)> = view
            .variables(&call)
            .into_iter()
            .filter_map(|one| Some((one.name, variables?.show(&one.value, &program))))
            .collect();
        Ok(pairs("locals", &shown, "none that is known; `raw` shows those of WebAssembly"))
    }

    fn raw(&self) -> anyhow::Result<Answer> {
        let call = self.looked_at().context("no call is under way")?;
        let view = self.debuggee().view();
        let raw = view.locals(&call).into_iter().chain(view.globals());
        let shown: Vec<(String, String)> = raw.map(|raw| (raw.name, raw.text)).collect();
        Ok(pairs("raw", &shown, "none"))
    }

    fn memory(&self, rest: &str) -> anyhow::Result<Answer> {
        let mut words = rest.split_whitespace();
        let address: u32 = number(words.next().context("which? memory ADDRESS [BYTES]")?)?;
        let count: u32 = words.next().map_or(Ok(64), number)?;
        anyhow::ensure!(count <= SHOWN_BYTES_MAX, "at most {SHOWN_BYTES_MAX} bytes are shown");
        let program = self.debuggee().view().of_no_call();
        let bytes = program.read(address, count as usize);
        let bytes = bytes.with_context(|| format!("there are no {count} bytes at {address:#x}"))?;
        let rows = bytes.chunks(BYTES_A_ROW).enumerate().map(|(row, bytes)| {
            let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            let text = bytes.iter().map(|byte| match byte {
                0x20..0x7F => char::from(*byte),
                _ => '.',
            });
            let at = address as usize + row * BYTES_A_ROW;
            format!("{at:#010x}  {:<47}  {}", digits.join(" "), text.collect::<String>())
        });
        let text = rows.collect::<Vec<_>>().join("\n");
        let object = json!({
            "event": "memory",
            "address": address,
            "bytes": crate::terminal::output::hex(&bytes),
        });
        Ok(Answer { text, object })
    }

    /// Where the machine stands.
    fn place(&self) -> Answer {
        let debuggee = self.debuggee();
        let (walk, call) = (debuggee.walk(), self.looked_at());
        let (leg, Position { leg: number, units }) = (walk.leg(), walk.position());
        let (at_ms, input) = (leg.at.as_millis(), leg.input);
        let when = seconds(at_ms);
        let task = leg.function.as_ref().map(|task| format!(", in `{task}`")).unwrap_or_default();
        let head = format!("{} at {number}+{units}: {when}, input {input}{task}", debuggee.name);
        let function = call.as_ref().map(|call| call.function.clone());
        let file = call.as_ref().and_then(|call| call.file.clone());
        let line = call.as_ref().and_then(|call| call.line);
        let source = file
            .as_deref()
            .zip(line)
            .and_then(|(file, line)| source_line(&self.sources, file, line));
        let code = call.as_ref().map(|call| format!("  {}", shown_call(call)));
        let lines = [Some(head), code, source.map(|(line, text)| format!("{line:>6}  {text}"))];
        let text = lines.into_iter().flatten().collect::<Vec<_>>().join("\n");
        let object = json!({
            "event": "stopped",
            "machine": debuggee.name,
            "leg": number,
            "units": units,
            "at_ms": at_ms,
            "input": input,
            "task": leg.function.as_deref(),
            "function": function,
            "file": file,
            "line": line,
            "fault": debuggee.fault(),
        });
        Answer { text, object }
    }

    fn backtrace(&self) -> anyhow::Result<Answer> {
        let stack = self.debuggee().view().stack();
        anyhow::ensure!(!stack.is_empty(), "no call is under way");
        let lines = stack.iter().enumerate().map(|(number, call)| {
            let mark = if number == self.call { '>' } else { ' ' };
            format!("{mark}{number:>3} {}", shown_call(call))
        });
        let calls: Vec<Value> = stack
            .iter()
            .map(|call| json!({ "function": call.function, "file": call.file, "line": call.line }))
            .collect();
        let text = lines.collect::<Vec<_>>().join("\n");
        Ok(Answer { text, object: json!({ "event": "backtrace", "calls": calls }) })
    }

    fn frame(&mut self, number: usize) -> anyhow::Result<Answer> {
        let stack = self.debuggee().view().stack();
        let call = stack.get(number).context("there is no such call; `backtrace` shows all")?;
        let text = format!("{number} {}", shown_call(call));
        let object = json!({ "event": "frame", "number": number, "function": call.function });
        self.call = number;
        Ok(Answer { text, object })
    }

    fn list(&self) -> anyhow::Result<Answer> {
        let call = self.looked_at().context("no call is under way")?;
        let (file, line) = call.file.as_deref().zip(call.line).context("its source isn't known")?;
        let source = self.sources.read(file)?;
        let from = line.saturating_sub(LINES_AROUND).max(1);
        let lines = source.lines().zip(1_u32..).skip(from as usize - 1);
        let lines = lines.take(2 * LINES_AROUND as usize + 1).map(|(text, number)| {
            let mark = if number == line { '>' } else { ' ' };
            format!("{mark}{number:>5}  {text}")
        });
        let text = lines.collect::<Vec<_>>().join("\n");
        let object = json!({ "event": "source", "file": file, "line": line, "text": text });
        Ok(Answer { text, object })
    }

    fn log(&self, count: usize) -> Answer {
        let walk = self.debuggee().walk();
        let here = walk.position().leg + usize::from(walk.has_failed());
        let until = walk.history().lines.partition_point(|line| line.leg <= here);
        let lines = &walk.history().lines[until.saturating_sub(count)..until];
        let shown = lines.iter().map(|line| {
            format!("{:>10} {:<7} {}", seconds(line.at.as_millis()), line.level, line.message)
        });
        let text = shown.collect::<Vec<_>>().join("\n");
        let object = json!({ "event": "log", "lines": lines.iter().map(|line| {
            json!({ "at_ms": line.at.as_millis(), "level": line.level, "message": line.message })
        }).collect::<Vec<_>>() });
        Answer { text: if text.is_empty() { "nothing".to_owned() } else { text }, object }
    }

    fn faults(&self) -> Answer {
        let faults = self.debuggee().faults();
        let shown: Vec<(String, String)> = faults
            .into_iter()
            .map(|(Position { leg, units }, fault)| (format!("{leg}+{units}"), fault))
            .collect();
        pairs("faults", &shown, "none")
    }

    fn go_to(&mut self, rest: &str) -> anyhow::Result<Answer> {
        let history = std::sync::Arc::clone(self.debuggee().walk().history());
        let to = match rest {
            "start" => Position::default(),
            "end" => history.end(),
            "fault" => {
                let here = self.debuggee().walk().position();
                let faults = self.debuggee().faults();
                let before = faults.iter().rfind(|(position, _)| *position < here);
                before.or(faults.last()).context("the machine has no fault")?.0
            }
            moment => {
                let (leg, units) = moment
                    .split_once('+')
                    .context("a moment is LEG+UNITS, as in 12+340; `start`, `end` and `fault` are moments, too")?;
                let to = Position { leg: number(leg)?, units: number(units)? };
                anyhow::ensure!(to.leg < history.legs(), "the last leg is {}", history.legs() - 1);
                to
            }
        };
        self.session.machines[self.machine].go(to);
        self.call = 0;
        let reason = match self.debuggee().fault() {
            Some(fault) => {
                self.call = self.own_call();
                Reason::Fault(fault)
            }
            None => Reason::Stepped,
        };
        Ok(self.stopped(&reason, Way::Forwards))
    }

    fn machines(&self) -> Answer {
        let mut lines = Vec::new();
        for (number, machine) in self.session.machines.iter().enumerate() {
            let history = machine.walk().history();
            let mark = if number == self.machine { '>' } else { ' ' };
            let known = if machine.symbols().is_some() { "" } else { ", package unknown" };
            let (end, faults) = (history.distance(history.end()), machine.faults().len());
            lines.push(format!(
                "{mark}{} {}: {end} units of fuel on {}, {}{known}",
                number + 1,
                machine.name,
                counted(history.legs(), "leg"),
                counted(faults, "fault"),
            ));
        }
        let object = json!({ "event": "machines", "machines": lines });
        Answer { text: lines.join("\n"), object }
    }

    fn choose(&mut self, rest: &str) -> anyhow::Result<Answer> {
        let mut machines = self.session.machines.iter();
        let named = machines.position(|machine| {
            machine.name == rest || machine.walk().history().machine.as_str() == rest
        });
        let numbered = rest.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
        let machine = named.or(numbered).filter(|number| *number < self.session.machines.len());
        self.machine = machine.with_context(|| format!("there is no machine {rest}"))?;
        self.call = 0;
        Ok(self.place())
    }
}

/// A number, in decimal or hexadecimal digits.
fn number<T: TryFrom<u64>>(text: &str) -> anyhow::Result<T> {
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    let number = number.ok().and_then(|number| T::try_from(number).ok());
    number.with_context(|| format!("{text:?} is no number that can stand here"))
}

/// Names with their values, a line each.
fn pairs(event: &str, shown: &[(String, String)], nothing: &str) -> Answer {
    let lines = shown.iter().map(|(name, value)| format!("{name} = {value}"));
    let text = lines.collect::<Vec<_>>().join("\n");
    let object = shown.iter().map(|(name, value)| json!({ "name": name, "value": value }));
    let object = json!({ "event": event, event: object.collect::<Vec<_>>() });
    Answer { text: if text.is_empty() { nothing.to_owned() } else { text }, object }
}

/// Bytes as a number if they may be one, else as they are.
fn shown_bytes(bytes: &[u8]) -> String {
    match bytes.len() {
        1 | 2 | 4 | 8 => {
            let number = bytes.iter().rev().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
            format!("{number} ({number:#x})")
        }
        _ => crate::terminal::output::hex(bytes),
    }
}

/// A call in a line.
fn shown_call(call: &Call) -> String {
    match (&call.file, call.line) {
        (Some(file), Some(line)) => format!("{} at {}:{line}", call.function, file.display()),
        _ => format!("{} at offset {:#x}", call.function, call.site.offset),
    }
}

/// A line of a file, with its number, if the file is there.
fn source_line(sources: &Sources, file: &Path, line: u32) -> Option<(u32, String)> {
    let source = sources.read(file).ok()?;
    let text = source.lines().nth(line.checked_sub(1)? as usize)?;
    Some((line, text.trim_end().to_owned()))
}

fn help(rest: &str) -> anyhow::Result<Answer> {
    let meant = COMMANDS
        .iter()
        .filter(|(name, short, ..)| rest.is_empty() || *name == rest || *short == rest);
    let lines: Vec<String> = meant
        .map(|(name, short, behind, what, _)| {
            let usage = format!("{name} {behind}");
            format!("{:<40} {short:<4} {what}", usage.trim_end())
        })
        .collect();
    anyhow::ensure!(!lines.is_empty(), "there is no command {rest}; `help` lists all");
    let object = json!({ "event": "help", "commands": lines });
    Ok(Answer { text: lines.join("\n"), object })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_of_commands_are_each_of_one() {
        let names: Vec<&str> =
            COMMANDS.iter().flat_map(|(name, short, ..)| [*name, *short]).collect();
        assert_eq!(BTreeSet::from_iter(&names).len(), names.len());
    }

    #[test]
    fn numbers_are_decimal_or_hexadecimal() {
        assert_eq!(number::<u32>("0x1f").unwrap(), 31);
        assert_eq!(number::<usize>("12").unwrap(), 12);
        assert!(number::<u32>("4294967296").is_err() && number::<u32>("-1").is_err());
        assert!(number::<u32>("").is_err() && number::<u32>("0x").is_err());
    }
}
