//! Packages at the hub's registry, as `skopeo` and clients by hand meet it; some mean harm.

mod world;

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tenure_package::PACKAGE_BYTES_MAX;
use tenure_testbed::{patience, skip_without_tool};
use tenure_wire::hub::{Access, Answer, HubRefusal, Request, Response, Scope, function};
use world::{Reply, World, digest, manifest, owner, package};

const PACKAGE_TYPE: &str = "application/vnd.tenure.package.v1";
const MANIFEST_TYPE: &str = "content-type: application/vnd.oci.image.manifest.v1+json";

/// A client of the registry that shows a token as its password.
struct Client<'a> {
    world: &'a World,
    authorization: String,
}

impl<'a> Client<'a> {
    fn new(world: &'a World, token: &str) -> Self {
        let secret = token.strip_prefix("authorization: Bearer ").unwrap();
        let pair = data_encoding::BASE64.encode(format!("anybody:{secret}").as_bytes());
        Self { world, authorization: format!("authorization: Basic {pair}") }
    }

    fn send(&self, method: &str, path: &str, headers: &[&str], body: &[u8]) -> Reply {
        let headers = [&[self.authorization.as_str()][..], headers].concat();
        self.world.request_bytes(method, path, &headers, body)
    }

    fn get(&self, path: &str) -> Reply {
        self.send("GET", path, &[], b"")
    }

    fn push_blob(&self, repository: &str, bytes: &[u8]) -> Reply {
        let path = format!("/v2/{repository}/blobs/uploads/?digest={}", digest(bytes));
        self.send("POST", &path, &[], bytes)
    }

    fn push_manifest(&self, repository: &str, reference: &str, manifest: &str) -> Reply {
        let path = format!("/v2/{repository}/manifests/{reference}");
        self.send("PUT", &path, &[MANIFEST_TYPE], manifest.as_bytes())
    }

    fn push(&self, repository: &str, tag: &str, package: &[u8]) -> Reply {
        assert_eq!(self.push_blob(repository, b"{}").status, 201);
        assert_eq!(self.push_blob(repository, package).status, 201);
        self.push_manifest(repository, tag, &manifest(PACKAGE_TYPE, package))
    }
}

fn code(reply: &Reply) -> String {
    let body: Value = serde_json::from_str(&reply.body).unwrap();
    body["errors"][0]["code"].as_str().unwrap().to_string()
}

#[test]
fn package_pushed_is_pulled_by_tag_and_digest_and_listed() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let bytes = package("1.2.0");
    let pushed = client.push("house/thermostat", "1.2.0", &bytes);
    assert_eq!(pushed.status, 201, "{}", pushed.body);
    let by_tag = client.get("/v2/house/thermostat/manifests/1.2.0");
    let by_digest = pushed.header("docker-content-digest").unwrap();
    assert_eq!(by_tag.body, manifest(PACKAGE_TYPE, &bytes));
    assert_eq!(by_tag.header("docker-content-digest"), Some(by_digest));
    assert_eq!(client.get(&format!("/v2/house/thermostat/manifests/{by_digest}")).status, 200);
    let blob = format!("/v2/house/thermostat/blobs/{}", digest(&bytes));
    let part = client.send("GET", &blob, &["range: bytes=0-3"], b"");
    let whole = format!("bytes 0-3/{}", bytes.len());
    assert_eq!((part.status, part.header("content-range")), (206, Some(whole.as_str())));
    assert_eq!(client.send("GET", &blob, &["range: bytes=99999999-"], b"").status, 416);
    let tags = client.get("/v2/house/thermostat/tags/list").json();
    assert_eq!(tags, json!({ "name": "house/thermostat", "tags": ["1.2.0"] }));
    let listed = world.get("/v1/packages", &[&token]).json();
    assert_eq!(listed["items"][0]["package"], "thermostat");
    assert_eq!(listed["items"][0]["version"], "1.2.0");
    let cookie = world.cookie(&owner(1));
    assert!(world.get("/packages", &[&cookie]).body.contains("house/thermostat"));
}

