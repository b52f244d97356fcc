//! Alarms by rules: each condition against what devices report, and what becomes of an alarm.

use super::world;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tenure_hub::{Fullness, Storage as _};
use tenure_hub_server::{Rule, Rules, Webhook};
use tenure_package::NO_RECEIPT;
use tenure_testbed::wait_until;
use tenure_wire::control::{HeapStatus, RoomStatus};
use tenure_wire::hub::{Answer, Scope, function};
use tenure_wire::report::{DeviceReport, FaultReport, MachineReport, Report, Reported};
use tenure_wire::{Digest, Label, PublicKey};
use world::watching::{hearing, noted, rule, telling, turn_until_noted, watching};
use world::{World, device, now, owner, receipt};

fn report(number: u64, store_bytes_used: u64) -> Report {
    let room = RoomStatus {
        memory_bytes_promised: 1_000,
        memory_bytes_max: 2_000,
        store_bytes_used,
        store_bytes_max: 1_000,
        code_bytes_used: 5,
        code_bytes_max: 10,
        store_erases: 1,
    };
    let device =
        DeviceReport { version: "0.1.0".into(), uptime_s: 60, room, heap: None, neighbours: None };
    let machine = MachineReport {
        name: "thermostat".parse().unwrap(),
        package: Digest([5; 32]),
        version: "1.2.7".parse().unwrap(),
        state: "idle".into(),
        repute: "good".into(),
        queue_length: 0,
        tasks_done: 1,
        fuel_used: 100,
        waited_max_us: 7,
        memory_bytes: 64,
        memory_bytes_max: 65_536,
        stored_bytes: 0,
        metrics: Vec::new(),
    };
    Report { boot: 3, number, device, machines: vec![machine], faults: Vec::new(), faults_lost: 0 }
}

/// The device number `number` tells its hub.
fn tell(world: &mut World, number: u8, report: &Report, at: u64) {
    let key: PublicKey = device(number).device_secret().public_key();
    let answer: Answer<Reported> = world.call_from(key, function::REPORT, report, at);
    answer.unwrap();
}

fn items(world: &mut World, number: u8) -> Vec<Value> {
    let token = world.token(&owner(number));
    world.get("/v1/rule-alarms", &[&token]).json()["items"].as_array().unwrap().clone()
}

