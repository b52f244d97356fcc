//! Alarms by rules: the operator's file says what raises one, a person acknowledges it, and it is over once its reason is.
//!
//! Invariants:
//! - A rule has one alarm on a device that isn't over, at most, and one for each owner on the hub; the database holds that.
//! - Whatever becomes of an alarm stands in the audit log, written in the same transaction.
//! - Rules are looked at in transactions that only read: no device waits for them, and none is in their way.
//! - Of several processes the one with the lease ([`ALARMS`](crate::store::shared::ALARMS)) changes alarms.

mod mails;
mod place;
mod queue;
mod rules;
mod seen;
mod states;
mod watch;
mod webhooks;

pub use mails::{Email, EmailAddress, EmailCredentials, EmailSecurity, NoEmailAddress};
pub(crate) use place::on;
pub use rules::{Condition, ConditionError, RULES_MAX, Rule, Rules, SUBJECTS};
pub(crate) use states::{Acknowledgement, Alarm, answer, open_of_owner};
pub use watch::Alarms;
pub use webhooks::{NoWebhookSecret, Webhook, WebhookSecret};