#[test]
fn skopeo_copies_a_package_here_and_back() {
    if Command::new("skopeo").arg("--version").output().is_err() {
        skip_without_tool("skopeo (Debian: skopeo)");
        return;
    }
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let bytes = package("1.0.0");
    let pushed = client.push("thermostat", "1.0.0", &bytes);
    let secret = token.strip_prefix("authorization: Bearer ").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let here = |reference: &str| format!("docker://{}/{reference}", world.pages);
    let layout = |name: &str| format!("oci:{}:x", folder.path().join(name).display());
    let copy = |from: &str, to: &str| {
        let mut command = Command::new("skopeo");
        command.args(["--insecure-policy", "copy", "--preserve-digests"]);
        command.args(["--src-tls-verify=false", "--dest-tls-verify=false"]);
        for (place, option) in [(from, "--src-creds"), (to, "--dest-creds")] {
            if place.starts_with("docker:") {
                command.arg(format!("{option}=x:{secret}"));
            }
        }
        let output = command.args([from, to]).env("XDG_RUNTIME_DIR", folder.path()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    copy(&here("thermostat:1.0.0"), &layout("out"));
    let blob = digest(&bytes).replace("sha256:", "blobs/sha256/");
    let copied = std::fs::read(folder.path().join("out").join(Path::new(&blob))).unwrap();
    assert_eq!(copied, bytes);
    copy(&layout("out"), &here("copies/thermostat:again"));
    let again = client.get("/v2/copies/thermostat/manifests/again");
    assert_eq!(
        again.header("docker-content-digest"),
        pushed.header("docker-content-digest"),
        "the very same manifest"
    );
}

#[test]
fn upload_in_parts_goes_on_where_it_stopped() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let bytes = package("1.0.0");
    let begun = client.send("POST", "/v2/thermostat/blobs/uploads/", &[], b"");
    assert_eq!(begun.status, 202);
    let place = begun.header("location").unwrap();
    let first = client.send("PATCH", place, &["content-range: 0-9999"], &bytes[..10_000]);
    assert_eq!((first.status, first.header("range")), (202, Some("0-9999")));
    let twice = client.send("PATCH", place, &["content-range: 0-9999"], &bytes[..10_000]);
    assert_eq!((twice.status, twice.header("range")), (416, Some("0-9999")));
    let asked = client.get(place);
    assert_eq!((asked.status, asked.header("range")), (204, Some("0-9999")));
    let wrong = client.send("PUT", &format!("{place}?digest={}", digest(b"other")), &[], b"");
    assert_eq!((wrong.status, code(&wrong).as_str()), (400, "DIGEST_INVALID"));
    let begun = client.send("POST", "/v2/thermostat/blobs/uploads/", &[], b"");
    let place = begun.header("location").unwrap();
    client.send("PATCH", place, &[], &bytes[..10_000]);
    let put = format!("{place}?digest={}", digest(&bytes));
    assert_eq!(client.send("PUT", &put, &[], &bytes[10_000..]).status, 201);
    assert_eq!(client.get(place).status, 404, "the upload is over");
}

#[test]
fn what_is_no_package_or_was_changed_is_refused() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let mut changed = package("1.0.0");
    changed[5_000] ^= 1;
    let refused = client.push("thermostat", "1", &changed);
    assert_eq!((refused.status, code(&refused).as_str()), (400, "MANIFEST_INVALID"));
    assert_eq!(client.push("thermostat", "1", b"no package").status, 400);
    let unknown = manifest(PACKAGE_TYPE, b"never pushed");
    let refused = client.push_manifest("thermostat", "1", &unknown);
    assert_eq!((refused.status, code(&refused).as_str()), (404, "MANIFEST_BLOB_UNKNOWN"));
    for body in ["", "{", "[]", "{\"schemaVersion\":2}"] {
        assert_eq!(client.push_manifest("thermostat", "1", body).status, 400, "{body}");
    }
    assert_eq!(world.get("/v1/packages", &[&token]).json()["items"], json!([]));
}