/// Each alarm of owner 1 as rule, device and state.
fn alarms(world: &mut World) -> Vec<String> {
    let line = |item: &Value| {
        let word = |name: &str| item[name].as_str().unwrap().to_string();
        format!("{} {} {}", word("rule"), word("device"), word("state"))
    };
    let mut lines: Vec<String> = items(world, 1).iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn each_condition_raises_an_alarm_on_the_devices_on_which_it_holds() {
    let mut world = World::with_fleet();
    let at = now();
    let mut full = report(0, 950);
    full.faults = (0..4)
        .map(|number| FaultReport {
            number,
            machine: "thermostat".parse().unwrap(),
            unix_s: None,
            text: "unreachable".into(),
        })
        .collect();
    tell(&mut world, 10, &full, at);
    tell(&mut world, 11, &report(0, 100), at);
    let of_machine = |name: &str, when: &str, machine: &str| Rule {
        machine: Some(machine.parse().unwrap()),
        ..rule(name, when)
    };
    let rules = vec![
        rule("flash", "flash > 90 %"),
        rule("never-full", "flash > 95 %"),
        rule("faults", "faults > 3/h"),
        rule("many-faults", "faults > 4/h"),
        of_machine("of-thermostat", "faults > 3/h", "thermostat"),
        of_machine("of-no-other", "faults > 3/h", "other"),
        rule("old", "version != 0.2"),
        rule("new", "version != 0.1"),
        of_machine("machine-old", "version != 1.3", "thermostat"),
        of_machine("machine-new", "version != 1.2", "thermostat"),
        rule("heap", "memory > 1 %"),
    ];
    watching(&world, rules).turn(at + 1).unwrap();
    assert_eq!(
        alarms(&mut world),
        [
            "faults attic raised",
            "flash attic raised",
            "machine-old attic raised",
            "machine-old cellar raised",
            "of-thermostat attic raised",
            "old attic raised",
            "old cellar raised",
        ]
    );
    let found = items(&mut world, 1);
    let faults = found.iter().find(|item| item["rule"] == "faults").unwrap();
    assert_eq!(faults["detail"], "4 faults, the last of thermostat: unreachable");
    let flash = found.iter().find(|item| item["rule"] == "flash").unwrap();
    assert_eq!(
        (&flash["detail"], &flash["condition"]),
        (&"data: 95 % full".into(), &"flash > 90 %".into())
    );
    let token = world.token(&owner(1));
    let open = world.get("/v1/open-alarms", &[&token]).json();
    let row = |at: usize| {
        ["rule", "state", "alarms", "device"].map(|name| open["items"][at][name].clone())
    };
    assert_eq!(row(0), [json!("machine-old"), json!("raised"), json!(2), json!("attic")]);
    assert_eq!(row(2), [json!("faults"), json!("raised"), json!(1), json!("attic")]);
    assert_eq!(
        items(&mut world, 2),
        Vec::<Value>::new(),
        "another owner's device reported nothing"
    );
}

/// D-1: a jump of the clock is the hub's, and each owner's to know.
#[test]
fn jump_of_the_clock_raises_an_alarm_on_the_hub_for_each_owner_for_an_hour() {
    let mut world = World::with_fleet();
    let at = now();
    for at in [at - 2 * 24 * 60 * 60, at] {
        world.keep(|world| world.database.tick(at).unwrap());
    }
    let rules = vec![rule("jumped", "clock > 2h"), rule("far", "clock > 3d")];
    let mut watching = watching(&world, rules);
    watching.turn(at + 1).unwrap();
    assert_eq!(alarms(&mut world), ["jumped  raised"]);
    for owner in [1, 2] {
        let found = items(&mut world, owner);
        let detail = found[0]["detail"].as_str().unwrap();
        assert!(detail.starts_with("the clock went ahead by 2days"), "{detail}");
        assert_eq!(found.len(), 1);
    }
    let cookie = world.cookie(&owner(1));
    for path in ["/alarms", "/rule-alarms"] {
        let page = world.get(path, &[&cookie]).body;
        assert!(page.contains("<td>the hub</td>"), "{page}");
    }
    watching.turn(at + 20).unwrap();
    assert_eq!(items(&mut world, 2).len(), 1, "one");
    watching.turn(at + 3_700).unwrap();
    watching.turn(at + 3_770).unwrap();
    assert_eq!(alarms(&mut world), ["jumped  over"]);
}

#[test]
fn hub_that_lists_nearly_all_that_it_may_raises_an_alarm_until_there_is_room_again() {
    let mut world = World::with_fleet();
    let at = now();
    let running = world.database.running();
    let tell = |used, most| {
        running.tell_fullness(&[Fullness { table: "devices", used, most, times_full: 0 }]);
    };
    let rules = vec![rule("full", "devices > 90 %"), rule("never", "devices > 95 %")];
    let mut watching = watching(&world, rules);
    watching.turn(at).unwrap();
    assert_eq!(alarms(&mut world), Vec::<String>::new(), "nobody has said how many it lists");
    tell(9, 10);
    watching.turn(at + 10).unwrap();
    assert_eq!(alarms(&mut world), Vec::<String>::new(), "so many are still good");
    tell(92, 100);
    watching.turn(at + 20).unwrap();
    assert_eq!(alarms(&mut world), ["full  raised"]);
    for owner in [1, 2] {
        let found = items(&mut world, owner);
        let detail = found[0]["detail"].as_str().unwrap();
        assert!(detail.starts_with("92 of 100 devices are listed, and beyond that"), "{detail}");
        assert_eq!((found.len(), &found[0]["condition"]), (1, &"devices > 90 %".into()));
    }
    tell(92, 200);
    watching.turn(at + 30).unwrap();
    watching.turn(at + 80).unwrap();
    assert_eq!(alarms(&mut world), ["full  raised"]);
    watching.turn(at + 100).unwrap();
    assert_eq!(alarms(&mut world), ["full  over"]);
    // The limit may be lowered below what is listed.
    tell(92, 50);
    watching.turn(at + 110).unwrap();
    let raised = alarms(&mut world);
    assert_eq!(raised, ["full  over", "full  raised", "never  raised"]);
}

/// Rules wait for no time that never comes.
#[test]
fn rules_are_looked_at_again_once_a_clock_that_was_ahead_is_back() {
    let mut world = World::with_fleet();
    let at = now();
    let mut watching = watching(&world, vec![rule("flash", "flash > 90 %")]);
    watching.turn(at + 400 * 24 * 60 * 60).unwrap();
    tell(&mut world, 10, &report(0, 950), at);
    watching.turn(at).unwrap();
    assert_eq!(alarms(&mut world), ["flash attic raised"]);
    tell(&mut world, 10, &report(1, 100), at + 1);
    // It is calm since a time that never came, and then since now.
    watching.turn(at + 400 * 24 * 60 * 60).unwrap();
    for later in [20, 90] {
        watching.turn(at + later).unwrap();
    }
    assert_eq!(alarms(&mut world), ["flash attic over"]);
}

#[test]
fn heap_that_is_nearly_full_raises_an_alarm() {
    let mut world = World::with_fleet();
    let at = now();
    let mut told = report(0, 1);
    told.device.heap = Some(HeapStatus {
        used_bytes: 91,
        peak_bytes: 91,
        total_bytes: 100,
        board_bytes: 0,
        answers_bytes: 0,
    });
    tell(&mut world, 10, &told, at);
    watching(&world, vec![rule("heap", "memory > 90 %")]).turn(at + 1).unwrap();
    assert_eq!(alarms(&mut world), ["heap attic raised"]);
}

#[test]
fn bill_beyond_its_bound_raises_an_alarm_on_the_device_whose_receipts_it_is_of() {
    let mut world = World::with_fleet();
    let fuel = 1_000_000_000_000;
    world.hand_in(vec![receipt(10, 1, 60, 0, NO_RECEIPT, fuel)]).unwrap();
    // The month in which the receipt's period ended.
    let at = world::ENDED;
    let priced = {
        let token = world.token(&owner(1));
        let bill = world.get("/v1/bills", &[&token]).json()["items"][0].clone();
        bill["price_millionths"].as_str().unwrap().parse::<u128>().unwrap()
    };
    let (above, below) = (priced / 1_000_000 + 1, priced.saturating_sub(1));
    let below = format!("bill > {}.{:06}", below / 1_000_000, below % 1_000_000);
    let rules = vec![rule("dear", &below), rule("dearer", &format!("bill > {above}"))];
    watching(&world, rules).turn(at).unwrap();
    assert_eq!(alarms(&mut world), ["dear attic raised"]);
}

#[test]
fn silence_raises_an_alarm_once_and_is_over_a_minute_after_the_device_is_back() {
    let mut world = World::with_fleet();
    let mut alarms_by_rules = watching(&world, vec![rule("away", "silent > 20m")]);
    let at = now();
    // Their records are good for ten minutes.
    for (after_s, expected) in [(700, 0), (1_190, 0), (1_300, 2), (1_400, 2)] {
        alarms_by_rules.turn(at + after_s).unwrap();
        assert_eq!(alarms(&mut world).len(), expected, "after {after_s} s");
    }
    // The attic is back, and its record good until long after.
    world.list_until(1, 10, "attic", at + 10_000);
    world.commit();
    alarms_by_rules.turn(at + 1_500).unwrap();
    assert_eq!(alarms(&mut world), ["away attic raised", "away cellar raised"]);
    alarms_by_rules.turn(at + 1_570).unwrap();
    assert_eq!(alarms(&mut world), ["away attic over", "away cellar raised"]);
}

#[test]
fn hub_that_was_away_itself_tells_of_no_silence_and_ends_none() {
    let mut world = World::with_fleet();
    let at = now();
    let mut alarms_by_rules = watching(&world, vec![rule("away", "silent > 20m")]);
    alarms_by_rules.turn(at + 1_300).unwrap();
    assert_eq!(alarms(&mut world).len(), 2);
    hearing(&world, at + 5_000, at + 6_300);
    world.list(1, 13, "den");
    for after_s in [5_100, 5_200, 6_000] {
        alarms_by_rules.turn(at + after_s).unwrap();
        assert_eq!(alarms(&mut world), ["away attic raised", "away cellar raised"]);
    }
    alarms_by_rules.turn(at + 6_300).unwrap();
    assert_eq!(alarms(&mut world).len(), 3, "it has heard for twenty minutes again");
}

/// The thread of the alarms may wake before the one that hears.
#[test]
fn hub_that_stood_still_raises_no_silence_as_it_wakes() {
    let mut world = World::with_fleet();
    let at = now();
    let mut alarms_by_rules = watching(&world, vec![rule("away", "silent > 20m")]);
    hearing(&world, at, at + 1_190);
    alarms_by_rules.turn(at + 1_290).unwrap();
    assert_eq!(alarms(&mut world).len(), 0, "nobody listened for 100 seconds");
    hearing(&world, at + 1_290, at + 2_600);
    alarms_by_rules.turn(at + 2_600).unwrap();
    assert_eq!(alarms(&mut world).len(), 2);
}

#[test]
fn rule_is_for_the_devices_that_carry_its_labels() {
    let mut world = World::with_fleet();
    world
        .write_by_hand("UPDATE devices SET labels = 'floor=one site=harbour' WHERE name = 'attic'");
    world.write_by_hand("UPDATE devices SET labels = 'site=harbour' WHERE name = 'cellar'");
    let labels: [Label; 2] = ["site=harbour", "floor=one"].map(|label| label.parse().unwrap());
    let rules = vec![Rule { labels: labels.to_vec(), ..rule("away", "silent > 20m") }];
    watching(&world, rules).turn(now() + 2_000).unwrap();
    assert_eq!(alarms(&mut world), ["away attic raised"]);
}

#[test]
fn alarm_of_a_rule_that_is_gone_is_over() {
    let mut world = World::with_fleet();
    watching(&world, vec![rule("away", "silent > 20m")]).turn(now() + 2_000).unwrap();
    watching(&world, vec![rule("flash", "flash > 90 %")]).turn(now() + 2_001).unwrap();
    assert_eq!(alarms(&mut world), ["away attic over", "away cellar over"]);
}

#[test]
fn person_acknowledges_an_alarm_once_with_a_name_and_a_word() {
    let mut world = World::with_fleet();
    watching(&world, vec![rule("away", "silent > 20m")]).turn(now() + 2_000).unwrap();
    let (token, stranger) = (world.token(&owner(1)), world.token(&owner(2)));
    let id =
        items(&mut world, 1).iter().find(|item| item["device"] == "attic").unwrap()["id"].clone();
    let path = format!("/v1/rule-alarms/{id}/acknowledge");
    let said = json!({ "by": "Ada", "word": "I'm on my way" }).to_string();
    let reader = world.token_for(&owner(1), vec![Scope::Read]);
    let said = said.as_str();
    for (pass, body, status) in [
        (&stranger, said, 404),
        (&reader, said, 403),
        (&token, "{}", 400),
        (&token, "{\"by\": \"\", \"word\": \"x\"}", 422),
        (&token, said, 204),
        (&token, said, 409),
    ] {
        let reply = world.request("POST", &path, &[pass], body);
        assert_eq!(reply.status, status, "{body}: {}", reply.body);
    }
    assert_eq!(world.request("POST", &path, &[], said).status, 401);
    assert_eq!(alarms(&mut world), ["away attic acknowledged", "away cellar raised"]);
    let audit = world.get("/v1/audit", &[&token]).json();
    let known = audit["items"].as_array().unwrap();
    let entry = known.iter().find(|entry| entry["action"] == "alarm acknowledged").unwrap();
    assert_eq!(entry["detail"], "away, Ada: I'm on my way");
    assert_eq!(known.iter().filter(|entry| entry["action"] == "alarm raised").count(), 2);
    assert!(world.database.verify_audit().unwrap().is_ok());
}

#[test]
fn page_shows_the_alarms_and_its_form_acknowledges_from_the_hubs_own_pages_alone() {
    let mut world = World::with_fleet();
    let cookie = world.cookie(&owner(1));
    assert!(!world.get("/alarms", &[&cookie]).body.contains("By rules"));
    watching(&world, vec![rule("away", "silent > 20m")]).turn(now() + 2_000).unwrap();
    let page = world.get("/alarms", &[&cookie]).body;
    assert!(page.contains("By rules") && page.contains("Acknowledge away on attic"), "{page}");
    let id =
        items(&mut world, 1).iter().find(|item| item["device"] == "attic").unwrap()["id"].clone();
    let path = format!("/rule-alarms/{id}/acknowledge");
    let form = "content-type: application/x-www-form-urlencoded";
    let body = "by=Ada+%3Cb%3E&word=on+it";
    let foreign = [&*cookie, form, "sec-fetch-site: cross-site"];
    assert_eq!(world.request("POST", &path, &foreign, body).status, 403);
    assert_eq!(alarms(&mut world), ["away attic raised", "away cellar raised"]);
    let own = [&*cookie, form, "sec-fetch-site: same-origin"];
    let reply = world.request("POST", &path, &own, body);
    assert_eq!((reply.status, reply.header("location")), (303, Some("/alarms")), "{}", reply.body);
    let page = world.get("/alarms", &[&cookie]).body;
    assert!(page.contains("acknowledged by Ada &lt;b&gt;: on it"), "{page}");
    assert!(world.get("/devices/attic", &[&cookie]).body.contains("Alarms by rules"));
    let stranger = world.cookie(&owner(2));
    let page = world.get("/alarms", &[&stranger]).body;
    assert!(!page.contains("attic") && !page.contains("cellar") && !page.contains("Ada"), "{page}");
}

/// The bytes of the receivers' secret.
const SECRET: [u8; 24] = [7; 24];

/// A server that webhooks come to, and the requests that did.
struct Receiver {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Receiver {
    /// One that gives these answers, one after the other, and the last one from then on.
    fn answering(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&requests);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&mut stream) else { continue };
                let mut noted = noted.lock().unwrap();
                let answer = answers.get(noted.len()).or(answers.last()).unwrap();
                noted.push(request);
                drop(noted);
                let answer =
                    format!("HTTP/1.1 {answer}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// A request's head and the body of the length that it says.
fn read_request(stream: &mut impl std::io::Read) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).ok()?;
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes).ok()?;
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).ok()?;
    Some(head + &String::from_utf8(body).ok()?)
}

