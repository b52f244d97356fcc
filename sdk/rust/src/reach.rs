//! Requests to servers outside, as far as the lease grants them: `reach = ["https://api.example.com/v1/*"]`.
//!
//! The machine waits for the answer while others run. Names, addresses, certificates and redirects are the device's work.
//!
//! ```no_run
//! # fn main() -> Result<(), tenure::Error> {
//! use tenure::reach::{self, Request};
//!
//! let price = reach::get("https://api.example.com/v1/price")?.text()?;
//!
//! let answer = Request::post("https://api.example.com/v1/readings")
//!     .header("content-type", "application/json")
//!     .body(br#"{"degrees":21.5}"#)
//!     .send()?;
//! if answer.status() != 201 {
//!     tenure::log!(tenure::Level::Warning, "not taken: {}", answer.status());
//! }
//! # Ok(()) }
//! ```
//!
//! After a failure, [`failure_text`](crate::failure_text) says why in words, as the machine's log does. To send without
//! waiting, [`queue`](crate::queue) takes a URL as its target and a method as its function.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{Error, call, call_with_deadline, fields};

/// The function by which more of an answer is asked for.
const MORE: &str = "more";

/// Asks for what is at `url`, by `GET`.
///
/// # Errors
/// As [`Request::send`].
pub fn get(url: &str) -> Result<Response<'_>, Error> {
    Request::new("GET", url).send()
}

/// A request, sent by [`send`](Self::send).
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a request is sent by `send`"]
pub struct Request<'a> {
    method: &'a str,
    url: &'a str,
    fields: String,
    body: &'a [u8],
    deadline: Option<Duration>,
}

impl<'a> Request<'a> {
    /// A request by `method`, in capital letters.
    pub fn new(method: &'a str, url: &'a str) -> Self {
        Self { method, url, fields: String::new(), body: &[], deadline: None }
    }

    /// A request by `GET`.
    pub fn get(url: &'a str) -> Self {
        Self::new("GET", url)
    }

    /// A request by `POST`.
    pub fn post(url: &'a str) -> Self {
        Self::new("POST", url)
    }

    /// A request by `PUT`.
    pub fn put(url: &'a str) -> Self {
        Self::new("PUT", url)
    }

    /// Adds a header field. Line ends in `value` become spaces: no value makes a field of its own. The device writes
    /// `host`, `content-length`, `user-agent` and what concerns the connection; a request with one of these is refused.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        fields::add(&mut self.fields, name, value);
        self
    }

    /// The body, with the fields up to 8,192 bytes.
    pub fn body(self, body: &'a [u8]) -> Self {
        Self { body, ..self }
    }

    /// When to give up (at most 49 days); without this, the device's default.
    pub fn deadline(self, deadline: Duration) -> Self {
        Self { deadline: Some(deadline), ..self }
    }

    /// Sends it and waits for the answer. Redirects of requests that change nothing are followed as far as the lease grants
    /// the places that they lead to.
    ///
    /// # Errors
    /// [`Error::NotGranted`] without a grant, [`Error::Denied`] if the server can't be trusted or leads elsewhere,
    /// [`Error::NotFound`] if its name isn't known, [`Error::Unreachable`], [`Error::Deadline`], [`Error::MessageBudget`],
    /// and so on. A status such as 404 is no error.
    pub fn send(self) -> Result<Response<'a>, Error> {
        let mut message = self.fields.into_bytes();
        message.extend_from_slice(b"\r\n");
        message.extend_from_slice(self.body);
        let asked = match self.deadline {
            None => call(self.url, self.method, Some(&message)),
            Some(deadline) => call_with_deadline(self.url, self.method, Some(&message), deadline),
        };
        let told = asked?.unwrap_or_default();
        Response::parse(self.url, self.method == "HEAD", told).ok_or(Error::Device)
    }
}

/// A server's answer: its head, and its body as it comes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response<'a> {
    url: &'a str,
    status: u16,
    fields: String,
    /// The part of the body that is there and not read.
    part: Vec<u8>,
    is_over: bool,
}

