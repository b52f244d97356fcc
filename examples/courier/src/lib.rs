//! Sends readings to a server by HTTPS, and fetches what is there.
//!
//! The lease says which server (`reach` in `tenure.toml`). The device finds it, judges its certificate and bills the bytes.
#![no_std]

extern crate alloc;

use alloc::format;
use alloc::string::String;

use tenure::reach::{Request, Response};
use tenure::{Error, Level, failure_text, log, queue, reach, tree};

tenure::export!(fetch, send, send_later, sent, not_sent);

/// Returns the text at that path of the server: `tenure call courier fetch forecast`
fn fetch(path: Option<&str>) -> Result<String, Error> {
    let url = place(path.unwrap_or_default())?;
    let answer = told(reach::get(&url))?;
    match answer.status() {
        200 => answer.text(),
        404 => Err(Error::NotFound),
        status => Ok(format!("the server says {status}")),
    }
}

/// Sends a reading, and says what the server answered: `tenure call courier send 21.5`
fn send(reading: Option<&str>) -> Result<String, Error> {
    let url = place("readings")?;
    let body = format!("{{\"degrees\":{}}}", reading.unwrap_or("null"));
    let request = Request::post(&url).header("content-type", "application/json");
    let answer = told(request.body(body.as_bytes()).send())?;
    Ok(format!("{}", answer.status()))
}

/// Sends a reading without waiting, and again while the server can't be reached: `tenure call courier send_later 21.5`
fn send_later(reading: Option<&str>) -> Result<(), Error> {
    let url = place("readings")?;
    let message = format!("content-type: text/plain\r\n\r\n{}", reading.unwrap_or("null"));
    let task = queue(&url, "POST").parameter(message.as_bytes()).retries(5);
    task.on_success("sent").on_failure("not_sent").send().map(drop)
}

/// Notes the server's answer to a reading that was queued.
fn sent(answer: Option<&str>) {
    log!("the server says {}", answer.and_then(|head| head.lines().next()).unwrap_or("nothing"));
}

/// Notes why a reading that was queued is lost.
fn not_sent(reason: Option<&str>) {
    log!(Level::Error, "a reading is lost: {}", reason.unwrap_or("unknown"));
}

fn place(path: &str) -> Result<String, Error> {
    let server = tree::text("server")?.ok_or(Error::NotFound)?;
    Ok(format!("{server}{path}"))
}

/// Notes why there is no answer, if there is none.
fn told<'a>(answer: Result<Response<'a>, Error>) -> Result<Response<'a>, Error> {
    answer.inspect_err(|error| {
        let why = failure_text().unwrap_or_default();
        log!(Level::Warning, "no answer, {error}: {why}");
    })
}
