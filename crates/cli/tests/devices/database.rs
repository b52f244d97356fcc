//! The hub with its database on PostgreSQL, by the commands.

use std::os::unix::fs::PermissionsExt as _;

use tenure_testbed::{Cluster, wait_until};

use crate::harness::{Process, User, any_address};
use crate::hub::get;

/// Signs in; gives the address of the pages and the cookie.
fn signed_in(user: &User, hub: &Process) -> (String, String) {
    let signed_in = user.json(&["login", "--hub", &hub.address]);
    let text = |name: &str| signed_in[name].as_str().unwrap().to_string();
    let (url, address) = (text("url"), text("address"));
    let answer = get(&url, address.strip_prefix(&url).unwrap(), "");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    (url, cookie)
}

#[test]
fn hub_on_postgres_goes_on_after_itself_and_after_its_server_were_killed() {
    let Some(mut cluster) = Cluster::start() else { return };
    let user = User::new();
    let database = cluster.address(&cluster.database());
    let hub_at = |listen: &str| {
        let arguments = ["hub", "--owner", "own", "--listen", listen, "--json"];
        let mut command = user.command(&arguments);
        command.args(["--pages", any_address()]).env("TENURE_DATABASE", &database);
        Process::start(command)
    };
    let mut hub = hub_at(any_address());
    let address = hub.address.clone();
    let _device = user.device("attic", Some(&hub));
    hub.wait_until_listed("attic", 0);
    let second = ["hub", "--owner", "own", "--listen", any_address(), "--database", &database];
    let second = user.error(&second);
    assert!(second.contains("another process runs the hub"), "{second}");
    hub.kill();

    let hub = hub_at(&address);
    let (url, cookie) = signed_in(&user, &hub);
    let devices = || get(&url, "/devices", &cookie);
    assert!(devices().contains(">attic<"), "it was listed before");

    cluster.kill();
    let away = devices();
    assert!(away.starts_with("HTTP/1.1 503") && away.contains("try again"), "{away}");
    let refused = user.error(&["login", "--hub", &hub.address]);
    // It may have been kept before the server was gone, as far as the hub can tell.
    assert!(refused.contains("outcome unknown"), "{refused}");
    cluster.wake();
    wait_until(|| match devices() {
        page if page.contains(">attic<") => Ok(()),
        // Whoever sees a page sees the devices: none of them is empty meanwhile.
        page if page.starts_with("HTTP/1.1 503") => Err(page),
        page => panic!("{page}"),
    });
    let verified = user.json(&["hub", "verify-audit", "--database", &database]);
    assert!(verified["entries"].as_u64().unwrap() >= 2, "{verified}: the device, a sign-in");
}

#[test]
fn address_of_a_database_is_refused_where_others_may_read_its_password() {
    let user = User::new();
    let hub = ["hub", "--owner", "own", "--listen", any_address()];
    let password = ["--database", "postgres://hub:secret@localhost/tenure"];
    let error = user.error(&[&hub[..], &password].concat());
    assert!(error.contains("seen by everybody") && !error.contains("secret"), "{error}");
    let both = user.error(&[&hub[..], &password, &["--data", "hub"]].concat());
    assert!(both.contains("name one") && !both.contains("secret"), "{both}");
    let file = user.path("database");
    std::fs::write(&file, "postgres://hub:secret@localhost:1/tenure\n").unwrap();
    let with_mode = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
        user.error(&[&hub[..], &["--database-file", "database"]].concat())
    };
    assert!(with_mode(0o640).contains("chmod 600"));
    let away = with_mode(0o600);
    assert!(away.contains("try again") && !away.contains("secret"), "{away}");
}
