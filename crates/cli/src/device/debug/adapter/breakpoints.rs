//! The breakpoints of an editor: by lines, of functions, and of memory that is watched.

use std::ops::Range;
use std::path::Path;

use serde_json::{Value as Json, json};

use super::super::expression;
use super::super::session::{BreakAt, Session};
use super::requests::{
    DataBreakpoint, DataInfo, FunctionBreakpoint, Only, SetBreakpoints, SetDataBreakpoints,
    SetFunctionBreakpoints, Source, SourceBreakpoint,
};
use super::values::known;
use super::{Adapter, FIRST, Handle, source};
use crate::make::variables::{Place, Variable};

impl Adapter<'_> {
    pub(super) fn set_breakpoints(&mut self, set: SetBreakpoints) -> anyhow::Result<Json> {
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

    pub(super) fn set_function_breakpoints(
        &mut self,
        set: SetFunctionBreakpoints,
    ) -> anyhow::Result<Json> {
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

    pub(super) fn data_info(&self, of: &DataInfo) -> anyhow::Result<Json> {
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
    pub(super) fn data_range(&self, of: &DataInfo) -> anyhow::Result<(usize, Range<u32>)> {
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

    pub(super) fn set_data_breakpoints(
        &mut self,
        set: &SetDataBreakpoints,
    ) -> anyhow::Result<Json> {
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