#[test]
fn paths_with_tricks_name_nothing() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    for name in
        ["..", "../..", "%2e%2e", "a/../b", "a//b", "A", "a%2Fb", "a_", "a..b", "-a", "a%00"]
    {
        let reply = client.push_blob(name, b"{}");
        assert_eq!((reply.status, code(&reply).as_str()), (400, "NAME_INVALID"), "{name}");
    }
    let long = "a".repeat(256);
    assert_eq!(client.push_blob(&long, b"{}").status, 400);
    for tag in ["..%2F..%2Fx", ".hidden", &"t".repeat(129), "a%20b"] {
        let reply = client.push_manifest("thermostat", tag, &manifest("x/y", b"{}"));
        assert!(reply.status == 400, "{tag}: {}", reply.status);
    }
    for path in ["/v2/a/blobs/sha256:..", "/v2/a/blobs/md5:00", "/v2/a/manifests/x"] {
        assert_eq!(client.get(path).status, 404, "{path}");
    }
}

#[test]
fn key_reaches_nothing_of_another_key() {
    let mut world = World::with_fleet();
    let (one, other) = (world.token(&owner(1)), world.token(&owner(2)));
    let (one, other) = (Client::new(&world, &one), Client::new(&world, &other));
    let bytes = package("1.0.0");
    one.push("thermostat", "1", &bytes);
    let begun = one.send("POST", "/v2/thermostat/blobs/uploads/", &[], b"");
    let upload = begun.header("location").unwrap();
    assert_eq!(other.get("/v2/thermostat/manifests/1").status, 404);
    assert_eq!(other.get(&format!("/v2/thermostat/blobs/{}", digest(&bytes))).status, 404);
    assert_eq!(other.get("/v2/thermostat/tags/list").status, 404);
    assert_eq!(other.get(upload).status, 404);
    assert_eq!(other.send("PATCH", upload, &[], b"x").status, 404);
    let mount = format!("/v2/mine/blobs/uploads/?mount={}&from=thermostat", digest(&bytes));
    assert_eq!(other.send("POST", &mount, &[], b"").status, 202, "not there to be mounted");
    assert_eq!(one.send("POST", &mount, &[], b"").status, 201);
    assert_eq!(other.send("DELETE", "/v2/thermostat/manifests/1", &[], b"").status, 404);
    assert_eq!(one.get("/v2/thermostat/manifests/1").status, 200);
}

#[test]
fn nobody_pushes_without_a_token_that_goes_so_far() {
    let mut world = World::with_fleet();
    let bare = world.get("/v2/", &[]);
    assert_eq!(
        (bare.status, bare.header("www-authenticate")),
        (401, Some("Basic realm=\"tenure\""))
    );
    let all = world.token(&owner(1));
    let read = world.token_for(&owner(1), vec![Scope::Read]);
    let receipts = world.token_for(&owner(1), vec![Scope::Receipts]);
    Client::new(&world, &all).push("thermostat", "1", &package("1.0.0"));
    let reads = Client::new(&world, &read);
    assert_eq!(reads.get("/v2/").status, 200);
    assert_eq!(reads.get("/v2/thermostat/manifests/1").status, 200);
    let refused = reads.push_blob("thermostat", b"{}");
    assert_eq!((refused.status, code(&refused).as_str()), (403, "DENIED"));
    assert_eq!(Client::new(&world, &receipts).get("/v2/thermostat/manifests/1").status, 403);
    assert_eq!(world.get("/v1/devices", &[&receipts]).status, 403);
    let hand_in = |token: &str| world.request("POST", "/v1/receipts", &[token], "").status;
    assert_eq!((hand_in(&receipts), hand_in(&read)), (200, 403));
    // A browser that remembers the password sends it by itself, whichever site asks it to.
    let client = Client::new(&world, &all);
    let path = format!("/v2/a/blobs/uploads/?digest={}", digest(b"{}"));
    let elsewhere = ["sec-fetch-site: cross-site", "origin: http://evil.example"];
    assert_eq!(client.send("POST", &path, &elsewhere, b"{}").status, 403);
}

