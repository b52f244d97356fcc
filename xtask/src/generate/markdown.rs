//! The reference page.

use std::fmt::Write as _;

use tenure_wire::host_call::{HostCallInfo, MODULE, ParameterKind, ResultKind, WasmType};

use super::{Description, NOTICE};

pub(super) fn page(description: &Description) -> String {
    let mut text = format!(
        "<!-- {NOTICE} -->\n# Host calls\n\n\
         What a machine may ask of its device. The bindings in `sdk/` wrap them; a language \
         without a\nbinding imports them from the wasm module `{MODULE}`.\n\n\
         A machine exports functions of the type `() -> ()`; their names are what callers call. \
         `entry`, if\nthere is one, runs once when the machine starts. A trap or `abort` fails \
         the call that is served.\n\n\
         ## Parameters and results\n\n\
         | kind | wasm parameters | meaning |\n|---|---|---|\n\
         | Word | `i32` | an unsigned number |\n\
         | Text | `i32 i32` | pointer and length in bytes of UTF-8 text |\n\
         | Bytes | `i32 i32` | pointer and length of bytes |\n\
         | Optional | `i32 i32` | the same; nothing (null) if the pointer is 0 |\n\
         | Buffer | `i32 i32` | pointer and capacity of room to write to, of which 65,536 bytes count |\n\n\
         A Status is an `i32`: a length or count, or one of the errors below. A Time is an \
         `i64`.\n\n\
         ## Errors\n\n| number | name | meaning |\n|---|---|---|\n"
    );
    for (error, name) in description.errors {
        let _ = writeln!(text, "| {} | {name} | {error} |", error.code());
    }
    text += "\n## Calls\n";
    for call in description.calls {
        text += &section(call);
    }
    text
}

fn section(call: &HostCallInfo) -> String {
    let parameters: Vec<String> = call
        .parameters
        .iter()
        .map(|parameter| format!("{}: {}", parameter.name, kind_name(parameter.kind)))
        .collect();
    let result = match call.result {
        ResultKind::Nothing => "",
        ResultKind::Status => " -> Status",
        ResultKind::Time => " -> Time",
    };
    let wasm_result = call.wasm_result().map_or("", wasm_name);
    let wasm: Vec<&str> = call.wasm_parameters().map(wasm_name).collect();
    let documentation: Vec<&str> = call.documentation().iter().map(|line| line.trim()).collect();
    format!(
        "\n### {name}\n\n```text\n{name}({parameters}){result}\n({wasm}) -> ({wasm_result})\n\
         ```\n\n{documentation}\n",
        name = call.name,
        parameters = parameters.join(", "),
        wasm = wasm.join(" "),
        documentation = documentation.join("\n"),
    )
}

fn kind_name(kind: ParameterKind) -> &'static str {
    match kind {
        ParameterKind::Word => "Word",
        ParameterKind::Text => "Text",
        ParameterKind::Bytes => "Bytes",
        ParameterKind::Optional => "Optional",
        ParameterKind::Buffer => "Buffer",
    }
}

fn wasm_name(wasm_type: WasmType) -> &'static str {
    match wasm_type {
        WasmType::I32 => "i32",
        WasmType::I64 => "i64",
    }
}
