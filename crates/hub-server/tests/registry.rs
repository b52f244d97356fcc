//! Packages at the hub's registry, as `skopeo` and clients by hand meet it; some mean harm.

use super::world;

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

/// RFC 9110 14.2: a range is a `GET`'s; one that isn't understood, and several at once, are answered by the whole.
#[test]
fn part_of_a_blob_is_the_one_that_the_request_means() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let bytes = b"0123456789abcdefghij";
    assert_eq!(client.push_blob("a", bytes).status, 201);
    let path = format!("/v2/a/blobs/{}", digest(bytes));
    for (range, status, part) in [
        ("bytes=3-5", 206, "345"),
        ("bytes=18-99", 206, "ij"),
        ("bytes=-3", 206, "hij"),
        ("BYTES=-99", 206, "0123456789abcdefghij"),
        ("items=0-5", 200, "0123456789abcdefghij"),
        ("bytes=abc", 200, "0123456789abcdefghij"),
        ("bytes=0-1,5-6", 200, "0123456789abcdefghij"),
    ] {
        let reply = client.send("GET", &path, &[&format!("range: {range}")], b"");
        assert_eq!((reply.status, reply.body.as_str()), (status, part), "{range}");
    }
    let behind = client.send("GET", &path, &["range: bytes=20-"], b"");
    assert_eq!((behind.status, code(&behind).as_str()), (416, "RANGE_INVALID"));
    assert_eq!(behind.header("content-range"), Some("bytes */20"));
    let head = client.send("HEAD", &path, &["range: bytes=50-"], b"");
    assert_eq!((head.status, head.header("content-length")), (200, Some("20")));
    assert_eq!(client.push_blob("a", b"").status, 201);
    let head = client.send("HEAD", &format!("/v2/a/blobs/{}", digest(b"")), &[], b"");
    assert_eq!((head.status, head.header("content-length")), (200, Some("0")));
}

/// RFC 9110 8.3.1 and 11.1: letters of media types and schemes have no case, and parameters make no other type.
#[test]
fn case_and_parameters_of_a_header_change_nothing() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    client.push_blob("a", b"{}");
    let list = manifest("x/y", b"{}");
    let put = |list: &str, kind: &str| {
        let kind = format!("Content-Type: {kind}");
        client.send("PUT", "/v2/a/manifests/one", &[&kind], list.as_bytes())
    };
    for kind in [
        "application/vnd.oci.image.manifest.v1+json; charset=utf-8",
        "Application/vnd.oci.image.manifest.v1+JSON",
        "application/vnd.oci.image.manifest.v1+json ;a=b",
    ] {
        assert_eq!(put(&list, kind).status, 201, "{kind}");
    }
    assert_eq!(put(&list, "application/vnd.oci.image.manifest.v1+jsonx").status, 400);
    // Other letters don't make a package something else, which nobody needed to sign.
    let unsigned = manifest("Application/vnd.Tenure.package.v1", b"{}");
    let refused = put(&unsigned, "application/vnd.oci.image.manifest.v1+json");
    assert_eq!((refused.status, code(&refused).as_str()), (400, "MANIFEST_INVALID"));
    let bearer = token.replace("authorization: Bearer ", "AUTHORIZATION: bEARER  ");
    let basic = client.authorization.replace("authorization: Basic ", "Authorization: basic ");
    for authorization in [&bearer, &basic] {
        assert_eq!(world.get("/v2/", &[authorization]).status, 200, "{authorization}");
        let path = format!("/v2/a/blobs/uploads/?digest={}", digest(b"{}"));
        assert_eq!(world.request("POST", &path, &[authorization], "{}").status, 201);
    }
}

