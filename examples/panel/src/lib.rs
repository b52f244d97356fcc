//! A page for a phone: shows what the thermostat on this device holds, and sets it.
//!
//! `tenure pages --machine panel` serves it. Whoever visits it is nobody's machine; the panel may call the thermostat, and a
//! visitor may not.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use tenure::http::{Request, Response, escape};
use tenure::{Error, Level, log};

tenure::export!(http);

/// The styles of the page.
const STYLE: &str = include_str!("panel.css");

/// Serves a visitor.
fn http(request: Request) -> Response {
    let response = match (request.method, request.path) {
        ("GET" | "HEAD", "/") => page(),
        ("GET" | "HEAD", "/panel.css") => {
            Response::body("text/css", STYLE).header("cache-control", "max-age=3600")
        }
        ("GET", "/degrees") => match ask("read", None) {
            Ok(degrees) => Response::text(degrees),
            Err(error) => away(error),
        },
        ("POST", "/degrees") => set(&request),
        (_, "/" | "/degrees" | "/panel.css") => Response::error(405, "not that way"),
        _ => Response::error(404, "no such page"),
    };
    response.part_for(&request)
}

fn page() -> Response {
    let degrees = match ask("read", None) {
        Ok(degrees) => degrees,
        Err(error) => return away(error),
    };
    let degrees = escape(&degrees);
    Response::html(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><title>Thermostat</title>\
         <link rel=\"stylesheet\" href=\"/panel.css\">\
         <main><h1>Thermostat</h1><output>{degrees} °C</output>\
         <form method=\"post\" action=\"/degrees\">\
         <label>Degrees <input name=\"degrees\" type=\"number\" min=\"5\" max=\"30\" step=\"0.5\" \
         value=\"{degrees}\" required></label><button>Set</button></form></main></html>\n"
    ))
}

/// Sets what the form says, and leads back to the page. A value that the thermostat refuses changes nothing.
fn set(request: &Request) -> Response {
    let Some(wanted) = request.field("degrees") else {
        return Response::error(400, "the form has no degrees");
    };
    match ask("set", Some(&wanted)) {
        Ok(_) => Response::see_other("/"),
        Err(error) => away(error),
    }
}

fn ask(function: &str, parameter: Option<&str>) -> Result<String, Error> {
    let answer = tenure::call("thermostat", function, parameter.map(str::as_bytes))?;
    Ok(String::from_utf8_lossy(&answer.unwrap_or_default()).into_owned())
}

/// Answers a visitor for whom the thermostat has nothing, or the panel may not ask any more for now.
fn away(error: Error) -> Response {
    log!(Level::Warning, "the thermostat: {error}");
    let (status, text) = match error {
        Error::MessageBudget | Error::QueueBudget => (503, "too many visitors for now"),
        _ => (502, "the thermostat doesn't answer"),
    };
    Response::error(status, text).header("retry-after", "5")
}
