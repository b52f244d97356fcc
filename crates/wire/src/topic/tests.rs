use super::*;
use alloc::string::ToString;

fn topic(text: &str) -> Topic {
    text.parse().unwrap()
}

fn pattern(text: &str) -> TopicPattern {
    text.parse().unwrap()
}

#[test]
fn what_is_no_topic_is_refused() {
    for (text, error) in [
        ("", TopicError::EmptyName),
        (".", TopicError::EmptyName),
        ("a..b", TopicError::EmptyName),
        ("a.", TopicError::EmptyName),
        ("a.B", TopicError::Character { at: 2 }),
        ("a.*", TopicError::Character { at: 2 }),
        ("ä", TopicError::Character { at: 0 }),
        (&"a".repeat(65), TopicError::TooLong),
    ] {
        assert_eq!(text.parse::<Topic>(), Err(error), "{text}");
    }
    assert_eq!(topic(&"a".repeat(64)).as_str().len(), 64);
    for text in ["a*", "*.a", "a.*.b", "**", ".*"] {
        assert!(text.parse::<TopicPattern>().is_err(), "{text}");
    }
}

#[test]
fn patterns_mean_one_topic_all_below_one_or_all() {
    for (written, meant, not_meant) in [
        ("a.b", &["a.b"][..], &["a", "a.b.c", "a.bc"][..]),
        ("a.*", &["a.b", "a.b.c"], &["a", "ab", "ab.c", "b.a"]),
        ("*", &["a", "a.b"], &[]),
    ] {
        let pattern = pattern(written);
        assert_eq!(pattern.to_string(), written);
        assert!(meant.iter().all(|text| pattern.matches(&topic(text))), "{written}");
        assert!(!not_meant.iter().any(|text| pattern.matches(&topic(text))), "{written}");
    }
}

#[test]
fn a_pattern_covers_another_if_it_matches_all_that_the_other_can() {
    let all = ["a", "a.b", "a.b.c", "ab", "a.*", "a.b.*", "ab.*", "*"].map(pattern);
    let topics = ["a", "a.b", "a.b.c", "a.b.c.d", "ab", "ab.c", "z"].map(topic);
    for one in &all {
        for other in &all {
            let contained = topics.iter().all(|topic| !other.matches(topic) || one.matches(topic));
            assert_eq!(one.covers(other), contained, "{one} and {other}");
        }
    }
}