/// Distribution spec 1.1, "Listing Tags": "lexical (i.e. case-insensitive alphanumeric) order".
#[test]
fn tags_are_listed_in_alphabetical_order_whatever_their_case_also_page_by_page() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    client.push_blob("a", b"{}");
    for tag in ["gamma", "Beta", "alpha", "beta", "1.10", "_x", "ALPHA", "1.9"] {
        assert_eq!(client.push_manifest("a", tag, &manifest("x/y", b"{}")).status, 201);
    }
    let listed = |query: &str| {
        let reply = client.get(&format!("/v2/a/tags/list{query}"));
        let tags = reply.json()["tags"].as_array().unwrap().clone();
        let tags: Vec<String> = tags.iter().map(|tag| tag.as_str().unwrap().into()).collect();
        (tags, reply.header("link").map(str::to_string))
    };
    let all = ["1.10", "1.9", "_x", "ALPHA", "alpha", "Beta", "beta", "gamma"];
    assert_eq!(listed("").0, all);
    for n in 1..=all.len() {
        let (mut met, mut query) = (Vec::new(), format!("?n={n}"));
        for _ in 0..=all.len() {
            let (tags, link) = listed(&query);
            met.extend(tags);
            let Some(link) = link else { break };
            query = link[link.find('?').unwrap()..link.find('>').unwrap()].to_string();
        }
        assert_eq!(met, all, "{n} at a time");
    }
    assert_eq!(listed("?last=ALPHB").0, ["Beta", "beta", "gamma"], "behind a tag that isn't there");
    assert_eq!(listed("?n=0"), (Vec::new(), None));
}

#[test]
fn request_without_a_pass_is_challenged_and_one_of_another_site_refused() {
    let world = World::with_fleet();
    let uploads = "/v2/a/blobs/uploads/";
    for (method, path) in [
        ("POST", uploads),
        ("PUT", "/v2/a/manifests/one"),
        ("PATCH", "/v2/a/blobs/uploads/1"),
        ("DELETE", "/v2/a/manifests/one"),
        ("HEAD", "/v2/a/manifests/one"),
        ("POST", "/v1/rollouts"),
    ] {
        let reply = world.request(method, path, &[], "");
        let challenge = reply.header("www-authenticate");
        assert_eq!((reply.status, challenge), (401, Some("Basic realm=\"tenure\"")), "{path}");
    }
    let receipts = world.request("POST", "/v1/receipts", &[], "00");
    assert_eq!((receipts.status, receipts.header("www-authenticate")), (401, Some("Bearer")));
    for site in ["sec-fetch-site: cross-site", "origin: http://evil.example"] {
        let reply = world.request("POST", uploads, &[site], "");
        assert_eq!((reply.status, reply.header("www-authenticate")), (403, None), "{site}");
    }
    assert_eq!(world.request("POST", "/sign-out", &[], "").status, 403, "pages are for browsers");
}

#[test]
fn method_that_a_path_does_not_take_is_told_those_that_it_does() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    for (path, allowed) in [
        ("/v2/", "GET, HEAD"),
        ("/v2/a/tags/list", "GET, HEAD"),
        ("/v2/a/manifests/one", "GET, HEAD, PUT, DELETE"),
        ("/v2/a/blobs/uploads/", "POST"),
        ("/devices", "GET, HEAD, POST"),
    ] {
        let reply = world.request("PATCH", path, &[&token], "");
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allowed)), "{path}");
    }
}

