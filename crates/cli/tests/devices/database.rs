//! The hub with its database on PostgreSQL, by the commands.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;
use tenure_testbed::{Cluster, wait_until};

use crate::harness::{Process, User, any_address, signal};
use crate::hub::get;

/// Signs in; gives the address of the pages and the cookie.
fn signed_in(user: &User, hub: &Process) -> (String, String) {
    let told = user.ok_once_there(&["login", "--hub", &hub.address, "--json"]);
    let signed_in: Value = serde_json::from_str(&told).unwrap();
    let text = |name: &str| signed_in[name].as_str().unwrap().to_string();
    let (url, address) = (text("url"), text("address"));
    let answer = get(&url, address.strip_prefix(&url).unwrap(), "");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    let cookie = format!("cookie: {}", cookie.split(';').next().unwrap());
    (url, cookie)
}

/// Waits until a person is told that the database is away. A hub that waits for it may be too late for the command.
fn wait_until_away(user: &User, hub: &Process) {
    wait_until(|| {
        let refused = user.error(&["login", "--hub", &hub.address]);
        let is_told = refused.contains("database can't be reached now; try again");
        if is_told { Ok(()) } else { Err(refused) }
    });
}

/// A process of the hub in that database.
fn hub_on(user: &User, database: &str, listen: &str) -> Process {
    let arguments = ["hub", "--owner", "own", "--listen", listen, "--json"];
    let mut command = user.command(&arguments);
    command.args(["--pages", any_address()]).env("TENURE_DATABASE", database);
    Process::start(command)
}

/// Waits until a process of the hub lists a device.
fn wait_until_found(user: &User, hub: &Process, device: &str) {
    wait_until(|| {
        let listed = user.ok_once_there(&["list", "--all", "--json", "--hub", &hub.address]);
        if listed.contains(device) { Ok(()) } else { Err(listed) }
    });
}

#[test]
fn device_goes_on_with_another_process_of_its_hub_when_one_is_killed_and_nothing_is_lost() {
    let Some(cluster) = Cluster::start() else { return };
    let (user, name) = (User::new(), cluster.database());
    let database = cluster.address(&name);
    let mut hubs =
        vec![hub_on(&user, &database, any_address()), hub_on(&user, &database, any_address())];
    let at = hubs.iter().map(|hub| hub.address.clone()).collect::<Vec<_>>().join(",");
    let mut device = user.device_at("attic", any_address(), Some(&at));
    user.install(&device, &["counter"]);
    for round in 1..4 {
        hubs.iter().for_each(|hub| wait_until_found(&user, hub, "counter"));
        let status = user.json(&["status", "--device", &device.address]);
        let in_use = status["hub"]["address"].as_str().unwrap();
        let position = hubs.iter().position(|hub| hub.address == in_use).unwrap();
        let hub = hubs.remove(position);
        let handed_in = ["receipts", "--close", "--to-hub", "--device", &device.address];
        user.ok_once_there(&[&handed_in[..], &["--hub", &hub.address]].concat());
        let receipts = || cluster.sql(&name, "SELECT count(*) FROM receipts");
        let kept = receipts();
        let address = hub.address.clone();
        hub.kill();
        // People name both, and the other one answers.
        user.ok_once_there(&["list", "--all", "--hub", &at]);
        device.wait_for_event("registered");
        user.ok_once_there(&["call", "--hub", &hubs[0].address, "counter@attic", "value"]);
        assert!(kept.trim().parse::<u64>().unwrap() >= round);
        assert_eq!(receipts(), kept, "what was acknowledged is there");
        hubs.push(hub_on(&user, &database, &address));
    }
    let verified = user.json(&["hub", "verify-audit", "--database", &database]);
    assert!(verified["entries"].as_u64().unwrap() >= 1, "{verified}");
}

/// A rollout that is under way, with its device in one transaction: one without devices is done.
fn begin_rollout(cluster: &Cluster, database: &str) {
    let statements = "INSERT INTO rollouts (who, machine, package_digest, version, plan, signature, state, reason, stages, stage, \
         soak_s, faults_max, failures_max, on_failure, began_unix_s, ends_unix_s) VALUES \
         ('w', 'm', 'p', '1.0.0', '', '', 'running', '', '[1]', 0, 1, 0, 0, 'pause', 0, 9000000000); \
         INSERT INTO rollout_devices (rollout, position, device, state, reason, faults_before, faults) \
         SELECT max(id), 0, 'attic', 'waiting', '', 0, 0 FROM rollouts";
    cluster.sql(database, statements);
}