/// What a receiver checks by the specification: the signature over id, time and body. Returns the id and the body.
fn verified(request: &str) -> (String, Value) {
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let fields: BTreeMap<&str, &str> =
        head.lines().filter_map(|line| line.split_once(": ")).collect();
    let (id, time) = (fields["webhook-id"], fields["webhook-timestamp"]);
    let signed = format!("{id}.{time}.{body}");
    let mac = tenure_crypto::hmac_sha256(&SECRET, &[signed.as_bytes()]);
    let signature = format!("v1,{}", data_encoding::BASE64.encode(&mac));
    assert_eq!(fields["webhook-signature"], signature, "{request}");
    assert!(time.parse::<u64>().unwrap() > 1_700_000_000, "{time}");
    (id.to_string(), serde_json::from_str(body).unwrap())
}

/// The rule `away` on the attic alone, of which the server at `url` is told.
fn told_at(world: &mut World, url: &str) -> Rules {
    world.write_by_hand("UPDATE devices SET labels = 'site=harbour' WHERE name = 'attic'");
    let name = "ops".parse().unwrap();
    let secret = format!("whsec_{}", data_encoding::BASE64.encode(&SECRET)).parse().unwrap();
    let mut away = rule("away", "silent > 20m");
    away.labels = vec!["site=harbour".parse().unwrap()];
    away.tell = vec!["ops".parse().unwrap()];
    let webhooks = vec![Webhook { name, url: url.parse().unwrap(), secret }];
    Rules { rules: vec![away], webhooks, emails: Vec::new() }
}