/// Image spec 1.1: a manifest may have members that no spec names, digests of SHA-512, and layers that are kept
/// elsewhere; it is served as it came.
#[test]
fn manifest_of_other_tools_is_kept_as_it_came() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    let long = |bytes: &[u8]| {
        let digest = tenure_crypto::HashAlgorithm::Sha512.digest(&[bytes]);
        format!("sha512:{}", data_encoding::HEXLOWER.encode(&digest))
    };
    let push = |digest: &str, bytes: &[u8]| {
        let path = format!("/v2/a/blobs/uploads/?digest={digest}");
        client.send("POST", &path, &[], bytes).status
    };
    let layer = b"layer";
    assert_eq!((push(&long(b"{}"), b"{}"), push(&long(layer), layer)), (201, 201));
    assert_eq!(push(&long(b"other"), layer), 400);
    assert_eq!(push(&long(layer)[..100], layer), 400);
    let list = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": { "mediaType": "x/config", "digest": long(b"{}"), "size": 2, "of": "ours" },
        "layers": [
            { "mediaType": "text/plain", "digest": long(layer), "size": 5 },
            {
                "mediaType": "application/vnd.oci.image.layer.nondistributable.v1.tar",
                "digest": digest(b"elsewhere"), "size": 9, "urls": ["https://example.com/layer"],
            },
        ],
        "org.example.custom": { "kept": [1, 2, 3] },
    });
    let list = list.to_string();
    let named = long(list.as_bytes());
    assert_eq!(client.push_manifest("a", &named, &list).status, 201);
    let found = client.get(&format!("/v2/a/manifests/{named}"));
    assert_eq!((found.status, found.body.as_str()), (200, list.as_str()));
    assert_eq!(found.header("docker-content-digest"), Some(named.as_str()));
    assert_eq!(client.push_manifest("a", &long(b"other"), &list).status, 400);
    let blob = client.get(&format!("/v2/a/blobs/{}", long(layer)));
    assert_eq!((blob.status, blob.body.as_str()), (200, "layer"));
}

const INDEX_TYPE: &str = "application/vnd.oci.image.index.v1+json";

#[test]
fn index_is_kept_once_all_that_it_names_is_there_and_found_as_a_referrer() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    for blob in [b"{}".as_slice(), b"arm", b"risc-v"] {
        assert_eq!(client.push_blob("images", blob).status, 201);
    }
    let [arm, riscv] = [b"arm".as_slice(), b"risc-v"].map(|it| manifest("text/plain", it));
    let named = |text: &str| json!({ "mediaType": &MANIFEST_TYPE[14..], "digest": digest(text.as_bytes()), "size": text.len() });
    let index = json!({
        "schemaVersion": 2,
        "mediaType": INDEX_TYPE,
        "manifests": [named(&arm), named(&riscv)],
        "subject": named(&arm),
        "annotations": { "for": "two processors" },
        "a field of a later version": [1, 2],
    });
    let index = index.to_string();
    let push = |reference: &str, body: &str| {
        let headers = [format!("content-type: {INDEX_TYPE}")];
        let path = format!("/v2/images/manifests/{reference}");
        client.send("PUT", &path, &headers.each_ref().map(String::as_str), body.as_bytes())
    };
    assert_eq!(client.push_manifest("images", "arm", &arm).status, 201);
    let early = push("all", &index);
    assert_eq!((early.status, code(&early).as_str()), (404, "MANIFEST_BLOB_UNKNOWN"));
    assert_eq!(client.push_manifest("images", "risc-v", &riscv).status, 201);
    let pushed = push("all", &index);
    assert_eq!(pushed.status, 201, "{}", pushed.body);
    assert_eq!(pushed.header("oci-subject"), Some(digest(arm.as_bytes()).as_str()));
    let kept = client.get("/v2/images/manifests/all");
    assert_eq!(
        (kept.body.as_str(), kept.header("content-type")),
        (index.as_str(), Some(INDEX_TYPE))
    );
    let found = client.get(&format!("/v2/images/referrers/{}", digest(arm.as_bytes())));
    let found: Value = serde_json::from_str(&found.body).unwrap();
    let descriptor = json!({
        "mediaType": INDEX_TYPE,
        "digest": digest(index.as_bytes()),
        "size": index.len(),
        "annotations": { "for": "two processors" },
    });
    assert_eq!(found["manifests"], json!([descriptor]));
    // A manifest of both kinds, or of none, is refused.
    for (key, value) in [("config", named(&arm)), ("manifests", json!(null)), ("layers", json!([]))]
    {
        let mut other: Value = serde_json::from_str(&index).unwrap();
        other[key] = value;
        let refused = push("all", &other.to_string());
        assert_eq!((refused.status, code(&refused).as_str()), (400, "MANIFEST_INVALID"), "{key}");
    }
}

