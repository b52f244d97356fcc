//! A page of the demo's hub, fetched as a browser would: with the cookie of a sign-in.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result, ensure};
use tenure_testbed::patience;

/// Follows `link`, which signs in, and gives the hub's first page as HTML.
pub(super) fn open(link: &str) -> Result<String> {
    let (host, path) = split(link)?;
    let answer = get(host, path, None)?;
    let cookie = header(&answer, "set-cookie").context("signing in gave no cookie")?;
    let (cookie, _) = cookie.split_once(';').unwrap_or((cookie, ""));
    let page = get(host, "/", Some(cookie))?;
    ensure!(page.starts_with("HTTP/1.1 200 "), "the hub's page: {page}");
    Ok(page)
}

/// The host and the path with its query, of `http://HOST/PATH`.
fn split(link: &str) -> Result<(&str, &str)> {
    let rest = link.strip_prefix("http://").with_context(|| format!("{link} is no http link"))?;
    let slash = rest.find('/').unwrap_or(rest.len());
    Ok(rest.split_at(slash))
}

/// The whole answer to a `GET`, head and body.
fn get(host: &str, path: &str, cookie: Option<&str>) -> Result<String> {
    let mut connection = TcpStream::connect(host).with_context(|| format!("no page at {host}"))?;
    connection.set_read_timeout(Some(patience()))?;
    write!(connection, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n")?;
    if let Some(cookie) = cookie {
        write!(connection, "Cookie: {cookie}\r\n")?;
    }
    write!(connection, "\r\n")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).with_context(|| format!("{host} sent no page"))?;
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
