//! The owner's rules: which topics cross, and what they are called on the other side.

use std::fmt;

use tenure_mqtt::{Message, Qos, Subscription, TopicError, check_filter, check_topic, matches};
use tenure_wire::{Topic, TopicPattern};

/// The topic below which a device alone publishes what its peripherals read.
const DEVICE_TOPIC: &str = "device";
/// The most rules of each direction.
const RULES_MAX: usize = 32;
/// The most patterns of topics that a device's pipeline has for one subscriber.
const PATTERNS_MAX: usize = 8;
/// The longest topic or filter of a rule, in bytes.
const BYTES_MAX: usize = 512;

/// The part of an entity that Home Assistant is told beside what follows from its rule.
pub type Entity = serde_json::Map<String, serde_json::Value>;

/// A rule by which events go to the broker.
#[derive(Clone, Debug)]
pub struct Outward {
    /// Of these topics.
    pub topics: TopicPattern,
    /// To that topic, or below it where there are several.
    pub to: String,
    /// By this promise.
    pub qos: Qos,
    /// Whether the broker keeps the last one.
    pub retain: bool,
    /// For Home Assistant.
    pub entity: Entity,
}

/// A rule by which messages of the broker become events.
#[derive(Clone, Debug)]
pub struct Inward {
    /// Of these topics.
    pub from: String,
    /// Under this topic, or below it where `from` ends in `#`.
    pub topic: Topic,
    /// By this promise at best.
    pub qos: Qos,
    /// The group that shares the messages: each comes to one of its members.
    pub share: Option<String>,
    /// For Home Assistant.
    pub entity: Entity,
}

impl Inward {
    fn filter(&self) -> String {
        match &self.share {
            Some(group) => format!("$share/{group}/{}", self.from),
            None => self.from.clone(),
        }
    }

    /// The topic of the event for a message of this topic.
    fn topic_for(&self, name: &str) -> Result<Topic, tenure_wire::TopicError> {
        let Some(parent) = self.from.strip_suffix('#') else { return Ok(self.topic.clone()) };
        let levels_before = parent.matches('/').count();
        let below = name.splitn(levels_before + 1, '/').nth(levels_before);
        match below {
            Some(below) => format!("{}.{}", self.topic, below.replace('/', ".")).parse(),
            // The level above `#` is meant, too.
            None => Ok(self.topic.clone()),
        }
    }
}

/// All rules, checked.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    out: Vec<Outward>,
    inward: Vec<Inward>,
}

impl Rules {
    /// Checks rules.
    ///
    /// # Errors
    /// As [`RuleError`] says.
    pub fn new(out: Vec<Outward>, inward: Vec<Inward>) -> Result<Self, RuleError> {
        if out.len() > RULES_MAX || inward.len() > RULES_MAX {
            return Err(RuleError::TooMany);
        }
        for rule in &out {
            check(&rule.to, check_topic)?;
        }
        for rule in &inward {
            let is_group = |group: &String| !group.is_empty() && !group.contains(['/', '+', '#']);
            if let Some(group) = rule.share.as_ref().filter(|group| !is_group(group)) {
                return Err(RuleError::Group(group.clone()));
            }
            check(&rule.filter(), check_filter)?;
            if rule.topic.as_str().split('.').next() == Some(DEVICE_TOPIC) {
                return Err(RuleError::DeviceTopic(rule.topic.clone()));
            }
        }
        let rules = Self { out, inward };
        if rules.patterns().len() > PATTERNS_MAX {
            return Err(RuleError::TooManyPatterns);
        }
        Ok(rules)
    }

    /// The fewest patterns that mean all topics of the outward rules, so that each event comes once.
    pub fn patterns(&self) -> Vec<TopicPattern> {
        TopicPattern::fewest(self.out.iter().map(|rule| &rule.topics))
    }

    /// The subscriptions that the inward rules make.
    pub(crate) fn subscriptions(&self) -> Vec<Subscription> {
        let wanted = |rule: &Inward| Subscription { filter: rule.filter(), qos: rule.qos };
        self.inward.iter().map(wanted).collect()
    }

    /// The inward rules.
    pub(crate) fn inward(&self) -> &[Inward] {
        &self.inward
    }

    /// The messages for the broker that an event makes, each with its rule.
    pub(crate) fn messages<'a>(
        &'a self,
        topic: &'a Topic,
        payload: &'a [u8],
    ) -> impl Iterator<Item = (&'a Outward, Message)> {
        let rules = self.out.iter().filter(|rule| rule.topics.matches(topic));
        rules.map(move |rule| {
            let below = match &rule.topics {
                TopicPattern::One(_) => None,
                TopicPattern::Below(parent) => topic.as_str().get(parent.as_str().len() + 1..),
                TopicPattern::All => Some(topic.as_str()),
            };
            let topic = match below {
                Some(below) => format!("{}/{}", rule.to, below.replace('.', "/")),
                None => rule.to.clone(),
            };
            let payload = payload.to_vec();
            (rule, Message { topic, payload, qos: rule.qos, retain: rule.retain })
        })
    }

    /// The topic of the event that a message of this topic becomes by the first rule that means it; `None` without a rule.
    ///
    /// # Errors
    /// It would be no topic of a device.
    pub(crate) fn topic_for(&self, name: &str) -> Result<Option<Topic>, tenure_wire::TopicError> {
        let rule = self.inward.iter().find(|rule| matches(&rule.from, name));
        rule.map(|rule| rule.topic_for(name)).transpose()
    }
}

fn check(text: &str, is_right: impl Fn(&str) -> Result<(), TopicError>) -> Result<(), RuleError> {
    if text.len() > BYTES_MAX {
        return Err(RuleError::TooLong(text.chars().take(32).collect()));
    }
    is_right(text).map_err(|error| RuleError::Topic(text.into(), error))
}

