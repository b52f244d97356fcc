use super::*;

fn read(text: &str) -> anyhow::Result<Settings> {
    settings(written_file::parse(text)?, Path::new(""), "attic")
}

#[test]
fn file_with_everything_is_read_and_what_it_leaves_out_has_a_default() {
    let settings = read(
        r#"
        broker = "mqtt://broker.example"
        discovery = "homeassistant"

        [[out]]
        topic = "device.*"
        to = "home/attic"
        qos = 2
        retain = true
        home_assistant = { unit_of_measurement = "°C" }

        [[in]]
        from = "home/lamp/set"
        topic = "command.lamp"
        share = "lamps"
        "#,
    )
    .unwrap();
    assert_eq!(settings.broker.to_string(), "mqtt://broker.example:1883");
    assert_eq!((settings.client_id.as_str(), settings.keep_alive_s), ("attic", 60));
    assert_eq!(settings.status_topic.as_deref(), Some("tenure/attic/status"));
    let will = settings.will.unwrap();
    assert_eq!((will.topic.as_str(), &will.payload[..]), ("tenure/attic/status", &b"offline"[..]));
    assert_eq!(settings.rules.patterns(), ["device.*".parse().unwrap()]);
    let will = "broker = 'mqtt://[::1]:99'\nwill = { topic = 'gone', payload = 'attic', qos = 0 }";
    let settings = read(will).unwrap();
    assert_eq!(settings.broker.to_string(), "mqtt://[::1]:99");
    assert_eq!((settings.will.unwrap().qos, settings.status_topic), (Qos::AtMostOnce, None));
}

#[test]
fn file_that_says_what_cannot_be_is_refused_with_its_reason() {
    for (text, reason) in [
        ("", "missing field `broker`"),
        ("broker = 'broker.example'", "write mqtts://HOST:PORT"),
        ("broker = 'http://a'", "write mqtts://HOST:PORT"),
        ("broker = 'mqtt://a:b'", "write mqtts://HOST:PORT"),
        ("broker = 'mqtt://'", "write mqtts://HOST:PORT"),
        ("broker = 'mqtt://a'\nca = ['x.pem']", "certificates are for TLS"),
        ("broker = 'mqtts://a'\nkey = 'x.pem'", "go together"),
        ("broker = 'mqtts://a'\nca = ['no-such.pem']", "can't read no-such.pem"),
        ("broker = 'mqtt://a'\npassword_file = 'no-such'\nuser = 'x'", "can't read no-such"),
        ("broker = 'mqtt://a'\nqueue_bytes = 0", "a queue has 1 to"),
        ("broker = 'mqtt://a'\nkeepalive_s = 1", "did you mean `keep_alive_s`?"),
        ("broker = 'mqtt://a'\n[[out]]\ntopic = 'a'\nto = 'a'\nqos = 3", "there are 0, 1 and 2"),
        ("broker = 'mqtt://a'\n[[out]]\ntopic = 'A'\nto = 'a'", "is none of a-z"),
        ("broker = 'mqtt://a'\n[[out]]\ntopic = 'a'\nto = 'a/#'", "`a/#` is no topic of a broker"),
        ("broker = 'mqtt://a'\n[[in]]\nfrom = 'a'\ntopic = 'device.a'", "below `device`"),
        ("broker = 'mqtt://a'\nstatus_topic = '+'", "status_topic"),
        (
            "broker = 'mqtt://a'\nstatus_topic = 's'\nwill = { topic = 'w', payload = '' }",
            "one last will",
        ),
    ] {
        let Err(error) = read(text) else { panic!("{text}") };
        assert!(format!("{error:#}").contains(reason), "{text}: {error:#}");
    }
}
