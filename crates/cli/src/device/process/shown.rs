//! What a device's process says of its node's notices.

use serde_json::json;
use tenure_node::Notice;
use tenure_wire::console::{IN_MESH, LISTED};

use crate::make::symbols::MachineSymbols;
use crate::terminal::output::Output;

/// Shows what a node has to say.
pub fn show(notice: &Notice, symbols: &MachineSymbols, output: &Output) {
    match notice {
        Notice::Log(line) => output.log(line, &symbols.trace_in(line)),
        Notice::Registered => {
            output.line(LISTED, &json!({ "event": "registered" }))
        }
        Notice::Refused(refusal) => output.line(
            &format!("the hub refuses to list this device: {refusal}"),
            &json!({ "event": "refused", "reason": refusal.to_string() }),
        ),
        Notice::FirmwareConfirmed { number } => output.line(
            &format!("firmware {number} is well, and stays"),
            &json!({ "event": "firmware-confirmed", "number": number }),
        ),
        Notice::Mandated { machine, version } => output.line(
            &format!("{machine} has {version} now, by a rollout"),
            &json!({ "event": "mandated", "machine": machine.as_str(), "version": version }),
        ),
        Notice::StepRefused { machine, reason } => output.line(
            &format!("the hub's step for {machine} isn't taken: {reason}"),
            &json!({ "event": "step-refused", "machine": machine.as_str(), "reason": reason }),
        ),
        Notice::InMesh { node } => output.line(
            &format!("{IN_MESH} {node}: a member passed the owner's invitation on"),
            &json!({ "event": "mesh-joined", "node": node.to_string() }),
        ),
        Notice::HubSilent => output.line(
            "the hub doesn't answer; trying on",
            &json!({ "event": "hub-silent" }),
        ),
        Notice::HubKeyDiffers { key } => output.line(
            &format!(
                "the hub's address shows the key {key}, which isn't the hub's that this device knows; \
                 if it is right, type: tenure trust-hub {key}"
            ),
            &json!({ "event": "hub-key-differs", "key": key.to_string() }),
        ),
    }
}