impl<'a> Response<'a> {
    fn parse(url: &'a str, is_head: bool, told: Vec<u8>) -> Option<Self> {
        let end = told.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = String::from_utf8_lossy(&told[..end + 2]).into_owned();
        let (line, fields) = head.split_once("\r\n")?;
        let status = line.split(' ').nth(1)?.parse().ok()?;
        let mut response =
            Self { url, status, fields: String::from(fields), part: told, is_over: false };
        response.part.drain(..end + 4);
        let length = response.header("content-length").and_then(|length| length.parse().ok());
        let is_empty = is_head || matches!(status, 204 | 304);
        response.is_over = is_empty || length == Some(response.part.len());
        Some(response)
    }

    /// The status, such as 200 (RFC 9110 §15).
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The value of a header field; the letters of its name have no case.
    pub fn header(&self, name: &str) -> Option<&str> {
        fields::value_of(&self.fields, name)
    }

    /// The next part of the body, waiting for it if need be; `None` after the last. The device keeps what a server has sent
    /// for 15 s, and until the machine's next request.
    ///
    /// # Errors
    /// As [`Request::send`]; [`Error::NotFound`] if the device has dropped what was left.
    pub fn part(&mut self) -> Result<Option<Vec<u8>>, Error> {
        if self.part.is_empty() && !self.is_over {
            match call(self.url, MORE, None)? {
                Some(part) => self.part = part,
                None => self.is_over = true,
            }
        }
        Ok((!self.part.is_empty()).then(|| core::mem::take(&mut self.part)))
    }

    /// The rest of the body, of `bytes_max` bytes at most.
    ///
    /// # Errors
    /// As [`part`](Self::part); [`Error::TooLong`] if it is longer.
    pub fn bytes(mut self, bytes_max: usize) -> Result<Vec<u8>, Error> {
        let mut whole = Vec::new();
        while let Some(part) = self.part()? {
            if whole.len() + part.len() > bytes_max {
                return Err(Error::TooLong);
            }
            whole.extend(part);
        }
        Ok(whole)
    }

    /// The rest of the body as text, of 65,536 bytes at most; what isn't UTF-8 is replaced.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub fn text(self) -> Result<String, Error> {
        self.bytes(64 * 1024).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(is_head: bool, told: &[u8]) -> Option<Response<'static>> {
        Response::parse("https://a.example/", is_head, told.to_vec())
    }

    #[test]
    fn answer_is_over_once_its_length_is_there() {
        let mut whole =
            parsed(false, b"HTTP/1.1 200 \r\ncontent-length: 2\r\nEtag: \"a\"\r\n\r\nhi").unwrap();
        assert_eq!(
            (whole.status(), whole.header("etag"), whole.is_over),
            (200, Some("\"a\""), true)
        );
        assert_eq!(whole.part(), Ok(Some(b"hi".to_vec())));
        assert_eq!(whole.part(), Ok(None));
        assert!(!parsed(false, b"HTTP/1.1 200 \r\ncontent-length: 9\r\n\r\nhi").unwrap().is_over);
        assert!(!parsed(false, b"HTTP/1.1 200 \r\n\r\nhi").unwrap().is_over);
        assert!(parsed(true, b"HTTP/1.1 200 \r\ncontent-length: 9\r\n\r\n").unwrap().is_over);
        assert!(parsed(false, b"HTTP/1.1 304 \r\ncontent-length: 9\r\n\r\n").unwrap().is_over);
        assert_eq!(parsed(false, b"HTTP/1.1 x\r\n\r\n"), None);
        assert_eq!(parsed(false, b""), None);
    }

    #[test]
    fn value_makes_no_field_of_its_own() {
        let request = Request::get("https://a.example/").header("x-a", "1\r\nhost: b");
        assert_eq!(request.fields, "x-a: 1  host: b\r\n");
    }
}