#[test]
fn uploads_beyond_the_limits_are_refused_and_the_next_one_works() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let long = vec![0; PACKAGE_BYTES_MAX + 1];
    assert_eq!(client.push_blob("a", &long).status, 413);
    let begun = client.send("POST", "/v2/a/blobs/uploads/", &[], b"");
    let place = begun.header("location").unwrap();
    assert_eq!(client.send("PATCH", place, &[], &long[1..]).status, 202);
    let beyond = client.send("PATCH", place, &[], b"x");
    assert_eq!((beyond.status, code(&beyond).as_str()), (413, "SIZE_INVALID"));
    let begin = || client.send("POST", "/v2/a/blobs/uploads/", &[], b"");
    let begun: Vec<Reply> = (0..8).map(|_| begin()).collect();
    assert!(begun.iter().all(|reply| reply.status == 202));
    assert_eq!(begin().status, 429);
    let cancelled = client.send("DELETE", begun[0].header("location").unwrap(), &[], b"");
    assert_eq!(cancelled.status, 204);
    assert_eq!(begin().status, 202);
}

#[test]
fn upload_takes_1024_parts_and_ends_with_its_last_one() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let begun = client.send("POST", "/v2/a/blobs/uploads/", &[], b"");
    let place = begun.header("location").unwrap();
    for part in 0..1024 {
        assert_eq!(client.send("PATCH", place, &[], b"x").status, 202, "part {part}");
    }
    let beyond = client.send("PATCH", place, &[], b"x");
    assert_eq!((beyond.status, code(&beyond).as_str()), (429, "TOOMANYREQUESTS"));
    let whole = [b'x'; 1025];
    let put = format!("{place}?digest={}", digest(&whole));
    assert_eq!(client.send("PUT", &put, &[], b"x").status, 201);
}

/// A client whose push of a blob stops after `headers`, each with its end of the line, and `begun`.
fn push_with(world: &World, token: &str, headers: &str, begun: &str) -> TcpStream {
    let authorization = Client::new(world, token).authorization;
    let path = format!("/v2/a/blobs/uploads/?digest={}", digest(b"{}"));
    let head = format!("POST {path} HTTP/1.1\r\nhost: hub\r\n{authorization}\r\n{headers}");
    let request = format!("{head}content-length: 2\r\n\r\n{begun}");
    let mut stream = world.connect();
    stream.set_read_timeout(Some(patience())).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// A client whose push of a blob stops after the first byte.
fn stalled_push(world: &World, token: &str) -> TcpStream {
    let stream = push_with(world, token, "", "{");
    stream.set_nonblocking(true).unwrap();
    stream
}

/// A client whose push of a blob stops once the hub reads its body, and so has a place for it (RFC 9110 §10.1.1).
fn push_with_a_place(world: &World, token: &str) -> TcpStream {
    const GO_ON: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";
    let mut stream = push_with(world, token, "expect: 100-continue\r\n", "");
    let mut answer = [0; GO_ON.len()];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer, GO_ON, "{}", String::from_utf8_lossy(&answer));
    stream.set_nonblocking(true).unwrap();
    stream
}