#[test]
fn receiver_that_fails_twice_gets_the_same_message_again_with_a_signature_that_is_good() {
    let mut world = World::with_fleet();
    let receiver = Receiver::answering(&["500 Broken", "302 Found", "204 Good"]);
    let rules = told_at(&mut world, &format!("http://{}/hook?a=b", receiver.address));
    let at = now() + 2_000;
    let mut alarms_by_rules = telling(&world, rules.clone());
    turn_until_noted(&mut alarms_by_rules, &mut world, at, "message failed", 1);
    assert_eq!(receiver.requests().len(), 1, "before its time nothing is sent again");
    // The queue outlasts the process.
    drop(alarms_by_rules);
    let mut alarms_by_rules = telling(&world, rules);
    turn_until_noted(&mut alarms_by_rules, &mut world, at + 10, "message failed", 2);
    wait_until(|| {
        alarms_by_rules.turn(at + 1_000).unwrap();
        let came = receiver.requests().len();
        if came == 3 { Ok(()) } else { Err(format!("{came} requests")) }
    });
    let requests = receiver.requests();
    assert!(requests[0].starts_with("POST /hook?a=b HTTP/1.1\r\n"), "{}", requests[0]);
    let messages: Vec<_> = requests.iter().map(|request| verified(request)).collect();
    assert!(messages.iter().all(|message| *message == messages[0]), "{messages:?}");
    let (id, body) = &messages[0];
    assert!(id.starts_with("msg_"), "{id}");
    assert_eq!((&body["type"], &body["data"]["device"]), (&"alarm.raised".into(), &"attic".into()));
    assert_eq!(body["data"]["condition"], "silent > 20m");
    assert!(noted(&mut world, "message failed")[0].contains("302; no redirect is followed"));

    // It is told who looks after the alarm, and that it is over, as other messages.
    let alarm = items(&mut world, 1)[0]["id"].clone();
    let token = world.token(&owner(1));
    let path = format!("/v1/rule-alarms/{alarm}/acknowledge");
    let said = json!({ "by": "Ada", "word": "on it" }).to_string();
    assert_eq!(world.request("POST", &path, &[&token], &said).status, 204);
    world.list_until(1, 10, "attic", at + 100_000);
    world.commit();
    alarms_by_rules.turn(at + 1_030).unwrap();
    wait_until(|| {
        alarms_by_rules.turn(at + 1_100).unwrap();
        let came = receiver.requests().len();
        if came == 5 { Ok(()) } else { Err(format!("{came} requests")) }
    });
    let (_, body) = verified(&receiver.requests()[3]);
    assert_eq!(body["type"], "alarm.acknowledged");
    assert_eq!(body["data"]["acknowledged"], json!({ "by": "Ada", "word": "on it" }));
    let (over, body) = verified(&receiver.requests()[4]);
    assert_eq!((&body["type"], over == *id), (&"alarm.over".into(), false));
}

