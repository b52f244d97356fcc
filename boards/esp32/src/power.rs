//! Why the chip started, its watchdog, and deep sleep.

use esp_hal::peripherals::{LPWR, RTC_TIMER};
use esp_hal::ram;
use esp_hal::rtc_cntl::sleep::{LowPower, RtcSleepConfig};
use esp_hal::rtc_cntl::{Rwdt, RwdtStage, SocResetReason};
use esp_hal::time::{Duration, Instant as ChipInstant};
use tenure_hal::{Instant, Power, ResetCause, Retained};

/// How long the loop may take for a turn.
pub(crate) const WATCHDOG: core::time::Duration = core::time::Duration::from_secs(8);
/// A sleep that is shorter can't be caught by the alarm.
const SLEEP_MICROSECONDS_MIN: u64 = 10_000;
const RETAINED_BYTES: usize = 256;

/// Lies in memory that is powered in deep sleep.
#[ram(unstable(rtc_fast, persistent))]
static mut RETAINED: [u8; RETAINED_BYTES] = [0; RETAINED_BYTES];

/// The chip's low-power domain.
pub(crate) struct Rtc {
    watchdog: Rwdt,
    low_power: LowPower<'static>,
    cause: ResetCause,
    /// The time from when power came until this start.
    started_at: core::time::Duration,
}

impl Rtc {
    /// Starts the watchdog. The peripherals can be had once, so that this is called once.
    pub(crate) fn new(timer: RTC_TIMER<'static>, low_power: LPWR<'static>) -> Self {
        let timer = esp_hal::rtc_cntl::Rtc::new(timer);
        let since_power = timer.time_since_power_up().as_micros();
        let since_reset = ChipInstant::now().duration_since_epoch().as_micros();
        let started_at = core::time::Duration::from_micros(since_power.saturating_sub(since_reset));
        let mut watchdog = timer.rwdt;
        watchdog.set_timeout(RwdtStage::Stage0, Duration::from_secs(WATCHDOG.as_secs()));
        watchdog.enable();
        let low_power = LowPower::new(low_power);
        Self { watchdog, low_power, cause: cause(), started_at }
    }

    /// The time from when power came until this start.
    pub(crate) fn started_at(&self) -> core::time::Duration {
        self.started_at
    }

    /// Retained memory, for the kernel's breadcrumb; called once.
    pub(crate) fn lend_retained(&self) -> RtcMemory {
        RtcMemory(&raw mut RETAINED)
    }
}

fn cause() -> ResetCause {
    use SocResetReason as Reason;
    match esp_hal::system::reset_reason() {
        Some(Reason::CoreDeepSleep) => ResetCause::Wake,
        Some(Reason::SysBrownOut) => ResetCause::BrownOut,
        Some(Reason::CoreSw | Reason::Cpu0Sw) => ResetCause::Software,
        Some(
            Reason::CoreMwdt0
            | Reason::CoreMwdt1
            | Reason::CoreRtcWdt
            | Reason::Cpu0Mwdt0
            | Reason::Cpu0Mwdt1
            | Reason::Cpu0RtcWdt
            | Reason::SysRtcWdt
            | Reason::SysSuperWdt,
        ) => ResetCause::Watchdog,
        // The flashing tool's reset and faults of the supply among them: nothing is known to be kept.
        _ => ResetCause::PowerOn,
    }
}

/// The memory that is powered in deep sleep.
pub(crate) struct RtcMemory(*mut [u8; RETAINED_BYTES]);

// SAFETY: memory like any other; one core.
unsafe impl Send for RtcMemory {}

impl Retained for RtcMemory {
    fn write(&mut self, bytes: &[u8]) {
        // Written byte by byte, because its reader comes after a reset, which no compiler sees.
        for (index, byte) in bytes.iter().take(RETAINED_BYTES).enumerate() {
            // SAFETY: `index` is below its length, and nobody holds a slice of it while a machine's turn
            // begins or ends.
            unsafe { self.0.cast::<u8>().add(index).write_volatile(*byte) };
        }
    }
}

impl Power for Rtc {
    fn reset_cause(&self) -> ResetCause {
        self.cause
    }

    fn retained(&mut self) -> &mut [u8] {
        let retained = &raw mut RETAINED;
        // SAFETY: an `RtcMemory` writes there only in a machine's turn, while nobody holds this.
        unsafe { &mut *retained }
    }

    fn feed_watchdog(&mut self) {
        self.watchdog.feed();
    }

    fn wakes_by_event(&self) -> bool {
        // The timer is the only source that this board wakes for.
        false
    }

    fn deep_sleep(&mut self, wake_at: Option<Instant>) {
        if let Some(at) = wake_at {
            let soonest = ChipInstant::now() + Duration::from_micros(SLEEP_MICROSECONDS_MIN);
            let started_at = Instant::BOOT + self.started_at;
            let since_reset = at.since(started_at).as_micros() as u64;
            let wanted = ChipInstant::EPOCH + Duration::from_micros(since_reset);
            self.low_power.set_wakeup_deadline(wanted.max(soonest));
            self.low_power.sleep_deep(RtcSleepConfig::deep());
        }
    }

    fn reset(&mut self) {
        esp_hal::system::software_reset()
    }
}
