//! The service of this leaf: a thermostat that keeps the degrees it is set to, and can be told to do as
//! another one does.

use alloc::string::String;
use alloc::vec::Vec;

use tenure_node::{Ask, Outcome, Service, ServiceCall, ServiceTree};
use tenure_rpc::NoResult;
use tenure_store::ValueKind;

const DEGREES: &str = "degrees";
/// Until it is set.
const DEGREES_FIRST: &[u8] = b"21.0";
/// The longest text that it takes for degrees.
const DEGREES_BYTES_MAX: usize = 16;

/// The thermostat. All that it knows is in its tree.
pub(crate) struct Thermostat;

impl Service for Thermostat {
    fn functions(&self) -> &[&str] {
        &["read", "set", "follow"]
    }

    fn call(&mut self, call: &ServiceCall<'_>, tree: &mut dyn ServiceTree) -> Outcome {
        let parameter = call.parameter.unwrap_or_default();
        match call.function {
            "set" => Outcome::Done(set(tree, parameter)),
            "follow" => {
                ask(parameter).map_or(Outcome::Done(Err(NoResult::Execution)), Outcome::Ask)
            }
            _ => Outcome::Done(read(tree)),
        }
    }

    fn go_on(
        &mut self,
        answer: Result<Option<Vec<u8>>, NoResult>,
        tree: &mut dyn ServiceTree,
    ) -> Result<Option<Vec<u8>>, NoResult> {
        let degrees = answer.ok().flatten().ok_or(NoResult::Execution)?;
        set(tree, &degrees)
    }
}

/// The degrees.
fn read(tree: &mut dyn ServiceTree) -> Result<Option<Vec<u8>>, NoResult> {
    let value = tree.get(DEGREES).map_err(|_| NoResult::Execution)?;
    Ok(Some(value.map_or_else(|| DEGREES_FIRST.to_vec(), |value| value.bytes)))
}

/// Keeps other degrees, and gives them back.
fn set(tree: &mut dyn ServiceTree, text: &[u8]) -> Result<Option<Vec<u8>>, NoResult> {
    let is_number = |text: &[u8]| {
        text.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'))
            && text.iter().any(u8::is_ascii_digit)
    };
    if text.len() > DEGREES_BYTES_MAX || !is_number(text) {
        return Err(NoResult::Execution);
    }
    tree.set(DEGREES, ValueKind::Text, text).map_err(|_| NoResult::Execution)?;
    Ok(Some(text.to_vec()))
}

/// The question to the thermostat that `text` names, as in `thermostat@attic`.
fn ask(text: &[u8]) -> Option<Ask> {
    let (machine, device) = core::str::from_utf8(text).ok()?.split_once('@')?;
    Some(Ask {
        machine: machine.parse().ok()?,
        device: device.parse().ok()?,
        function: String::from("read"),
        parameter: None,
    })
}
