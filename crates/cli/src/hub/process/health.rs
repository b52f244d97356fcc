//! `tenure hub health`: whether a hub answers where it serves its pages, for whoever watches over its process.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use crate::terminal::output::Output;

/// How long a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// How long an answer is waited for: longer than a hub waits for its database.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 16 * 1024;

/// Ask a hub whether it lives, or with --ready whether it can serve.
///
/// For whoever watches over the process where no other client of HTTP is: in a container of the hub's image there is none.
/// A hub that lives and can't serve, as its database is away, goes on by itself. One with TLS of its own isn't asked.
///
/// Example: tenure hub health 127.0.0.1:7380
#[derive(clap::Args)]
pub(super) struct HealthArguments {
    /// Where the hub serves its pages, as its --pages says.
    #[arg(value_name = "ADDR", default_value = "127.0.0.1:7380")]
    pages: SocketAddr,
    /// Ask whether it can serve: whether it hears devices, and reads its database.
    #[arg(long)]
    ready: bool,
}

/// Asks the hub, and says what it answers.
///
/// # Errors
/// Nobody answers, it is no hub, or the hub says that it can't serve.
pub(super) fn run(arguments: &HealthArguments, output: &Output) -> Result<()> {
    let HealthArguments { pages, ready } = arguments;
    let path = if *ready { "/ready" } else { "/health" };
    let answer = asked(*pages, path).with_context(|| format!("no hub answers at {pages}"))?;
    let Some((status, body)) = read(&answer) else {
        bail!("what answers at {pages} speaks no HTTP; a hub with TLS of its own isn't asked");
    };
    if status != "200" {
        let problem: Value = serde_json::from_str(body).unwrap_or_default();
        let detail = problem["detail"].as_str().unwrap_or(status);
        bail!("the hub can't serve: {detail}");
    }
    output.line(body.trim_end(), &serde_json::json!({ "hub": body.trim_end() }));
    Ok(())
}

fn asked(pages: SocketAddr, path: &str) -> Result<String> {
    let mut stream = TcpStream::connect_timeout(&pages, CONNECT_TIMEOUT)?;
    stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
    let request = format!("GET {path} HTTP/1.1\r\nhost: {pages}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_BYTES_MAX).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The status and the body of an answer (RFC 9112 §4); none if it isn't one.
fn read(answer: &str) -> Option<(&str, &str)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.strip_prefix("HTTP/1.1 ")?.get(..3)?;
    Some((status, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_is_read_and_what_is_none_is_not() {
        let answer = "HTTP/1.1 503 Service Unavailable\r\nretry-after: 5\r\n\r\n{}";
        assert_eq!(read(answer), Some(("503", "{}")));
        assert_eq!(read("HTTP/1.1 2\r\n\r\n"), None);
        assert_eq!(read("\u{15}\u{3}\u{fffd}"), None);
    }
}
