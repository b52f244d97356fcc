//! Pretended servers outside: they answer requests as they are told to.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context as _, bail};
use serde::Deserialize;
use tenure_kernel::{Ask, OutgoingVisit, Visited};
use tenure_wire::NoResult;
use tenure_wire::capability::Method;
use tenure_wire::url::Origin;

/// The most bytes of a body in one part.
const PART_BYTES: usize = 4096;

/// A pretended server, as the file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PretendedServer {
    /// Scheme, host and port: `https://api.example.com`.
    url: String,
    /// Its answers, by method and path: `GET /v1/price`. Other requests are answered 404.
    #[serde(default)]
    answers: BTreeMap<String, Answer>,
}

/// An answer: the body of one with the status 200, or more of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Answer {
    Body(String),
    Whole(WholeAnswer),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct WholeAnswer {
    #[serde(default = "ok")]
    status: u16,
    #[serde(default)]
    fields: BTreeMap<String, String>,
    #[serde(default)]
    body: String,
}

fn ok() -> u16 {
    200
}

/// The servers around the machine that is tested.
#[derive(Default)]
pub(super) struct Servers {
    servers: Vec<(Origin, BTreeMap<String, WholeAnswer>)>,
    /// The parts of the last answer that weren't asked for.
    rest: VecDeque<Vec<u8>>,
}

impl Servers {
    /// Those of the file.
    ///
    /// # Errors
    /// One has no origin, or an answer to what is no request.
    pub(super) fn new(file: &[PretendedServer]) -> anyhow::Result<Self> {
        let mut servers = Self::default();
        for PretendedServer { url, answers } in file {
            let place = || format!("server `{url}`");
            let origin: Origin = url.parse().with_context(place)?;
            let mut known = BTreeMap::new();
            for (request, answer) in answers {
                let is_request = request.split_once(' ').is_some_and(|(method, path)| {
                    method.parse::<Method>().is_ok() && path.starts_with('/')
                });
                if !is_request {
                    bail!("{}: `{request}` is no request such as `GET /v1/price`", place());
                }
                let answer = match answer.clone() {
                    Answer::Whole(answer) => answer,
                    Answer::Body(body) => {
                        WholeAnswer { status: ok(), fields: BTreeMap::new(), body }
                    }
                };
                known.insert(request.clone(), answer);
            }
            servers.servers.push((origin, known));
        }
        Ok(servers)
    }

    /// Ends a visit.
    pub(super) fn visit(&mut self, visit: OutgoingVisit) -> Visited {
        let OutgoingVisit { id, ask, .. } = visit;
        let sent = match &ask {
            Ask::Request { message, .. } => message.as_ref().map_or(0, Vec::len),
            Ask::More => 0,
        };
        let (result, words) = match self.answer(&ask) {
            Ok(told) => (Ok(told), Vec::new()),
            Err(words) => (Err(NoResult::Unreachable), words.into_bytes()),
        };
        let received = result.as_ref().ok().and_then(Option::as_ref).map_or(0, Vec::len);
        Visited { id, result, words, traffic: (sent as u64, received as u64) }
    }

    fn answer(&mut self, ask: &Ask) -> Result<Option<Vec<u8>>, String> {
        let Ask::Request { method, url, .. } = ask else { return Ok(self.rest.pop_front()) };
        let known = self.servers.iter().find(|(origin, _)| origin == url.origin());
        let (_, answers) =
            known.ok_or_else(|| format!("tests.toml pretends no server {}", url.origin()))?;
        let missing = WholeAnswer { status: 404, fields: BTreeMap::new(), body: String::new() };
        let asked = format!("{method} {}", url.path_and_query());
        let WholeAnswer { status, fields, body } = answers.get(&asked).unwrap_or(&missing);
        let mut told = format!("HTTP/1.1 {status} \r\ncontent-length: {}\r\n", body.len());
        for (name, value) in fields {
            told += &format!("{}: {value}\r\n", name.to_ascii_lowercase());
        }
        let mut told = (told + "\r\n").into_bytes();
        self.rest = body.as_bytes().chunks(PART_BYTES).map(<[u8]>::to_vec).collect();
        if method.as_str() == "HEAD" {
            self.rest.clear();
        }
        told.extend(self.rest.pop_front().unwrap_or_default());
        Ok(Some(told))
    }
}

#[cfg(test)]
mod tests {
    use tenure_hal::Instant;
    use tenure_kernel::CallId;
    use tenure_wire::MachineId;

    use super::*;

    fn servers(text: &str) -> anyhow::Result<Servers> {
        #[derive(Deserialize)]
        struct File {
            server: Vec<PretendedServer>,
        }
        Servers::new(&toml::from_str::<File>(text)?.server)
    }

    fn asked(servers: &mut Servers, ask: Ask) -> Visited {
        let (id, from, deadline) = (CallId(1), MachineId([1; 12]), Instant::BOOT);
        servers.visit(OutgoingVisit { id, from, ask, granted: Vec::new(), deadline, attempts: 1 })
    }

    fn request(method: &str, url: &str) -> Ask {
        let (method, url) = (method.parse().unwrap(), url.parse().unwrap());
        Ask::Request { method, url, message: None }
    }

    #[test]
    fn answer_comes_in_parts_and_others_are_missing() {
        let long = "x".repeat(PART_BYTES + 1);
        let mut servers = servers(&format!(
            "[[server]]\nurl = \"https://a.example\"\nanswers = {{ \"GET /x?y\" = \"{long}\", \
             \"PUT /x\" = {{ status = 201, fields = {{ ETag = \"1\" }} }} }}"
        ))
        .unwrap();
        let told = asked(&mut servers, request("GET", "https://a.example/x?y")).result.unwrap();
        let told = String::from_utf8(told.unwrap()).unwrap();
        let head = format!("HTTP/1.1 200 \r\ncontent-length: {}\r\n\r\n", PART_BYTES + 1);
        assert_eq!(told, head + &long[1..]);
        assert_eq!(asked(&mut servers, Ask::More).result, Ok(Some(b"x".to_vec())));
        assert_eq!(asked(&mut servers, Ask::More).result, Ok(None));
        let mut status = |method: &str, path: &str| {
            let visited = asked(&mut servers, request(method, &format!("https://a.example{path}")));
            String::from_utf8(visited.result.unwrap().unwrap()).unwrap()
        };
        assert_eq!(status("PUT", "/x"), "HTTP/1.1 201 \r\ncontent-length: 0\r\netag: 1\r\n\r\n");
        assert!(status("GET", "/x").starts_with("HTTP/1.1 404 "));
        let elsewhere = asked(&mut servers, request("GET", "http://a.example/x?y"));
        assert_eq!(elsewhere.result, Err(NoResult::Unreachable));
        assert_eq!(elsewhere.words, b"tests.toml pretends no server http://a.example");
    }

    #[test]
    fn file_that_pretends_no_server_is_told_so() {
        for (text, expected) in [
            ("url = \"a.example\"", "begins with https://"),
            ("url = \"https://a.example/v1\"", "stand alone"),
            ("url = \"https://a.example\"\nanswers = { \"/x\" = \"\" }", "is no request such as"),
        ] {
            let error = servers(&format!("[[server]]\n{text}")).err().unwrap();
            let error = format!("{error:#}");
            assert!(error.contains(expected), "{error}");
        }
    }
}
