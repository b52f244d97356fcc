//! Home Assistant's discovery: what it is told, so that entities of the device appear there by themselves
//! (<https://www.home-assistant.io/integrations/mqtt/#mqtt-discovery>).

use serde_json::{Value, json};
use tenure_mqtt::{Message, Qos};
use tenure_wire::{Name, Topic};

use crate::rules::{Entity, Inward, Outward};

/// The key of an entity's component in a rule; the others go to Home Assistant as they are.
const COMPONENT: &str = "component";

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
        let object = topic.as_str().replace('.', "_");
        let device = &self.device;
        let component = extra.get(COMPONENT).and_then(Value::as_str).unwrap_or(usual);
        let mut config = json!({
            "name": topic.as_str().replace('.', " "),
            "unique_id": format!("tenure_{device}_{object}"),
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

#[cfg(test)]
mod tests {
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
}
