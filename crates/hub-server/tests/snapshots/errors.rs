//! The errors of the API, over HTTP: status, content type and text of each.

use crate::fleet::{with_fleet, without_chance};
use crate::world::{World, manifest, owner};
use tenure_wire::hub::Scope;

/// The pass that a request carries.
#[derive(Clone, Copy, Debug)]
enum By {
    Nobody,
    Owner,
    /// A token that reads alone.
    Reader,
    /// A browser that is on a page of another site.
    ForeignPage,
}

const DIGEST: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

/// A request that is refused: its pass, method, path and body.
type Refused = (By, &'static str, String, String);

fn requests() -> Vec<Refused> {
    let get = |by, path: &str| (by, "GET", path.to_string(), String::new());
    let post = |path: &str, body: &str| (By::Owner, "POST", path.to_string(), body.to_string());
    let put = |path: &str, body: &str| (By::Owner, "PUT", path.to_string(), body.to_string());
    let filters = (0..33).map(|number| format!("device={number}")).collect::<Vec<_>>().join("&");
    let no_package = manifest("application/vnd.tenure.package.v1", b"{}");
    vec![
        get(By::Nobody, "/v1/devices"),
        get(By::Nobody, "/v2/"),
        get(By::Reader, "/v1/packages/00"),
        get(By::Reader, "/v2/house/thermostat/tags/list"),
        get(By::Reader, "/v1/devices/attic/log"),
        (By::Reader, "POST", "/v1/receipts".into(), String::new()),
        (By::Reader, "POST", "/v1/rollouts".into(), "{}".into()),
        (By::Reader, "POST", "/v1/revocations".into(), String::new()),
        (By::ForeignPage, "POST", "/sign-out".into(), String::new()),
        (By::Owner, "DELETE", "/v1/devices".into(), String::new()),
        get(By::Owner, "/v1/nothing"),
        get(By::Owner, "/v1/devices?colour=red"),
        get(By::Owner, "/v1/devices?sort=colour"),
        get(By::Owner, "/v1/devices?limit=many"),
        get(By::Owner, "/v1/devices?limit=0"),
        get(By::Owner, "/v1/devices?limit=1001"),
        get(By::Owner, &format!("/v1/devices?{filters}")),
        get(By::Owner, "/v1/bills?month=november"),
        get(By::Owner, "/v1/devices/nowhere/log"),
        get(By::Owner, "/v1/devices/attic/log?colour=red"),
        get(By::Owner, "/v1/devices/attic/log?machine=%00"),
        post("/v1/receipts", "no digits"),
        post("/v1/receipts", "00"),
        post("/v1/rollouts", "{}"),
        get(By::Owner, "/v1/rollouts/9"),
        get(By::Owner, "/v1/rollouts/1/nothing"),
        post("/v1/rollouts/1/jump", ""),
        post("/v1/rollouts/1/devices/den", "{\"saw\":\"none\",\"reason\":\"\"}"),
        post("/v1/rollouts/1/devices/attic", "{}"),
        post("/v1/revocations", "no list"),
        get(By::Owner, "/v1/packages/00"),
        get(By::Owner, "/v2/nothing"),
        get(By::Owner, "/v2/House/tags/list"),
        get(By::Owner, "/v2/house/tags/list"),
        post("/v2/house/tags/list", ""),
        put("/v2/house/blobs/uploads/", ""),
        put("/v2/house/blobs/uploads/1", ""),
        get(By::Owner, &format!("/v2/house/blobs/{DIGEST}")),
        post(&format!("/v2/house/blobs/uploads/?digest={DIGEST}"), "other bytes"),
        post("/v2/house/blobs/uploads/?digest=md5:00", "bytes"),
        get(By::Owner, "/v2/house/manifests/latest"),
        get(By::Owner, "/v2/house/referrers/latest"),
        put("/v2/house/manifests/-latest", "{}"),
        put(&format!("/v2/house/manifests/{DIGEST}"), "{}"),
        put("/v2/house/manifests/latest", "no JSON"),
        put("/v2/house/manifests/latest", "{\"schemaVersion\":2}"),
        put(
            "/v2/house/manifests/latest",
            &no_package.replace("\"schemaVersion\":2", "\"schemaVersion\":1"),
        ),
        put("/v2/house/manifests/latest", &no_package.replace("sha256:", "md5:")),
        put("/v2/house/manifests/latest", &manifest("text/plain", b"not pushed")),
        put("/v2/house/manifests/latest", &no_package),
    ]
}

fn ask(world: &World, headers: &[&str], (by, method, path, body): &Refused) -> String {
    let reply = world.request(method, path, headers, body);
    let kind = reply.header("content-type").unwrap_or("no content type");
    let also = ["allow", "www-authenticate"].map(|name| {
        reply.header(name).map_or_else(String::new, |value| format!("{name}: {value}\n"))
    });
    assert!(reply.status >= 400, "{method} {path}: {}", reply.body);
    let asked = if path.len() > 100 { &path[..100] } else { path };
    format!(
        "{method} {asked}, {by:?}\n{} {kind}\n{}{}\n\n",
        reply.status,
        also.concat(),
        reply.body.trim_end()
    )
}

#[test]
fn errors_of_the_api_are_as_they_were_reviewed() {
    let text = with_fleet(|world| {
        let owners = world.token(&owner(1));
        let readers = world.token_for(&owner(1), vec![Scope::Read]);
        let cookie = world.cookie(&owner(1));
        let refused = |request: &Refused| match request.0 {
            By::Nobody => ask(world, &[], request),
            By::Owner => ask(world, &[&owners], request),
            By::Reader => ask(world, &[&readers], request),
            By::ForeignPage => ask(world, &[&cookie, "sec-fetch-site: cross-site"], request),
        };
        let mut answers: String = requests().iter().map(refused).collect();
        assert_eq!(world.request("POST", "/v1/rollouts/1/abort", &[&owners], "").status, 200);
        let resume = "/v1/rollouts/1/resume".to_string();
        answers += &refused(&(By::Owner, "POST", resume, String::new()));
        without_chance(world, &owners, &answers)
    });
    crate::check(&[("errors.txt".into(), text)]);
}
