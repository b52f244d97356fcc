//! A page for a phone: shows how warm it is and what the thermostat on this device holds, as both change, and sets it.
//!
//! `tenure pages --machine panel` serves it, and a hub does at `/m/panel@DEVICE/`: so its links are relative. Whoever visits it is nobody's machine; the panel may call the thermostat, and a
//! visitor may not.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use core::sync::atomic::{AtomicI32, Ordering};

use tenure::http::{Request, Response, escape};
use tenure::{Error, Level, events, log};

tenure::export!(entry, http, on_temperature);

/// The styles of the page, and its script.
const STYLE: &str = include_str!("panel.css");
const SCRIPT: &str = include_str!("live.js");

/// The thermometer's last reading, in tenths of a degree.
static TENTHS: AtomicI32 = AtomicI32::new(UNKNOWN);
const UNKNOWN: i32 = i32::MIN;

/// Listens to the thermometer, if the panel may and there is one.
fn entry() {
    let readings = events::subscribe("device.temperature").latest_only();
    if let Err(error) = readings.handler("on_temperature").start() {
        log!(Level::Warning, "no thermometer: {error}");
    }
}

/// Each reading comes as a call; its payload is the parameter.
fn on_temperature(degrees: &str) -> Result<(), Error> {
    TENTHS.store(tenths(degrees).ok_or(Error::Invalid)?, Ordering::Relaxed);
    Ok(())
}

/// `21.5` as tenths of a degree.
fn tenths(text: &str) -> Option<i32> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let fraction = fraction.parse::<u8>().ok().filter(|digit| *digit < 10)?;
    Some(i32::from(whole.parse::<u8>().ok()?) * 10 + i32::from(fraction))
}

/// Serves a visitor.
fn http(request: Request) -> Response {
    let response = match (request.method, request.path) {
        ("GET" | "HEAD", "/") => page(),
        ("GET" | "HEAD", "/panel.css") => {
            Response::file("panel.css", STYLE).header("cache-control", "max-age=3600")
        }
        ("GET" | "HEAD", "/live.js") => {
            Response::file("live.js", SCRIPT).header("cache-control", "max-age=3600")
        }
        ("GET", "/live") => match ask("read", None) {
            Ok(target) => Response::live(&format!("{} {target}", now())),
            Err(error) => away(error),
        },
        ("GET", "/degrees") => match ask("read", None) {
            Ok(degrees) => Response::text(degrees),
            Err(error) => away(error),
        },
        ("POST", "/degrees") => set(&request),
        (_, "/" | "/degrees" | "/live" | "/panel.css" | "/live.js") => {
            Response::error(405, "not that way")
        }
        _ => Response::error(404, "no such page"),
    };
    response.part_for(&request)
}

fn page() -> Response {
    let degrees = match ask("read", None) {
        Ok(degrees) => degrees,
        Err(error) => return away(error),
    };
    let (degrees, now) = (escape(&degrees), now());
    Response::html(format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\"><link rel=\"icon\" href=\"data:,\"><title>Thermostat</title>\
         <link rel=\"stylesheet\" href=\"panel.css\">\
         <script src=\"live.js\" defer></script>\
         <main><h1>Thermostat</h1><p>It is <span id=\"now\">{now} °C</span>, and shall be</p>\
         <output>{degrees} °C</output>\
         <form method=\"post\" action=\"degrees\">\
         <label>Degrees <input name=\"degrees\" type=\"number\" min=\"5\" max=\"30\" step=\"0.5\" \
         value=\"{degrees}\" required></label><button>Set</button></form></main></html>\n"
    ))
}

/// The last reading as text, in degrees.
fn now() -> String {
    match TENTHS.load(Ordering::Relaxed) {
        UNKNOWN => "–".into(),
        tenths => format!("{}.{}", tenths / 10, tenths % 10),
    }
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