/// Whether the hub has neither answered nor closed.
fn is_waiting(stream: &TcpStream) -> bool {
    stream.peek(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
}

#[test]
fn key_whose_bodies_stall_holds_up_no_other_key() {
    let mut world = World::with_fleet();
    let (slow, other) = (world.token(&owner(1)), world.token(&owner(2)));
    let stalled: Vec<TcpStream> = (0..40).map(|_| stalled_push(&world, &slow)).collect();
    for round in 0..20_u8 {
        assert_eq!(Client::new(&world, &other).push_blob("a", &[round]).status, 201);
        assert_eq!(Client::new(&world, &slow).get("/v2/").status, 200, "no body, no wait");
    }
    assert!(stalled.iter().all(is_waiting), "they were under way all the time");
}

#[test]
fn body_beyond_the_sixteenth_waits_for_a_place() {
    let mut world = World::with_fleet();
    for (whose, name) in [(3, "barn"), (4, "porch"), (5, "roof")] {
        world.list(whose, 20 + whose, name);
    }
    let tokens: Vec<String> = (1..=5).map(|key| world.token(&owner(key))).collect();
    let stalls = tokens[..4].iter().flat_map(|token| [token; 4]);
    let mut stalled: Vec<TcpStream> =
        stalls.map(|token| push_with_a_place(&world, token)).collect();
    let mut seventeenth = stalled_push(&world, &tokens[4]);
    seventeenth.write_all(b"}").unwrap();
    for _ in 0..20 {
        assert_eq!(Client::new(&world, &tokens[4]).get("/v2/").status, 200, "no body, no wait");
    }
    assert!(is_waiting(&seventeenth), "each place is taken");
    stalled.pop();
    seventeenth.set_nonblocking(false).unwrap();
    let mut answer = [0; 12];
    seventeenth.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 201");
    assert!(stalled.iter().all(is_waiting), "it had the place of the one that left");
}

/// Gives the one key that has a blob `count` further blobs of `bytes_each` bytes, taken at `taken_unix_s`.
fn fill_blobs(world: &mut World, count: u32, bytes_each: u64, taken_unix_s: u64) {
    world.write_by_hand(&format!(
        "INSERT INTO blobs WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
         SELECT (SELECT who FROM blobs), 'filler ' || n, {bytes_each}, {taken_unix_s}, x'' FROM n"
    ));
}

#[test]
fn key_stores_its_last_blob_and_byte_and_nothing_beyond_while_others_store_on() {
    let mut world = World::with_fleet();
    let (token, others) = (world.token(&owner(1)), world.token(&owner(2)));
    // A blob of 2 bytes is there; 19,998 more leave the place of one.
    assert_eq!(Client::new(&world, &token).push_blob("a", b"{}").status, 201);
    fill_blobs(&mut world, 19_998, 0, world::now());
    let client = Client::new(&world, &token);
    assert_eq!(client.push_blob("a", b"last").status, 201);
    let beyond = client.push_blob("a", b"beyond");
    assert_eq!((beyond.status, code(&beyond).as_str()), (403, "DENIED"));
    assert_eq!(client.push_blob("a", b"last").status, 201, "it is there");
    assert_eq!(Client::new(&world, &others).push_blob("a", b"beyond").status, 201);

    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    assert_eq!(Client::new(&world, &token).push_blob("a", b"{}").status, 201);
    let list = manifest("text/plain", b"{}");
    // Its annotations, of which there are none, stand apart as two bytes more.
    fill_blobs(&mut world, 1, (256 << 20) - 2 - list.len() as u64 - 2 - 9, world::now());
    let client = Client::new(&world, &token);
    assert_eq!(client.push_manifest("a", "one", &list).status, 201, "9 bytes are left");
    assert_eq!(client.push_blob("a", b"ten bytes!").status, 403);
    assert_eq!(client.push_blob("a", b"and  nine").status, 201);
    assert_eq!(client.push_blob("a", b"x").status, 403);
    assert_eq!(client.push_manifest("b", "one", &list).status, 403);
    assert_eq!(client.push_manifest("a", "two", &list).status, 201, "its bytes are there");
}

#[test]
fn key_full_of_blobs_that_nothing_names_has_room_again_a_day_later() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    assert_eq!(Client::new(&world, &token).push_blob("a", b"{}").status, 201);
    fill_blobs(&mut world, 19_999, 0, world::now() - 2 * 86_400);
    let client = Client::new(&world, &token);
    assert_eq!(client.push_blob("a", b"next").status, 201);
    assert_eq!(client.get(&format!("/v2/a/blobs/{}", digest(b"{}"))).status, 200, "it is new");
    // The next look at all of them is an hour away, so that full keys cost the others no time.
    fill_blobs(&mut world, 19_998, 0, world::now() - 2 * 86_400);
    let client = Client::new(&world, &token);
    assert_eq!(client.push_blob("a", b"one more").status, 403);
    world.write_by_hand("UPDATE sweeps SET swept_unix_s = swept_unix_s - 3601");
    let client = Client::new(&world, &token);
    assert_eq!(client.push_blob("a", b"one more").status, 201);
}