/// "A registry SHOULD … accept at least 4 MiB" (distribution spec 1.1, "Pushing Manifests").
#[test]
fn manifest_of_4_mib_is_kept_and_a_longer_one_or_one_with_other_annotations_refused() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    for blob in [b"{}".as_slice(), b"layer"] {
        assert_eq!(client.push_blob("images", blob).status, 201);
    }
    let mut long: Value = serde_json::from_str(&manifest("text/plain", b"layer")).unwrap();
    long["annotations"] = json!({ "text": "" });
    let beside = long.to_string().len();
    let mut push = |bytes: usize| {
        long["annotations"]["text"] = json!("x".repeat(bytes - beside));
        client.push_manifest("images", "long", &long.to_string())
    };
    let most = 4 << 20;
    assert_eq!(push(most).status, 201);
    assert_eq!(push(most + 1).status, 413);
    assert_eq!(client.get("/v2/images/manifests/long").body.len(), most);
    let mut other: Value = serde_json::from_str(&manifest("text/plain", b"layer")).unwrap();
    for annotations in [json!([]), json!({ "number": 1 }), json!("text")] {
        other["annotations"] = annotations;
        let refused = client.push_manifest("images", "other", &other.to_string());
        assert_eq!((refused.status, code(&refused).as_str()), (400, "MANIFEST_INVALID"));
    }
}

#[test]
fn skopeo_copies_a_package_here_and_back() {
    if module_path!().contains("::shaken::") {
        // It doesn't ask again when it is told to.
        return;
    }
    if Command::new("skopeo").arg("--version").output().is_err() {
        skip_without_tool("skopeo (Debian: skopeo)");
        return;
    }
    let mut world = World::with_fleet();
    if world.pages.is_ipv6() {
        return; // The names of its images have no room for such an address.
    }
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
    let early = client.send("PUT", &put, &["content-range: 0-9"], &bytes[..10]);
    assert_eq!((early.status, early.header("range")), (416, Some("0-9999")));
    let rest = format!("content-range: bytes 10000-{}/*", bytes.len() - 1);
    assert_eq!(client.send("PUT", &put, &[&rest], &bytes[10_000..]).status, 201);
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
    loop {
        let mut stream = push_with(world, token, "expect: 100-continue\r\n", "");
        let mut answer = [0; GO_ON.len()];
        stream.read_exact(&mut answer).unwrap();
        if is_put_off(&answer) {
            continue;
        }
        assert_eq!(answer, GO_ON, "{}", String::from_utf8_lossy(&answer));
        stream.set_nonblocking(true).unwrap();
        return stream;
    }
}

/// Whether a hub whose statements fail told a client to ask again.
fn is_put_off(answer: &[u8]) -> bool {
    module_path!().contains("::shaken::") && answer.starts_with(b"HTTP/1.1 503")
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
    let mut stalled = Vec::new();
    for key in 1..=4 {
        // One pass alone takes all places of its key but one.
        let other = world.token(&owner(key));
        let own = &tokens[usize::from(key) - 1];
        stalled.extend([own, own, own, &other].map(|token| push_with_a_place(&world, token)));
    }
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
    if is_put_off(&answer) {
        assert_eq!(Client::new(&world, &tokens[4]).push_blob("a", b"{}").status, 201);
    } else {
        assert_eq!(&answer, b"HTTP/1.1 201");
    }
    assert!(stalled.iter().all(is_waiting), "it had the place of the one that left");
}

