//! The values that an editor is shown: variables of a call, parts of them, results of expressions, memory.

use data_encoding::BASE64;
use serde_json::{Value as Json, json};

use super::super::console::Console;
use super::super::expression::{self, Worth};
use super::super::session::Debuggee;
use super::super::view::CALLS_MAX;
use super::requests::{Evaluate, OfFrame, OfVariables, ReadMemory};
use super::{Adapter, After, Answer, FIRST, Handle};
use crate::make::variables::{Number, Place, Program, Value, Variable, Variables};

/// The most values that a client may have open, and bytes of memory that it is shown at once.
const HANDLES_MAX: usize = 100_000;
const READ_BYTES_MAX: u64 = 1024 * 1024;

impl Adapter<'_> {
    pub(super) fn scopes(&mut self, of: &OfFrame) -> anyhow::Result<Json> {
        let (machine, _, _) = self.call(of.frame_id)?;
        let number = (of.frame_id - FIRST) as usize % CALLS_MAX;
        let locals = self.handle(machine, Handle::Locals(number))?;
        let raw = self.handle(machine, Handle::Raw(number))?;
        Ok(json!({ "scopes": [
            { "name": "Locals", "presentationHint": "locals", "variablesReference": locals, "expensive": false },
            { "name": "WebAssembly", "presentationHint": "registers", "variablesReference": raw, "expensive": false },
        ] }))
    }

    pub(super) fn handle(&mut self, machine: usize, handle: Handle) -> anyhow::Result<i64> {
        anyhow::ensure!(self.handles.len() < HANDLES_MAX, "too many values are open");
        self.last_handle += 1;
        self.handles.insert(self.last_handle, (machine, handle));
        Ok(self.last_handle)
    }

    /// Forgets what was shown of a machine.
    pub(super) fn forget(&mut self, machine: usize) {
        self.handles.retain(|_, (of, _)| *of != machine);
    }

    pub(super) fn variables(&mut self, of: &OfVariables) -> anyhow::Result<Json> {
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

    pub(super) fn raw(&self, machine: usize, call: usize) -> anyhow::Result<Vec<Json>> {
        let (_, debuggee, call) = self.call((machine * CALLS_MAX + call) as i64 + FIRST)?;
        let view = debuggee.view();
        let raw = view.locals(&call).into_iter().chain(view.globals());
        Ok(raw
            .map(|raw| json!({ "name": raw.name, "value": raw.text, "variablesReference": 0 }))
            .collect())
    }

    /// The variables of a call, or the parts of a value in it.
    pub(super) fn listed(
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
    pub(super) fn shown(
        &mut self,
        machine: usize,
        call: usize,
        variable: Variable,
    ) -> anyhow::Result<Json> {
        let Variable { name, value } = variable;
        let mut shown = self.shown_value(machine, call, value)?;
        shown["name"] = name.into();
        Ok(shown)
    }

    pub(super) fn shown_value(
        &mut self,
        machine: usize,
        call: usize,
        value: Value,
    ) -> anyhow::Result<Json> {
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

    pub(super) fn evaluate(&mut self, of: &Evaluate) -> Answer {
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

    pub(super) fn read_memory(&self, of: &ReadMemory) -> anyhow::Result<Json> {
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
}

/// What is known of a machine's variables.
///
/// # Errors
/// Nothing is.
pub(super) fn known(debuggee: &Debuggee) -> anyhow::Result<&Variables> {
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
