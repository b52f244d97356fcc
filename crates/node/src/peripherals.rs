//! The device's peripherals: read once for all machines, and told what machines publish for them.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use tenure_hal::{Flash, Instant, Peripheral};
use tenure_kernel::{COMMAND_TOPIC, DEVICE_TOPIC, Driver, Kernel};
use tenure_wire::control::{EventsPage, EventsQuery, SubscriptionState, TopicState};
use tenure_wire::limits::PARAMETER_BYTES_MAX;
use tenure_wire::{Name, Topic};

/// The most peripherals of a device.
const PERIPHERALS_MAX: usize = 8;
/// How many commands one peripheral is given between two polls of the node, so that who floods it
/// doesn't hold up the others.
const COMMANDS_PER_POLL: usize = 8;
/// The most bytes that one topic takes in an answer.
const TOPIC_OVERHEAD: usize = 80;
/// The most bytes that one subscription takes, beside its handler's name.
const SUBSCRIPTION_OVERHEAD: usize = 160;

/// A driver in its place.
struct Attached {
    peripheral: Box<dyn Peripheral + Send>,
    name: Name,
    poll_at: Option<Instant>,
}

/// All peripherals of a device.
#[derive(Default)]
pub(crate) struct Peripherals {
    attached: Vec<Attached>,
}

impl Peripherals {
    /// When the first of them wants to be polled.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.attached.iter().filter_map(|one| one.poll_at).min()
    }

    /// Takes a peripheral into use: machines hear of its readings as `device.NAME`, and reach it as
    /// `command.NAME`.
    ///
    /// # Errors
    /// As [`AttachError`] says.
    pub(crate) fn attach<F: Flash>(
        &mut self,
        kernel: &mut Kernel<F>,
        now: Instant,
        peripheral: Box<dyn Peripheral + Send>,
    ) -> Result<(), AttachError> {
        let name: Name = peripheral.name().parse().map_err(|_| AttachError::Name)?;
        let attached = &mut self.attached;
        if attached.iter().any(|one| one.name == name) {
            return Err(AttachError::Twice);
        }
        if attached.len() >= PERIPHERALS_MAX {
            return Err(AttachError::TooMany);
        }
        let driver = Driver(attached.len() as u8);
        let commands = topic_of(COMMAND_TOPIC, &name, "").ok_or(AttachError::Name)?;
        kernel.events_mut().listen(driver, &commands).map_err(|_| AttachError::TooMany)?;
        attached.push(Attached { peripheral, name, poll_at: Some(now) });
        Ok(())
    }

    /// Gives all peripherals back, to be attached to the node that comes after this one.
    pub(crate) fn detach_all(&mut self) -> Vec<Box<dyn Peripheral + Send>> {
        self.attached.drain(..).map(|one| one.peripheral).collect()
    }

    /// Hands commands over, and publishes what the peripherals that are due have read.
    pub(crate) fn attend<F: Flash>(&mut self, kernel: &mut Kernel<F>, now: Instant) {
        for (number, one) in self.attached.iter_mut().enumerate() {
            let commanded = one.obey(Driver(number as u8), kernel, now);
            if commanded || one.poll_at.is_some_and(|at| at <= now) {
                one.read(kernel, now);
            }
        }
    }

    /// A page of topics and subscriptions, for the owner.
    pub(crate) fn events_page<F: Flash>(
        &self,
        kernel: &Kernel<F>,
        query: &EventsQuery,
    ) -> EventsPage {
        let (topics, uncounted) = kernel.events().topics();
        let topics: Vec<_> = topics.collect();
        let count = kernel.events().subscriptions().count();
        let mut page = EventsPage {
            topics: Vec::new(),
            subscriptions: Vec::new(),
            total: (topics.len() + count) as u32,
            uncounted,
            bytes: kernel.events().bytes() as u32,
        };
        let mut room = PARAMETER_BYTES_MAX - TOPIC_OVERHEAD;
        let mut fits = |bytes: usize| {
            let fits = bytes <= room;
            room = room.saturating_sub(bytes);
            fits
        };
        let skip = query.skip as usize;
        for (topic, published) in topics.iter().skip(skip) {
            if !fits(TOPIC_OVERHEAD) {
                return page;
            }
            page.topics.push(TopicState { topic: (*topic).clone(), published: *published });
        }
        for one in kernel.events().subscriptions().skip(skip.saturating_sub(topics.len())) {
            let Some(state) = self.subscription_state(kernel, &one) else { continue };
            if !fits(SUBSCRIPTION_OVERHEAD + one.handler.map_or(0, str::len)) {
                return page;
            }
            page.subscriptions.push(state);
        }
        page
    }

    fn subscription_state<F: Flash>(
        &self,
        kernel: &Kernel<F>,
        one: &tenure_kernel::Subscribed<'_>,
    ) -> Option<SubscriptionState> {
        let (subscriber, is_peripheral) = match one.listener {
            tenure_kernel::Listener::Slot(slot) => (kernel.name_of(slot)?.clone(), false),
            tenure_kernel::Listener::Driver(Driver(number)) => {
                (self.attached.get(usize::from(number))?.name.clone(), true)
            }
            #[cfg(feature = "bridge")]
            tenure_kernel::Listener::Bridge => ("bridge".parse().ok()?, true),
        };
        Some(SubscriptionState {
            subscriber,
            is_peripheral,
            topics: one.status.pattern.clone(),
            policy: one.status.policy.as_str().into(),
            depth: one.status.depth as u32,
            queued: one.status.queued as u32,
            delivered: one.status.delivered,
            dropped: one.status.dropped,
            handler: one.handler.map(Into::into),
        })
    }
}

impl Attached {
    /// Gives it the commands that wait; whether there were any.
    fn obey<F: Flash>(&mut self, driver: Driver, kernel: &mut Kernel<F>, now: Instant) -> bool {
        let mut commanded = false;
        for _ in 0..COMMANDS_PER_POLL {
            let Some((topic, command)) = kernel.events_mut().command(driver) else { break };
            let own = COMMAND_TOPIC.len() + 1 + self.name.as_str().len();
            let part = topic.get(own + 1..).unwrap_or_default();
            self.peripheral.command(now, part, &command);
            commanded = true;
        }
        commanded
    }

    /// Polls it and publishes what it has read; what is too long, or of a part that has no name, is
    /// left out.
    fn read<F: Flash>(&mut self, kernel: &mut Kernel<F>, now: Instant) {
        let name = &self.name;
        let next = self.peripheral.poll(now, &mut |part, reading| {
            if let Some(topic) = topic_of(DEVICE_TOPIC, name, part) {
                let _ = kernel.publish(&topic, reading);
            }
        });
        // One that wants to be polled at once has its turn after the machines.
        self.poll_at = next;
    }
}

fn topic_of(below: &str, name: &Name, part: &str) -> Option<Topic> {
    let dot = if part.is_empty() { "" } else { "." };
    alloc::format!("{below}.{name}{dot}{part}").parse().ok()
}

/// Why a peripheral wasn't taken into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachError {
    /// Its name is none.
    Name,
    /// There is one of that name.
    Twice,
    /// The device has as many as it can have.
    TooMany,
}

impl fmt::Display for AttachError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("a peripheral's name has the form of a machine's"),
            Self::Twice => f.write_str("there is a peripheral of that name"),
            Self::TooMany => write!(f, "a device has {PERIPHERALS_MAX} peripherals at most"),
        }
    }
}

impl core::error::Error for AttachError {}
