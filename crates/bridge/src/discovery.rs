//! Home Assistant's discovery: what it is told, so that entities of the device appear there by themselves
//! (<https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery>).

use serde_json::{Value, json};
use tenure_crypto::sha256;
use tenure_mqtt::{Message, Qos};
use tenure_wire::{Name, Topic};

use crate::rules::{Entity, Inward, Outward};

/// The key of an entity's component in a rule; the others go to Home Assistant as they are.
const COMPONENT: &str = "component";

/// The bytes of a digest that tell names apart: nobody finds two topics that share them with one that is given.
const CODE_BYTES: usize = 8;

/// The common part of all entities of a device.
pub(crate) struct Discovery {
    pub(crate) prefix: String,
    pub(crate) device: Name,
    /// The topic that says whether the device is there.
    pub(crate) status_topic: Option<String>,
}

impl Discovery {
    /// The entity for events of `topic`, which the broker has under `state_topic`: a sensor, if the rule doesn't say otherwise.
    pub(crate) fn of_event(&self, rule: &Outward, topic: &Topic, state_topic: &str) -> Message {
        let own = json!({ "state_topic": state_topic });
        self.entity(topic, ("sensor", &rule.entity), own)
    }

    /// The entity by which messages become events: a text, if the rule doesn't say otherwise. `None` where a rule is for
    /// several topics.
    pub(crate) fn of_command(&self, rule: &Inward) -> Option<Message> {
        if rule.from.contains(['+', '#']) {
            return None;
        }
        let own = json!({ "command_topic": rule.from, "qos": rule.qos.number() });
        Some(self.entity(&rule.topic, ("text", &rule.entity), own))
    }

    fn entity(&self, topic: &Topic, (usual, extra): (&str, &Entity), own: Value) -> Message {
        let device = &self.device;
        let (object, unique_id) = names(device, topic);
        let component = extra.get(COMPONENT).and_then(Value::as_str).unwrap_or(usual);
        let mut config = json!({
            "name": topic.as_str().replace('.', " "),
            "unique_id": unique_id,
            "device": { "identifiers": [format!("tenure_{device}")], "name": device.as_str() },
            "origin": { "name": "Tenure" },
        });
        if let Some(status_topic) = &self.status_topic {
            config["availability_topic"] = json!(status_topic);
        }
        let further = own.as_object().into_iter().chain([extra]).flatten();
        for (key, value) in further.filter(|(key, _)| *key != COMPONENT) {
            config[key] = value.clone();
        }
        Message {
            topic: format!("{}/{component}/{device}/{object}/config", self.prefix),
            payload: config.to_string().into_bytes(),
            qos: Qos::AtLeastOnce,
            retain: true,
        }
    }
}

/// The name of a topic's object, of the letters that Home Assistant has for one, and its name among all. Other topics, and
/// topics of other devices, have other names: no machine's entity takes the place of another's.
fn names(device: &Name, topic: &Topic) -> (String, String) {
    let plain = topic.as_str().replace('.', "_");
    let digest = sha256(&[device.as_str().as_bytes(), b"/", topic.as_str().as_bytes()]);
    let code: String = digest.0.iter().take(CODE_BYTES).map(|byte| format!("{byte:02x}")).collect();
    // Dots are `_` here, so what has others needs more. The code has a `-` before it, as no other name has.
    let object = match topic.as_str().contains(['_', '-']) {
        true => format!("{plain}-{code}"),
        false => plain,
    };
    // The device's name ends at the next `_`, if it has none itself.
    let is_told_apart = !device.as_str().contains('_') || object.ends_with(&code);
    let unique_id = format!("tenure_{device}_{object}");
    match is_told_apart {
        true => (object, unique_id),
        false => (object, format!("{unique_id}-{code}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn entities_carry_what_home_assistant_asks_for_and_what_the_rule_adds() {
        let discovery = Discovery {
            prefix: "homeassistant".into(),
            device: "attic".parse().unwrap(),
            status_topic: Some("tenure/attic/status".into()),
        };
        let entity = json!({ "device_class": "temperature", "unit_of_measurement": "°C" });
        let out = Outward {
            topics: "device.*".parse().unwrap(),
            to: "home/attic".into(),
            qos: Qos::AtLeastOnce,
            retain: true,
            entity: entity.as_object().unwrap().clone(),
        };
        let topic = "device.temperature".parse().unwrap();
        let message = discovery.of_event(&out, &topic, "home/attic/temperature");
        assert_eq!(message.topic, "homeassistant/sensor/attic/device_temperature/config");
        assert!(message.retain);
        let expected = json!({
            "name": "device temperature",
            "unique_id": "tenure_attic_device_temperature",
            "device": { "identifiers": ["tenure_attic"], "name": "attic" },
            "origin": { "name": "Tenure" },
            "availability_topic": "tenure/attic/status",
            "state_topic": "home/attic/temperature",
            "device_class": "temperature",
            "unit_of_measurement": "°C",
        });
        assert_eq!(serde_json::from_slice::<Value>(&message.payload).unwrap(), expected);
        let entity = json!({ "component": "switch", "payload_on": "on" });
        let inward = Inward {
            from: "home/lamp/set".into(),
            topic: "command.lamp".parse().unwrap(),
            qos: Qos::ExactlyOnce,
            share: None,
            entity: entity.as_object().unwrap().clone(),
        };
        let message = discovery.of_command(&inward).unwrap();
        assert_eq!(message.topic, "homeassistant/switch/attic/command_lamp/config");
        let config: Value = serde_json::from_slice(&message.payload).unwrap();
        let keys = [&config["command_topic"], &config["qos"], &config["payload_on"]];
        assert_eq!(keys, [&json!("home/lamp/set"), &json!(2), &json!("on")]);
        assert_eq!(config.get("component"), None);
        let many = Inward { from: "home/+/set".into(), ..inward };
        assert_eq!(discovery.of_command(&many), None);
    }

    // C5-1: `room.kitchen_temperature` took the place of `room.kitchen.temperature`.
    #[test]
    fn no_topic_takes_the_place_of_another_nor_that_of_another_device() {
        let (mut objects, mut ids) = (BTreeSet::new(), BTreeSet::new());
        let mut count = 0;
        let parts = ["a", "_", "-", ".", "_a", "a_", "-a"];
        let texts = parts.iter().flat_map(|one| parts.map(|two| format!("{one}{two}")));
        let texts: BTreeSet<String> = texts
            .flat_map(|text| parts.map(|three| format!("b{text}{three}c")))
            .chain(["room.kitchen.temperature", "room.kitchen_temperature"].map(String::from))
            .collect();
        for device in ["attic", "attic_b", "attic-b", "attic_b_a"] {
            let device: Name = device.parse().unwrap();
            for topic in texts.iter().filter_map(|text| text.parse::<Topic>().ok()) {
                let (object, id) = names(&device, &topic);
                assert!(
                    object
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
                );
                assert!(objects.insert((device.clone(), object)), "{device} {topic}");
                assert!(ids.insert(id), "{device} {topic}");
                count += 1;
            }
        }
        assert!(count > 400, "{count}");
        // A name that is made to look like another's, code and all.
        let attic = "attic".parse().unwrap();
        let victim = names(&attic, &"room.a_b".parse().unwrap());
        let alike = victim.0.replace("a_b", "a.b").replacen('_', ".", 1);
        assert_ne!(names(&attic, &alike.parse().unwrap()), victim);
        let usual = names(&attic, &"room.kitchen".parse().unwrap());
        assert_eq!(usual, ("room_kitchen".into(), "tenure_attic_room_kitchen".into()));
    }
}
