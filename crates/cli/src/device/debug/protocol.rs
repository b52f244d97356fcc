//! Messages of the Debug Adapter Protocol (version 1.71): a header that says the length, and JSON.

use std::io::{self, BufRead, Read as _, Write};

use serde::Deserialize;
use serde_json::{Value, json};

/// The longest message, and all lines of its header, in bytes.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;
const HEADER_BYTES_MAX: u64 = 4096;

/// A request.
#[derive(Debug, Deserialize)]
pub(super) struct Request {
    pub(super) seq: i64,
    pub(super) command: String,
    #[serde(default)]
    pub(super) arguments: Value,
}

/// A message that came.
#[derive(Debug)]
pub(super) enum Came {
    Request(Request),
    /// A message that is no request; the text says why.
    Other(String),
    /// Nothing more.
    End,
}

/// Reads a message.
///
/// # Errors
/// There is no telling where the next one begins: the header is none, or too long, or it says that the message is.
pub(super) fn read(input: &mut dyn BufRead) -> io::Result<Came> {
    let mut left = HEADER_BYTES_MAX;
    let mut length = None;
    loop {
        let mut line = Vec::new();
        let mut limited = (&mut *input).take(left);
        let read = limited.read_until(b'\n', &mut line)?;
        left -= read as u64;
        if read == 0 && length.is_none() && left == HEADER_BYTES_MAX {
            return Ok(Came::End);
        }
        if line.last() != Some(&b'\n') {
            return Err(invalid("the header of a message is broken off or too long"));
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim();
        if line.is_empty() {
            break;
        }
        // Who speaks another protocol, such as a web page that sends what its author wants, gets no answer.
        // The protocol has these two fields alone.
        let (name, value) = line.split_once(':').unwrap_or_default();
        if name.eq_ignore_ascii_case("Content-Length") && length.is_none() {
            length = Some(length_in(value)?);
        } else if !name.eq_ignore_ascii_case("Content-Type") {
            return Err(invalid("this is no header of a message"));
        }
    }
    let Some(length) = length else { return Err(invalid("a message doesn't say its length")) };
    if length > MESSAGE_BYTES_MAX {
        return Err(invalid("a message is too long"));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    Ok(match serde_json::from_slice(&bytes) {
        Ok(request) => Came::Request(request),
        Err(error) => Came::Other(format!("this is no request: {error}")),
    })
}

/// A length in digits (RFC 9110 §8.6).
fn length_in(value: &str) -> io::Result<usize> {
    let digits = Some(value.trim()).filter(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    let length = digits.and_then(|digits| digits.parse().ok());
    length.ok_or_else(|| invalid("the length of a message is no number"))
}

fn invalid(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}

/// Where messages go, which are numbered.
pub(super) struct Outlet<'a> {
    to: &'a mut dyn Write,
    last: i64,
}

impl<'a> Outlet<'a> {
    pub(super) fn new(to: &'a mut dyn Write) -> Self {
        Self { to, last: 0 }
    }

    /// Answers a request; an error is a text.
    pub(super) fn respond(
        &mut self,
        request: &Request,
        result: Result<Value, String>,
    ) -> io::Result<()> {
        let Request { seq, command, .. } = request;
        self.send(match result {
            Ok(body) => json!({
                "type": "response", "request_seq": seq, "command": command,
                "success": true, "body": body,
            }),
            Err(why) => refusal(*seq, command, &why),
        })
    }

    /// Answers what is no request.
    pub(super) fn refuse(&mut self, why: &str) -> io::Result<()> {
        self.send(refusal(0, "", why))
    }

    pub(super) fn event(&mut self, name: &str, body: Value) -> io::Result<()> {
        self.send(json!({ "type": "event", "event": name, "body": body }))
    }

    fn send(&mut self, mut message: Value) -> io::Result<()> {
        self.last += 1;
        message["seq"] = self.last.into();
        let text = message.to_string();
        write!(self.to, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        self.to.flush()
    }
}

fn refusal(seq: i64, command: &str, why: &str) -> Value {
    let error =
        json!({ "id": 1, "format": "{why}", "variables": { "why": why }, "showUser": true });
    json!({
        "type": "response", "request_seq": seq, "command": command,
        "success": false, "message": why, "body": { "error": error },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Vec<u8> {
        format!("Content-Length: {}\r\n\r\n{text}", text.len()).into_bytes()
    }

    #[test]
    fn messages_follow_each_other_until_the_end() {
        let mut bytes = message(r#"{"seq":1,"type":"request","command":"threads"}"#);
        bytes.extend(message("[1"));
        bytes.extend(message(r#"{"seq":2,"type":"request","command":"next","arguments":{"a":1}}"#));
        let mut input = &bytes[..];
        let Came::Request(first) = read(&mut input).unwrap() else { panic!("no request") };
        assert_eq!((first.seq, &*first.command, first.arguments), (1, "threads", Value::Null));
        assert!(
            matches!(read(&mut input).unwrap(), Came::Other(why) if why.contains("no request"))
        );
        let Came::Request(last) = read(&mut input).unwrap() else { panic!("no request") };
        assert_eq!(last.arguments, json!({ "a": 1 }));
        assert!(matches!(read(&mut input).unwrap(), Came::End));
    }

    #[test]
    fn headers_that_are_none_or_say_too_much_end_the_session() {
        for bytes in [
            &b"Content-Length: 99999999999\r\n\r\n{}"[..],
            b"Content-Length: 5000000\r\n\r\n{}",
            b"Content-Length: x\r\n\r\n{}",
            b"Content-Length: 2\r\n\r\n{",
            b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
            // B-4: a web page chooses the path, and its browser sends these fields.
            b"POST /a:b HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
            b"POST /Content-Type: HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
            b"Content-Type : a\r\nContent-Length: 2\r\n\r\n{}",
            b"Host: a\r\nContent-Length: 2\r\n\r\n{}",
            b"Content-Length: 2\r\norigin: http://evil.example\r\n\r\n{}",
            b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
            b"Content-Length: +2\r\n\r\n{}",
            b"Content-Length: 2\r\nand more\r\n\r\n{}",
            b"Content-Length",
            &[b'a'; 10_000],
            &[b'\n'; 10],
        ] {
            assert!(read(&mut &bytes[..]).is_err(), "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn answers_are_numbered_and_say_their_length() {
        let mut sent = Vec::new();
        let mut outlet = Outlet::new(&mut sent);
        let request = Request { seq: 7, command: "next".into(), arguments: Value::Null };
        outlet.respond(&request, Err("{no}".into())).unwrap();
        outlet.event("stopped", json!({ "threadId": 1 })).unwrap();
        let text = String::from_utf8(sent).unwrap();
        let bodies: Vec<Value> = text
            .split("Content-Length: ")
            .skip(1)
            .map(|one| {
                let (length, body) = one.split_once("\r\n\r\n").unwrap();
                assert_eq!(length.parse::<usize>().unwrap(), body.len());
                serde_json::from_str(body).unwrap()
            })
            .collect();
        assert_eq!((&bodies[0]["seq"], &bodies[1]["seq"]), (&1.into(), &2.into()));
        assert_eq!(bodies[0]["body"]["error"]["variables"]["why"], "{no}");
        assert_eq!(bodies[0]["request_seq"], 7);
    }
}