/// Gives the one key that has a blob `count` further blobs of `bytes_each` bytes, taken at `taken_unix_s`.
fn fill_blobs(world: &mut World, count: u32, bytes_each: u64, taken_unix_s: u64) {
    world.write_by_hand(&format!(
        "INSERT INTO blobs WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < {count}) \
         SELECT (SELECT max(who) FROM blobs), 'filler ' || n, {bytes_each}, {taken_unix_s}, x'' FROM n"
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
fn long_list_of_referrers_comes_in_parts_that_lead_to_each_other() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let client = Client::new(&world, &token);
    client.push_blob("a", b"{}");
    client.push_blob("a", b"parts");
    let subject = digest(b"anything");
    let kind = "application/spdx+json";
    let mut pushed = Vec::new();
    for number in 0..40 {
        let mut list: Value = serde_json::from_str(&manifest(kind, b"parts")).unwrap();
        list["subject"] =
            json!({ "mediaType": "application/json", "digest": subject, "size": number });
        list["annotations"] = json!({ "text": "x".repeat(20_000) });
        let list = list.to_string();
        assert_eq!(client.push_manifest("a", &digest(list.as_bytes()), &list).status, 201);
        pushed.push(digest(list.as_bytes()));
    }
    let mut path = format!("/v2/a/referrers/{subject}?artifactType=application%2Fspdx%2Bjson");
    let mut found = Vec::new();
    loop {
        let part = client.get(&path);
        assert!(part.body.len() < 300_000, "{} bytes at once", part.body.len());
        let list = part.json();
        let digests = list["manifests"].as_array().unwrap().iter().map(|one| one["digest"].clone());
        found.extend(digests.map(|digest| digest.as_str().unwrap().to_string()));
        let Some(link) = part.header("link") else { break };
        path = link.trim_start_matches('<').split_once(">; rel=\"next\"").unwrap().0.into();
    }
    assert_eq!(found, pushed);
}

#[test]
fn reads_wait_for_no_write_of_the_directory_and_none_waits_for_them() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    let bytes = package("1.0.0");
    assert_eq!(Client::new(&world, &token).push("thermostat", "1", &bytes).status, 201);
    // A transaction of the directory is under way.
    world.list_until(1, 13, "den", world::now() + 600);
    let client = Client::new(&world, &token);
    for path in ["tags/list", "manifests/1", &format!("referrers/{}", digest(&bytes))] {
        assert_eq!(client.get(&format!("/v2/thermostat/{path}")).status, 200, "{path}");
    }
    world.commit();
}

#[test]
fn packages_fill_the_disk_up_to_its_limit_and_devices_are_listed_still() {
    let mut world = World::with_fleet();
    let token = world.token(&owner(1));
    world.database.limit_pages(Some(2_000)).unwrap();
    let client = Client::new(&world, &token);
    let blob = |number: u8| vec![number; 256 * 1024];
    let refused =
        (0..64).map(|number| client.push_blob("a", &blob(number))).find(|one| one.status != 201);
    let refused = refused.expect("eight megabytes are full");
    assert_eq!((refused.status, code(&refused).as_str()), (507, "DENIED"), "{}", refused.body);
    // Small blobs fill the room that is too little for a large one.
    let small = |number: u8| client.push_blob("a", &vec![number; 3 * 1024]).status;
    assert!((100..=255).any(|number| small(number) == 507));
    // An empty database of PostgreSQL is as large as that already.
    let kept = if world.is_on_a_server() { 404 } else { 200 };
    assert_eq!(client.get(&format!("/v2/a/blobs/{}", digest(&blob(0)))).status, kept);
    for number in 0..100 {
        world.list(1, 20 + number, &format!("device-{number}"));
    }
    let pass = world.pass(&owner(1), Access::Session).unwrap().secret;
    let body = b"in a session".to_vec();
    let path = format!("/v2/a/blobs/uploads/?digest={}", digest(&body));
    let request = Request { pass, method: "POST".into(), path, headers: Vec::new(), body };
    let answer: Answer<Response> = world.call(function::REQUEST, &request);
    assert_eq!(answer.unwrap().status, 507);
    if world.is_on_a_server() {
        // What is deleted there leaves the files as large as they are.
        return;
    }
    let delete = Client::new(&world, &token);
    let one = format!("/v2/a/blobs/{}", digest(&blob(0)));
    assert_eq!(delete.send("DELETE", &one, &[], b"").status, 202);
    assert_eq!(delete.push_blob("a", b"one more").status, 201, "there is room again");
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
