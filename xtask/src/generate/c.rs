//! The C header: raw imports and error numbers.

use std::fmt::Write as _;

use tenure_wire::host_call::{HostCallInfo, MODULE, Parameter, ParameterKind, ResultKind};

use super::{Description, NOTICE};

pub(super) fn header(description: &Description) -> String {
    let mut text = format!(
        "/* {NOTICE}\n * The raw host calls; tenure.h is what programs use. */\n\
         #pragma once\n\n#include <stdint.h>\n\n\
         #ifdef __cplusplus\nextern \"C\" {{\n#endif\n\n"
    );
    text += "/* Why a host call failed: a negative result. */\nenum tenure_error {\n";
    for (error, name) in description.errors {
        let name = upper_snake(name);
        let _ = writeln!(text, "    TENURE_{name} = {}, /* {error} */", error.code());
    }
    text += "};\n\n/* The words for each error, for tenure_error_text. */\n";
    text += "#define TENURE_ERRORS(EACH)";
    for (error, name) in description.errors {
        let _ = write!(text, " \\\n    EACH(TENURE_{}, \"{error}\")", upper_snake(name));
    }
    let _ = write!(
        text,
        "\n\n#define TENURE_IMPORT(NAME) \\\n    \
         __attribute__((import_module(\"{MODULE}\"), import_name(NAME)))\n"
    );
    for call in description.calls {
        text += &declaration(call);
    }
    text + "\n#undef TENURE_IMPORT\n\n#ifdef __cplusplus\n}\n#endif\n"
}

fn declaration(call: &HostCallInfo) -> String {
    let mut text = String::from("\n/*");
    for (number, line) in call.documentation.iter().enumerate() {
        let indent = if number == 0 { "" } else { "\n *" };
        text += &format!("{indent}{line}");
    }
    text += " */\n";
    let parameters: Vec<String> = call.parameters.iter().map(parameter).collect();
    let parameters = if parameters.is_empty() { "void".into() } else { parameters.join(", ") };
    let result = match call.result {
        ResultKind::Nothing => "void",
        ResultKind::Status => "int32_t",
        ResultKind::Time => "int64_t",
    };
    let name = call.name;
    text + &format!("TENURE_IMPORT(\"{name}\")\n{result} tenure_host_{name}({parameters});\n")
}

fn parameter(parameter: &Parameter) -> String {
    let name = parameter.name;
    match parameter.kind {
        ParameterKind::Word => format!("uint32_t {name}"),
        ParameterKind::Text => format!("const char *{name}, uint32_t {name}_length"),
        ParameterKind::Bytes | ParameterKind::Optional => {
            format!("const void *{name}, uint32_t {name}_length")
        }
        ParameterKind::Buffer => format!("void *{name}, uint32_t {name}_capacity"),
    }
}

/// `NotFound` as `NOT_FOUND`.
fn upper_snake(name: &str) -> String {
    let mut text = String::new();
    for (position, character) in name.chars().enumerate() {
        if position > 0 && character.is_ascii_uppercase() {
            text.push('_');
        }
        text.push(character.to_ascii_uppercase());
    }
    text
}
