//! Packages at the hub's registry, as `skopeo` and clients by hand meet it; some mean harm.

mod world;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use tenure_package::PACKAGE_BYTES_MAX;
use tenure_testbed::skip_without_tool;
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
