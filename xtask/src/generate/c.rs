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
        "\n\n#ifdef __wasm__\n#define TENURE_CALL(RESULT, NUMBER, NAME, PARAMETERS, BODY) \\\n    \
         __attribute__((import_module(\"{MODULE}\"), import_name(#NAME))) \\\n    \
         RESULT tenure_host_##NAME PARAMETERS;\n\
         #else\n#include \"tenure_native.h\"\n\
         #define TENURE_CALL(RESULT, NUMBER, NAME, PARAMETERS, BODY) \\\n    \
         static inline RESULT tenure_host_##NAME PARAMETERS BODY\n#endif\n"
    );
    for call in description.calls {
        text += &declaration(call);
    }
    text + "\n#undef TENURE_CALL\n\n#ifdef __cplusplus\n}\n#endif\n"
}

fn declaration(call: &HostCallInfo) -> String {
    let mut text = String::from("\n/*");
    for (number, line) in call.documentation().iter().enumerate() {
        assert!(!line.contains("*/"), "a comment of C would end within {}'s: {line}", call.name);
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
    let (name, number) = (call.name, call.number);
    let body = native_body(call);
    text + &format!("TENURE_CALL({result}, {number}, {name}, ({parameters}), {body})\n")
}

/// How many words of arguments go in registers.
const REGISTERS: usize = 6;

/// The body of a native machine's function.
fn native_body(call: &HostCallInfo) -> String {
    let mut words: Vec<String> = call.parameters.iter().flat_map(words).collect();
    let mut text = String::from("{ ");
    if words.len() > REGISTERS {
        let rest = words.split_off(REGISTERS - 1);
        let _ = write!(text, "const uint32_t rest[] = TENURE_LIST({}); ", rest.join(", "));
        words.push("(uint32_t)rest".into());
    }
    words.resize(REGISTERS, "0".into());
    let request = format!("tenure_request({}, {})", call.number, words.join(", "));
    text += &match call.result {
        ResultKind::Nothing => format!("{request}; "),
        ResultKind::Status => format!("return (int32_t){request}; "),
        ResultKind::Time => format!("return (int64_t){request}; "),
    };
    text + "}"
}

/// The words of a parameter.
fn words(parameter: &Parameter) -> Vec<String> {
    let name = parameter.name;
    match parameter.kind {
        ParameterKind::Word => vec![name.to_owned()],
        ParameterKind::Buffer => {
            vec![format!("(uint32_t){name}"), format!("{name}_capacity")]
        }
        _ => vec![format!("(uint32_t){name}"), format!("{name}_length")],
    }
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