#[test]
fn name_that_leads_to_this_computer_is_refused_and_the_address_that_is_named_isnt() {
    let mut world = World::with_fleet();
    let receiver = Receiver::answering(&["204 Good"]);
    let port = receiver.address.port();
    let rules = told_at(&mut world, &format!("http://localhost:{port}/"));
    let at = now() + 2_000;
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message failed", 1);
    let failed = noted(&mut world, "message failed");
    assert!(failed[0].contains("which is no address of the public network"), "{failed:?}");
    assert_eq!(receiver.requests(), Vec::<String>::new());
}

#[test]
fn server_that_wants_no_more_is_told_once() {
    let mut world = World::with_fleet();
    let receiver = Receiver::answering(&["410 Gone"]);
    let rules = told_at(&mut world, &format!("http://{}/", receiver.address));
    let at = now() + 2_000;
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message given up", 1);
    assert_eq!(receiver.requests().len(), 1);
}

#[test]
fn message_for_a_server_that_the_file_doesnt_name_any_more_is_dropped() {
    let mut world = World::with_fleet();
    let receiver = Receiver::answering(&["500 Broken"]);
    let rules = told_at(&mut world, &format!("http://{}/", receiver.address));
    let at = now() + 2_000;
    turn_until_noted(&mut telling(&world, rules), &mut world, at, "message failed", 1);
    watching(&world, vec![rule("away", "silent > 20m")]).turn(at + 100).unwrap();
    assert_eq!(noted(&mut world, "message dropped").len(), 1);
    assert_eq!(receiver.requests().len(), 1);
}
