//! Pages of the demo, fetched as a browser would: the hub's, with the cookie of a sign-in, and machines'.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use tenure_testbed::patience;

/// Follows `link`, which signs in, and gives the hub's first page as HTML.
pub(super) fn open(link: &str) -> Result<String> {
    let (host, path) = split(link)?;
    let answer = get(host, path, &[])?;
    let cookie = header(&answer, "set-cookie").context("signing in gave no cookie")?;
    let (cookie, _) = cookie.split_once(';').unwrap_or((cookie, ""));
    let page = get(host, "/", &[("Cookie", cookie)])?;
    ensure!(page.starts_with("HTTP/1.1 200 "), "the hub's page: {page}");
    Ok(page)
}

/// The host and the path with its query, of `http://HOST/PATH`.
fn split(link: &str) -> Result<(&str, &str)> {
    let rest = link.strip_prefix("http://").with_context(|| format!("{link} is no http link"))?;
    let slash = rest.find('/').unwrap_or(rest.len());
    Ok(rest.split_at(slash))
}

/// The whole answer to a `GET` of `path` at `address`, head and body, with these header fields.
pub(super) fn get(address: &str, path: &str, fields: &[(&str, &str)]) -> Result<String> {
    ask(address, &format!("GET {path}"), fields, "")
}

/// The whole answer to a form, head and body.
pub(super) fn post(
    address: &str,
    path: &str,
    fields: &[(&str, &str)],
    form: &str,
) -> Result<String> {
    let length = form.len().to_string();
    let of_form =
        [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", &length)];
    ask(address, &format!("POST {path}"), &[fields, &of_form[..]].concat(), form)
}

fn ask(address: &str, line: &str, fields: &[(&str, &str)], body: &str) -> Result<String> {
    let failed = || format!("no page at {address}");
    let mut connection = TcpStream::connect(address).with_context(failed)?;
    connection.set_read_timeout(Some(patience()))?;
    write!(connection, "{line} HTTP/1.1\r\nConnection: close\r\n")?;
    if !fields.iter().any(|(name, _)| *name == "Host") {
        write!(connection, "Host: {address}\r\n")?;
    }
    for (name, value) in fields {
        write!(connection, "{name}: {value}\r\n")?;
    }
    write!(connection, "\r\n{body}")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).with_context(failed)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// The value of the first header of this name, in lower case, of an answer.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let (head, _) = answer.split_once("\r\n\r\n")?;
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    let mut values = fields.filter(|(field, _)| field.eq_ignore_ascii_case(name));
    values.next().map(|(_, value)| value.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_split_and_headers_found_whatever_their_case() {
        assert_eq!(split("http://[::1]:80/a?b").unwrap(), ("[::1]:80", "/a?b"));
        assert!(split("https://hub/").is_err());
        let answer = "HTTP/1.1 303 See Other\r\nSet-Cookie: a=b; HttpOnly\r\n\r\nset-cookie: no";
        assert_eq!(header(answer, "set-cookie"), Some("a=b; HttpOnly"));
        assert_eq!(header(answer, "location"), None);
    }
}
