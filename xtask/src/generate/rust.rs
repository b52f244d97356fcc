//! The Rust module: raw imports and the error type.

use std::fmt::Write as _;

use tenure_wire::host_call::{HostCallInfo, MODULE, Parameter, ParameterKind, ResultKind};

use super::{Description, NOTICE, sentence};

/// How wide rustfmt lets a line be (`rustfmt.toml`).
const LINE_WIDTH: usize = 100;

pub(super) fn module(description: &Description) -> String {
    let mut text = format!(
        "//! The raw host calls; the crate's other modules are what programs use.\n//!\n\
         //! {NOTICE}\n\n\
         #[cfg(not(any(target_arch = \"wasm32\", target_os = \"none\")))]\n\
         pub use elsewhere::*;\n\
         #[cfg(target_arch = \"wasm32\")]\npub use machine::*;\n\
         #[cfg(target_os = \"none\")]\npub use native::*;\n\n"
    );
    text += &error_type(description);
    text += "\n#[cfg(target_arch = \"wasm32\")]\nmod machine {\n";
    let _ = writeln!(text, "    #[link(wasm_import_module = \"{MODULE}\")]");
    text += "    unsafe extern \"C\" {\n";
    for (position, call) in description.calls.iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        for line in call.documentation() {
            let _ = writeln!(text, "        ///{line}");
        }
        text += &signature(call, "        ", "pub ", ";\n");
    }
    text += "    }\n}\n\n";
    text += &native(description);
    text += "/// The same names where there is no host, so that a program's own tests can be built.\n\
             #[cfg(not(any(target_arch = \"wasm32\", target_os = \"none\")))]\n\
             #[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]\n\
             #[allow(missing_docs, unused_variables)]\n\
             mod elsewhere {\n";
    for (position, call) in description.calls.iter().enumerate() {
        if position > 0 {
            text.push('\n');
        }
        text += &signature(call, "    ", "pub unsafe ", " {\n");
        let _ = writeln!(text, "        panic!(\"`{}` is there only in a machine\")", call.name);
        text += "    }\n";
    }
    text + "}\n"
}

/// The functions of native machines.
fn native(description: &Description) -> String {
    let mut text = String::from(
        "/// The host calls of native machines.\n#[cfg(target_os = \"none\")]\n\
         #[allow(clippy::missing_safety_doc, clippy::too_many_arguments)]\n#[rustfmt::skip]\n\
         mod native {\n    use crate::native::request;\n",
    );
    for call in description.calls {
        text.push('\n');
        for line in call.documentation() {
            let _ = writeln!(text, "    ///{line}");
        }
        text += &signature(call, "    ", "pub unsafe ", " {\n");
        text += &native_body(call);
        text += "    }\n";
    }
    text + "}\n\n"
}

/// How many words of arguments go in registers.
const REGISTERS: usize = 6;

fn native_body(call: &HostCallInfo) -> String {
    let mut words: Vec<String> = call.parameters.iter().flat_map(words).collect();
    let mut text = String::new();
    if words.len() > REGISTERS {
        let rest = words.split_off(REGISTERS - 1);
        let _ = writeln!(text, "        let rest = [{}];", rest.join(", "));
        words.push("(&raw const rest).expose_provenance()".into());
    }
    words.resize(REGISTERS, "0".into());
    let (results, value) = match call.result {
        ResultKind::Nothing => ("", ""),
        ResultKind::Status => ("let [low, _] = ", "        low as i32\n"),
        ResultKind::Time => ("let [low, high] = ", "        (high as i64) << 32 | low as i64\n"),
    };
    text += "        // SAFETY: the caller's promise.\n";
    let words = words.join(", ");
    let _ = writeln!(text, "        {results}unsafe {{ request::<{}>([{words}]) }};", call.number);
    text + value
}

/// The words of a parameter.
fn words(parameter: &Parameter) -> Vec<String> {
    let name = parameter.name;
    match parameter.kind {
        ParameterKind::Word => vec![format!("{name} as usize")],
        ParameterKind::Buffer => {
            vec![format!("{name}.expose_provenance()"), format!("{name}_capacity")]
        }
        _ => vec![format!("{name}.expose_provenance()"), format!("{name}_length")],
    }
}

fn error_type(description: &Description) -> String {
    let mut text = String::from(
        "/// Why a host call failed.\n\
         #[derive(Clone, Copy, Debug, PartialEq, Eq)]\n#[repr(i32)]\npub enum Error {\n",
    );
    for (error, name) in description.errors {
        let _ = writeln!(text, "    /// {}\n    {name} = {},", sentence(error), error.code());
    }
    text += "}\n\nimpl Error {\n    /// The error with this number, as host calls give it.\n    \
             pub const fn from_code(code: i32) -> Self {\n        match code {\n";
    for (error, name) in description.errors {
        if *name != "Device" {
            let _ = writeln!(text, "            {} => Self::{name},", error.code());
        }
    }
    text += "            _ => Self::Device,\n        }\n    }\n\n    \
             /// The error's meaning, in a few words.\n    \
             pub const fn as_str(self) -> &'static str {\n        match self {\n";
    for (error, name) in description.errors {
        let _ = writeln!(text, "            Self::{name} => \"{error}\",");
    }
    text + "        }\n    }\n}\n"
}

/// A function's signature as rustfmt would have it.
fn signature(call: &HostCallInfo, indent: &str, before: &str, after: &str) -> String {
    let parameters: Vec<String> = call.parameters.iter().flat_map(parameter).collect();
    let result = match call.result {
        ResultKind::Nothing => "",
        ResultKind::Status => " -> i32",
        ResultKind::Time => " -> i64",
    };
    let name = call.name;
    let line = format!("{indent}{before}fn {name}({}){result}{after}", parameters.join(", "));
    if line.trim_end().len() <= LINE_WIDTH {
        return line;
    }
    let mut text = format!("{indent}{before}fn {name}(\n");
    for parameter in parameters {
        let _ = writeln!(text, "{indent}    {parameter},");
    }
    text + &format!("{indent}){result}{after}")
}

fn parameter(parameter: &Parameter) -> Vec<String> {
    let name = parameter.name;
    let pointer = match parameter.kind {
        ParameterKind::Word => return vec![format!("{name}: u32")],
        ParameterKind::Buffer => "*mut u8",
        ParameterKind::Text | ParameterKind::Bytes | ParameterKind::Optional => "*const u8",
    };
    let length = if parameter.kind == ParameterKind::Buffer { "capacity" } else { "length" };
    vec![format!("{name}: {pointer}"), format!("{name}_{length}: usize")]
}
