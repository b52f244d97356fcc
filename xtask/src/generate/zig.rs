//! The Zig module: raw imports and the error set.

use std::fmt::Write as _;

use tenure_wire::host_call::{HostCallInfo, MODULE, Parameter, ParameterKind, ResultKind};

use super::{Description, NOTICE, sentence};

pub(super) fn module(description: &Description) -> String {
    let mut text = format!(
        "//! {NOTICE}\n//! The raw host calls; tenure.zig is what programs use.\n\n\
         /// Why a host call failed.\npub const Error = error{{\n"
    );
    for (error, name) in description.errors {
        let _ = writeln!(text, "    /// {}\n    {name},", sentence(error));
    }
    text += "};\n\n/// The error with this number, as host calls give it.\n\
             pub fn errorOf(code: i32) Error {\n    return switch (code) {\n";
    for (error, name) in description.errors.iter().filter(|(_, name)| *name != "Device") {
        let _ = writeln!(text, "        {} => Error.{name},", error.code());
    }
    text += "        else => Error.Device,\n    };\n}\n\n/// An error in a few words.\n\
             pub fn errorText(err: Error) []const u8 {\n    return switch (err) {\n";
    for (error, name) in description.errors {
        let _ = writeln!(text, "        Error.{name} => \"{error}\",");
    }
    text += "    };\n}\n";
    for call in description.calls {
        text += &declaration(call);
    }
    text
}

fn declaration(call: &HostCallInfo) -> String {
    let mut text = String::from("\n");
    for line in call.documentation() {
        let _ = writeln!(text, "///{line}");
    }
    let parameters: Vec<String> = call.parameters.iter().flat_map(parameter).collect();
    let result = match call.result {
        ResultKind::Nothing => "void",
        ResultKind::Status => "i32",
        ResultKind::Time => "i64",
    };
    let (name, parameters) = (call.name, parameters.join(", "));
    text + &format!("pub extern \"{MODULE}\" fn {name}({parameters}) {result};\n")
}

fn parameter(parameter: &Parameter) -> Vec<String> {
    let name = parameter.name;
    match parameter.kind {
        ParameterKind::Word => vec![format!("{name}: u32")],
        ParameterKind::Buffer => {
            vec![format!("{name}: ?[*]u8"), format!("{name}_capacity: usize")]
        }
        ParameterKind::Text | ParameterKind::Bytes | ParameterKind::Optional => {
            vec![format!("{name}: ?[*]const u8"), format!("{name}_length: usize")]
        }
    }
}
