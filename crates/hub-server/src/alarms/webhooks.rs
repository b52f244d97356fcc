//! Webhooks: what becomes of an alarm, told to servers of the operator's file as the Standard Webhooks specification says
//! (standard-webhooks 1.0.0): an id, a time and a signature beside each message.
//!
//! Invariant: requests go by [`Reach`]: a name leads to the public network alone, and no redirect is followed.

use std::fmt;
use std::str::FromStr;

use data_encoding::BASE64;
use tenure_crypto::hmac_sha256;
use tenure_hal::Instant;
use tenure_kernel::{Ask, CallId, OutgoingVisit, Visited};
use tenure_reach::Reach;
use tenure_wire::{MachineId, Name, Url};

use super::queue::{CLAIMED_S, Outcome, Refusal, Waiting};

/// How long a server has for its answer, in milliseconds; the specification advises 15 to 30 seconds.
const ANSWER_MS: u64 = 20_000;
const _: () = assert!(CLAIMED_S.unsigned_abs() * 1_000 > 2 * ANSWER_MS);
/// The bytes of a secret; the specification asks for 24 to 64.
const SECRET_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// A server that is told of alarms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// The name by which rules mean it.
    pub name: Name,
    /// Where messages are posted.
    pub url: Url,
    /// What they are signed with.
    pub secret: WebhookSecret,
}

/// The secret that a server knows, too: `whsec_`, and 24 to 64 bytes in base64.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSecret(Vec<u8>);

/// A text is no secret of webhooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a secret is `whsec_` and 24 to 64 bytes in base64; `openssl rand -base64 32` makes such bytes"
)]
pub struct NoWebhookSecret;

impl FromStr for WebhookSecret {
    type Err = NoWebhookSecret;

    fn from_str(text: &str) -> Result<Self, NoWebhookSecret> {
        let text = text.strip_prefix("whsec_").ok_or(NoWebhookSecret)?;
        let bytes = BASE64.decode(text.as_bytes()).map_err(|_| NoWebhookSecret)?;
        if SECRET_BYTES.contains(&bytes.len()) { Ok(Self(bytes)) } else { Err(NoWebhookSecret) }
    }
}

impl fmt::Debug for WebhookSecret {
    /// Without the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret")
    }
}

impl WebhookSecret {
    /// The signature of a message, as its header has it: of the id, the time and the body with dots between.
    fn sign(&self, id: &str, unix_s: u64, body: &str) -> String {
        let head = format!("{id}.{unix_s}.");
        let mac = hmac_sha256(&self.0, &[head.as_bytes(), body.as_bytes()]);
        format!("v1,{}", BASE64.encode(&mac))
    }
}

/// A message whose answer isn't there yet.
#[derive(Debug)]
pub(super) struct Sent {
    call: CallId,
    waiting: Waiting,
}

/// Sends a message under the number `call` of its request, if its server is known.
pub(super) fn send(
    reach: &mut Reach,
    known: &[Webhook],
    waiting: Waiting,
    call: CallId,
    unix_s: u64,
) -> Option<Sent> {
    let named = |(_, webhook): &(usize, &Webhook)| webhook.name.as_str() == waiting.target;
    let (index, webhook) = known.iter().enumerate().find(named)?;
    let Waiting { message, body, .. } = &waiting;
    let signature = webhook.secret.sign(message, unix_s, body);
    let request = format!(
        "content-type: application/json\r\nwebhook-id: {message}\r\nwebhook-timestamp: {unix_s}\r\n\
         webhook-signature: {signature}\r\n\r\n{body}"
    );
    // Each server has a thread of its own, so that one that is slow keeps no other waiting.
    let mut from = MachineId([0; 12]);
    from.0[..8].copy_from_slice(&(index as u64).to_be_bytes());
    let method = "POST".parse().ok()?;
    let ask =
        Ask::Request { method, url: webhook.url.clone(), message: Some(request.into_bytes()) };
    let visit = OutgoingVisit {
        id: call,
        from,
        ask,
        // A redirect leads to what is granted, which is nothing.
        granted: Vec::new(),
        deadline: Instant::from_millis(ANSWER_MS),
        attempts: 1,
    };
    reach.visit(Instant::BOOT, visit);
    Some(Sent { call, waiting })
}

/// What came of the messages under way whose requests have ended.
pub(super) fn ended(reach: &mut Reach, under_way: &mut Vec<Sent>) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    while let Some(visited) = reach.visited() {
        if let Some(place) = under_way.iter().position(|sent| sent.call == visited.id) {
            let Sent { waiting, .. } = under_way.swap_remove(place);
            outcomes.push(Outcome { waiting, result: taken(&visited) });
        }
    }
    outcomes
}

/// Whether a server took the message: by a status of success, and by nothing else.
fn taken(visited: &Visited) -> Result<(), Refusal> {
    let refused = |words: String, is_final| Err(Refusal { words, is_final });
    let Ok(Some(answer)) = &visited.result else {
        return refused(String::from_utf8_lossy(&visited.words).into_owned(), false);
    };
    // `HTTP/1.1 204 `, as `reach` tells it.
    let status = answer.split(|byte| *byte == b' ').nth(1);
    match status.and_then(|status| std::str::from_utf8(status).ok()) {
        Some(status) if status.len() == 3 && status.starts_with('2') => Ok(()),
        Some("410") => refused("the server answered 410: it wants no more".into(), true),
        Some(status) if status.starts_with('3') => {
            refused(format!("the server answered {status}; no redirect is followed"), false)
        }
        Some(status) => refused(format!("the server answered {status}"), false),
        None => refused("the server's answer has no status".into(), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference libraries (standard-webhooks, `libraries/*/tests`).
    #[test]
    fn message_is_signed_as_the_reference_libraries_sign_it() {
        let secret: WebhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".parse().unwrap();
        let body = r#"{"test": 2432232314}"#;
        assert_eq!(
            secret.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body),
            "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
        );
        assert_eq!(format!("{secret:?}"), "WebhookSecret");
    }

    #[test]
    fn text_that_is_no_secret_is_refused() {
        let short = format!("whsec_{}", BASE64.encode(&[1; 23]));
        let long = format!("whsec_{}", BASE64.encode(&[1; 65]));
        for text in ["", "whsec_", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_=", &*short, &*long] {
            assert_eq!(text.parse::<WebhookSecret>(), Err(NoWebhookSecret), "{text}");
        }
        assert!(format!("whsec_{}", BASE64.encode(&[1; 24])).parse::<WebhookSecret>().is_ok());
    }
}