#[test]
fn what_is_due_is_done_once_though_the_process_that_does_it_is_stopped_or_killed() {
    let Some(cluster) = Cluster::start() else { return };
    let (user, name) = (User::new(), cluster.database());
    let database = cluster.address(&name);
    let mut hubs =
        vec![hub_on(&user, &database, any_address()), hub_on(&user, &database, any_address())];
    let sql = |statement: &str| cluster.sql(&name, statement).trim().to_string();
    let holder = || sql("SELECT split_part(holder, '-', 1) FROM leases WHERE name = 'clock'");
    let number = || sql("SELECT number FROM leases WHERE name = 'clock'").parse::<u64>().unwrap();
    let ended = || sql("SELECT count(*) FROM audit WHERE action LIKE 'rollout%'");
    let end = |count: u64| {
        sql("UPDATE rollout_devices SET state = 'healthy' WHERE state = 'waiting'");
        wait_until(|| {
            let left = sql("SELECT count(*) FROM rollouts WHERE state <> 'done'");
            if left == "0" { Ok(()) } else { Err(format!("{left} are under way")) }
        });
        assert_eq!(ended(), count.to_string(), "each ended once");
    };
    for round in 0..2 {
        begin_rollout(&cluster, &name);
        let position = wait_until(|| {
            let holder = holder();
            let is_it = |hub: &Process| hub.id().to_string() == holder;
            hubs.iter().position(is_it).ok_or(format!("the process {holder} holds the lease"))
        });
        let before = number();
        signal("STOP", hubs[position].id());
        end(3 * round + 1);
        assert_eq!(holder(), hubs[1 - position].id().to_string());
        assert!(number() > before, "another one has it");
        // It goes on as if nothing had been, beside the other one.
        begin_rollout(&cluster, &name);
        signal("CONT", hubs[position].id());
        user.ok_once_there(&["list", "--all", "--hub", &hubs[position].address]);
        end(3 * round + 2);

        begin_rollout(&cluster, &name);
        let killed = hubs.remove(1 - position);
        let address = killed.address.clone();
        killed.kill();
        end(3 * round + 3);
        assert_eq!(holder(), hubs[0].id().to_string());
        hubs.push(hub_on(&user, &database, &address));
    }
}

#[test]
fn hub_on_postgres_goes_on_after_itself_and_after_its_server_were_killed() {
    let Some(mut cluster) = Cluster::start() else { return };
    let user = User::new();
    let database = cluster.address(&cluster.database());
    let hub_at = |listen: &str| hub_on(&user, &database, listen);
    let mut hub = hub_at(any_address());
    let address = hub.address.clone();
    let _device = user.device("attic", Some(&hub));
    hub.wait_until_listed("attic", 0);
    hub.kill();

    let hub = hub_at(&address);
    let (url, cookie) = signed_in(&user, &hub);
    let devices = || get(&url, "/devices", &cookie);
    assert!(devices().contains(">attic<"), "it was listed before");

    cluster.kill();
    let away = devices();
    assert!(away.starts_with("HTTP/1.1 503") && away.contains("try again"), "{away}");
    wait_until_away(&user, &hub);
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
fn server_that_stands_still_stops_no_device_from_being_found_and_people_are_told() {
    let Some(cluster) = Cluster::start() else { return };
    let (user, name) = (User::new(), cluster.database());
    let hub = hub_on(&user, &cluster.address(&name), any_address());
    let device = user.device("attic", Some(&hub));
    user.install(&device, &["counter"]);
    wait_until_found(&user, &hub, "counter");
    cluster.freeze();
    for _ in 0..3 {
        wait_until_away(&user, &hub);
        // By the table in memory.
        user.ok_once_there(&["call", "--hub", &hub.address, "counter@attic", "value"]);
    }
    cluster.thaw();
    user.ok_once_there(&["login", "--hub", &hub.address]);
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