#[test]
fn key_stores_its_last_manifest_and_tag_and_moves_tags_when_both_are_full() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let [one, two, three] = ["a/one", "a/two", "a/three"].map(|kind| manifest(kind, b"{}"));
    assert_eq!(client.push_blob("a", b"{}").status, 201);
    assert_eq!(client.push_manifest("a", "moved", &one).status, 201);
    let numbers = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 9998)";
    world.write_by_hand(&format!(
        "INSERT INTO manifests (who, repository, digest, media_type, artifact_type, annotations, bytes, \
         pushed_unix_s) {numbers} SELECT who, 'filler', n, '', '', '{{}}', x'', 0 FROM blobs, n"
    ));
    world.write_by_hand(&format!(
        "INSERT INTO tags {numbers} SELECT who, 'filler', n, (SELECT max(id) FROM manifests) FROM blobs, n"
    ));
    let client = Client::new(&world, &token);
    assert_eq!(client.push_manifest("a", "last", &two).status, 201);
    let beyond = client.push_manifest("a", "moved", &three);
    assert_eq!((beyond.status, code(&beyond).as_str()), (403, "DENIED"), "a manifest too many");
    assert_eq!(client.push_manifest("a", "beyond", &two).status, 403, "a tag too many");
    assert_eq!(client.push_manifest("a", "moved", &two).status, 201, "neither grows");
    assert_eq!(client.push_manifest("a", &digest(one.as_bytes()), &one).status, 201);
    assert_eq!(client.send("DELETE", "/v2/a/manifests/last", &[], b"").status, 202);
    assert_eq!(client.push_manifest("a", "beyond", &two).status, 201);
}

#[test]
fn deleted_manifest_takes_with_it_the_blobs_that_no_other_has() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let (one, two) = (package("1.0.0"), package("2.0.0"));
    let first = client.push("thermostat", "1", &one);
    client.push("thermostat", "2", &two);
    client.push_blob("thermostat", b"on its way");
    let blob = |bytes: &[u8]| client.get(&format!("/v2/x/blobs/{}", digest(bytes))).status;
    let delete = |path: &str| client.send("DELETE", path, &[], b"").status;
    assert_eq!(delete(&format!("/v2/thermostat/blobs/{}", digest(&two))), 403, "it is named");
    let manifest = first.header("docker-content-digest").unwrap();
    assert_eq!(delete(&format!("/v2/thermostat/manifests/{manifest}")), 202);
    assert_eq!((blob(&one), blob(&two), blob(b"{}"), blob(b"on its way")), (404, 200, 200, 200));
    assert_eq!(client.get("/v2/thermostat/manifests/1").status, 404);
}

#[test]
fn artifact_about_a_package_is_found_as_its_referrer() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let pushed = client.push("thermostat", "1", &package("1.0.0"));
    let subject = pushed.header("docker-content-digest").unwrap();
    client.push_blob("thermostat", b"parts");
    let mut list: Value =
        serde_json::from_str(&manifest("application/spdx+json", b"parts")).unwrap();
    list["subject"] = json!({ "mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": subject, "size": 1 });
    let list = list.to_string();
    let put = client.push_manifest("thermostat", &digest(list.as_bytes()), &list);
    assert_eq!((put.status, put.header("oci-subject")), (201, Some(subject)));
    let found = client.get(&format!("/v2/thermostat/referrers/{subject}")).json();
    assert_eq!(found["manifests"][0]["digest"], digest(list.as_bytes()));
    let none = format!("/v2/thermostat/referrers/{subject}?artifactType=x%2Fy");
    assert_eq!(client.get(&none).json()["manifests"], json!([]));
}

#[test]
fn session_pushes_by_the_same_requests_with_a_pass_of_its_own_alone() {
    let mut world = World::with_fleet();
    let pass = world.pass(&owner(1), Access::Session).unwrap().secret;
    let path = format!("/v2/thermostat/blobs/uploads/?digest={}", digest(b"{}"));
    let mut request =
        Request { pass, method: "POST".into(), path, headers: Vec::new(), body: b"{}".to_vec() };
    let answer: Answer<Response> = world.call(function::REQUEST, &request);
    assert_eq!(answer.unwrap().status, 201);
    request.path = "/v1/devices".into();
    let elsewhere: Answer<Response> = world.call(function::REQUEST, &request);
    assert_eq!(elsewhere.unwrap().status, 404);
    let token = world.pass(&owner(1), world::token_access(vec![Scope::Packages])).unwrap().secret;
    request.pass = token;
    let refused: Answer<Response> = world.call(function::REQUEST, &request);
    assert_eq!(refused, Err(HubRefusal::Pass), "a token is for HTTP");
}