/// Why rules are none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There are too many.
    TooMany,
    /// Their topics are too many patterns.
    TooManyPatterns,
    /// A topic or filter at the broker is too long.
    TooLong(String),
    /// A topic or filter at the broker is none.
    Topic(String, TopicError),
    /// The name of a group that shares messages is none.
    Group(String),
    /// A rule would publish what only the device may.
    DeviceTopic(Topic),
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "there are {RULES_MAX} rules of each direction at most"),
            Self::TooManyPatterns => write!(
                f,
                "the topics of the rules in `out` are more than {PATTERNS_MAX} patterns; one like `room.*` means many topics"
            ),
            Self::TooLong(text) => {
                write!(f, "`{text}…` has more than {BYTES_MAX} bytes")
            }
            Self::Topic(text, error) => write!(f, "`{text}` is no topic of a broker: {error}"),
            Self::Group(group) => {
                write!(
                    f,
                    "`{group}` is no group that shares messages: it has /, + or #, or is empty"
                )
            }
            Self::DeviceTopic(topic) => write!(
                f,
                "`{topic}`: below `device` is what the device's own peripherals read; `command.NAME` tells the peripheral NAME something"
            ),
        }
    }
}

impl std::error::Error for RuleError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(topics: &str, to: &str) -> Outward {
        let (qos, entity) = (Qos::AtLeastOnce, Entity::new());
        Outward { topics: topics.parse().unwrap(), to: to.into(), qos, retain: true, entity }
    }

    fn inward(from: &str, topic: &str) -> Inward {
        let (qos, share, entity) = (Qos::ExactlyOnce, None, Entity::new());
        Inward { from: from.into(), topic: topic.parse().unwrap(), qos, share, entity }
    }

    fn topics_of(rules: &Rules, topic: &str) -> Vec<String> {
        let topic = topic.parse().unwrap();
        rules.messages(&topic, b"1").map(|(_, message)| message.topic).collect()
    }

    #[test]
    fn event_goes_where_rules_say_and_nowhere_without_one() {
        let rules = Rules::new(vec![out("room.*", "home"), out("door", "home/door")], vec![]);
        let rules = rules.unwrap();
        assert_eq!(topics_of(&rules, "room.attic.temperature"), ["home/attic/temperature"]);
        assert_eq!(topics_of(&rules, "door"), ["home/door"]);
        assert_eq!(topics_of(&rules, "door.front"), [""; 0]);
        assert_eq!(topics_of(&rules, "room"), [""; 0]);
        let all = Rules::new(vec![out("*", "attic")], vec![]).unwrap();
        assert_eq!(topics_of(&all, "a.b"), ["attic/a/b"]);
    }

    #[test]
    fn patterns_are_the_fewest_that_mean_all_topics() {
        let rules =
            [out("room.attic", "1"), out("room.*", "2"), out("door", "3"), out("door", "4")];
        let rules = Rules::new(rules.to_vec(), vec![]).unwrap();
        assert_eq!(rules.patterns(), ["room.*".parse().unwrap(), "door".parse().unwrap()]);
        assert_eq!(topics_of(&rules, "room.attic"), ["1", "2/attic"]);
    }

    #[test]
    fn message_becomes_an_event_by_the_first_rule_that_means_it() {
        let rules = [
            inward("home/lamp/set", "command.lamp"),
            inward("home/+/mode", "mode"),
            inward("garden/#", "garden"),
        ];
        let rules = Rules::new(vec![], rules.to_vec()).unwrap();
        let topic = |name: &str| rules.topic_for(name).map(|it| it.map(|it| it.to_string()));
        assert_eq!(topic("home/lamp/set"), Ok(Some("command.lamp".into())));
        assert_eq!(topic("home/attic/mode"), Ok(Some("mode".into())));
        assert_eq!(topic("garden/soil/wet"), Ok(Some("garden.soil.wet".into())));
        assert_eq!(topic("garden"), Ok(Some("garden".into())));
        assert_eq!(topic("home/lamp"), Ok(None));
        assert!(topic("garden/Söil").is_err());
        assert!(topic("garden//x").is_err());
        assert!(topic(&format!("garden/{}", "x".repeat(64))).is_err());
    }

    #[test]
    fn rule_that_is_none_is_refused_with_its_reason() {
        let error = |out, inward| Rules::new(out, inward).unwrap_err();
        assert!(matches!(error(vec![out("a", "home/#")], vec![]), RuleError::Topic(..)));
        assert!(matches!(error(vec![out("a", "")], vec![]), RuleError::Topic(..)));
        assert!(matches!(error(vec![out("a", &"x".repeat(513))], vec![]), RuleError::TooLong(_)));
        assert!(matches!(error(vec![], vec![inward("a/#/b", "a")]), RuleError::Topic(..)));
        let shared = |group: &str| Inward { share: Some(group.into()), ..inward("a", "a") };
        assert_eq!(error(vec![], vec![shared("a/b")]), RuleError::Group("a/b".into()));
        let rules = Rules::new(vec![], vec![shared("cellar")]).unwrap();
        assert_eq!(rules.subscriptions()[0].filter, "$share/cellar/a");
        let device = error(vec![], vec![inward("a", "device.lamp")]);
        assert!(matches!(device, RuleError::DeviceTopic(_)));
        let many = (0..9).map(|number| out(&format!("t{number}"), "t")).collect();
        assert_eq!(error(many, vec![]), RuleError::TooManyPatterns);
        let many = (0..33).map(|_| inward("a", "a")).collect();
        assert_eq!(error(vec![], many), RuleError::TooMany);
    }
}
