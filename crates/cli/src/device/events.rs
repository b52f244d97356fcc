//! `tenure events`: the topics of a device, who has subscribed, and what was lost.

use serde_json::{Value, json};
use tenure_wire::control::{Client as _, EventsPage, EventsQuery, SubscriptionState, TopicState};

use crate::reach::client::{Client, Device};
use crate::reach::pages::LISTED_MAX;
use crate::reach::whom::Where;
use crate::terminal::output::{Output, width_of};

/// Show topics, who has subscribed to them, how long their queues are and what they dropped.
///
/// Example: tenure events --device 127.0.0.1:7370
#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    place: Where,
}

/// Runs `tenure events`.
///
/// # Errors
/// The device can't be reached.
pub fn run(arguments: &Arguments, client: &mut Client, output: &Output) -> anyhow::Result<()> {
    let device = arguments.place.connect(client)?;
    let all = gather(client, &device)?;
    if output.is_json() {
        output.line("", &object(&device, &all));
        return Ok(());
    }
    if all.topics.is_empty() && all.subscriptions.is_empty() {
        output.line("nothing was published, and nobody has subscribed", &Value::Null);
        return Ok(());
    }
    output.line(&format!("{:<32} {:>10}", "TOPIC", "PUBLISHED"), &Value::Null);
    for TopicState { topic, published } in &all.topics {
        output.line(&format!("{topic:<32} {published:>10}"), &Value::Null);
    }
    if all.uncounted > 0 {
        output.line(&format!("{:<32} {:>10}", "(others)", all.uncounted), &Value::Null);
    }
    let subscribers: Vec<String> = all.subscriptions.iter().map(subscriber).collect();
    let width = width_of(subscribers.iter().map(String::as_str));
    let header = format!(
        "\n{:<width$} {:<24} {:<12} {:>7} {:>10} {:>10}  HANDLER",
        "SUBSCRIBER", "TOPICS", "POLICY", "QUEUE", "DELIVERED", "DROPPED"
    );
    output.line(&header, &Value::Null);
    for (one, subscriber) in all.subscriptions.iter().zip(&subscribers) {
        output.line(&subscription_line(one, subscriber, width), &Value::Null);
    }
    output.line(&format!("\n{} bytes are queued", all.bytes), &Value::Null);
    Ok(())
}

/// All pages in one. What is published or subscribed between two pages may be missing or twice.
fn gather(client: &mut Client, device: &Device) -> anyhow::Result<EventsPage> {
    let mut all: EventsPage = client.at(&device.route).events(EventsQuery { skip: 0 })?;
    loop {
        let skip = (all.topics.len() + all.subscriptions.len()) as u32;
        if skip >= all.total {
            return Ok(all);
        }
        let page: EventsPage = client.at(&device.route).events(EventsQuery { skip })?;
        if page.topics.is_empty() && page.subscriptions.is_empty() {
            return Ok(all);
        }
        anyhow::ensure!(skip as usize <= LISTED_MAX, "the device tells of events without end");
        all.topics.extend(page.topics);
        all.subscriptions.extend(page.subscriptions);
    }
}

/// Who hears events: a machine, or between brackets a peripheral.
fn subscriber(one: &SubscriptionState) -> String {
    if one.is_peripheral { format!("({})", one.subscriber) } else { one.subscriber.to_string() }
}

fn subscription_line(one: &SubscriptionState, subscriber: &str, width: usize) -> String {
    format!(
        "{subscriber:<width$} {:<24} {:<12} {:>7} {:>10} {:>10}  {}",
        one.topics.to_string(),
        one.policy,
        format!("{}/{}", one.queued, one.depth),
        one.delivered,
        one.dropped,
        one.handler.as_deref().unwrap_or("-"),
    )
}

fn object(device: &Device, all: &EventsPage) -> Value {
    let topics: Vec<Value> = all
        .topics
        .iter()
        .map(|one| json!({ "topic": one.topic.as_str(), "published": one.published }))
        .collect();
    let subscriptions: Vec<Value> = all
        .subscriptions
        .iter()
        .map(|one| {
            json!({
                "subscriber": one.subscriber.as_str(),
                "is_peripheral": one.is_peripheral,
                "topics": one.topics.to_string(),
                "policy": one.policy,
                "depth": one.depth,
                "queued": one.queued,
                "delivered": one.delivered,
                "dropped": one.dropped,
                "handler": one.handler,
            })
        })
        .collect();
    json!({
        "device": device.status.name.as_str(),
        "topics": topics,
        "uncounted": all.uncounted,
        "subscriptions": subscriptions,
        "bytes": all.bytes,
    })
}
