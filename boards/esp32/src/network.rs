//! The network card: the chip's Wi-Fi as a station, as smoltcp wants a device, and who keeps it
//! connected.

use alloc::boxed::Box;
use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use esp_hal::peripherals::WIFI;
use esp_hal::time::{Duration, Instant as ChipInstant};
use esp_radio::wifi::sta::StationConfig;
use esp_radio::wifi::{
    AuthenticationMethodConfig, Config, ControllerConfig, Interface, WifiController, WifiRxToken,
    WifiTxToken,
};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;
use tenure_board_common::Settings;

/// The longest frame, without its header the radio's MTU of 1492 bytes.
const FRAME_BYTES: usize = 1492;
/// How long it waits before it tries again to find its network.
const RETRY: Duration = Duration::from_secs(5);

/// The radio, and its connection.
pub(crate) struct Wifi {
    keeper: Pin<Box<dyn Future<Output = ()>>>,
}

impl Wifi {
    /// Turns the radio on; `None` if it fails, or the settings name no network that can be.
    pub(crate) fn new(device: WIFI<'static>, settings: &Settings) -> Option<Self> {
        let mut station =
            StationConfig::default().with_ssid(settings.wifi.as_deref()?.try_into().ok()?);
        station = station.with_authentication(match settings.password.as_deref() {
            Some(password) => AuthenticationMethodConfig::Wpa2Personal(password.try_into().ok()?),
            None => AuthenticationMethodConfig::Open,
        });
        let config = ControllerConfig::default().with_initial_config(Config::Station(station));
        let controller = WifiController::new(device, config).ok()?;
        Some(Self { keeper: Box::pin(keep_connected(controller)) })
    }

    /// The card.
    pub(crate) fn card(&mut self) -> WifiCard {
        WifiCard(Interface::station())
    }

    /// Goes on connecting, if it isn't.
    pub(crate) fn poll(&mut self) {
        // Polled at every turn, so nobody needs waking; it never ends.
        let _ = self.keeper.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    }
}

async fn keep_connected(mut controller: WifiController<'static>) {
    loop {
        if controller.connect_async().await.is_ok() {
            // Whether this says why it ended or fails: the next step is the same.
            let _ = controller.wait_for_disconnect_async().await;
        }
        let again = ChipInstant::now() + RETRY;
        let is_over = |_: &mut Context<'_>| match ChipInstant::now() < again {
            true => Poll::Pending,
            false => Poll::Ready(()),
        };
        poll_fn(is_over).await;
    }
}

/// The station's end of the radio.
pub(crate) struct WifiCard(Interface);

impl WifiCard {
    pub(crate) fn hardware_address(&self) -> [u8; 6] {
        self.0.mac_address()
    }
}

/// A frame that has arrived.
pub(crate) struct Arrived(WifiRxToken);

impl RxToken for Arrived {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, take: F) -> R {
        self.0.consume_token(|frame| take(frame))
    }
}

/// Room for a frame that leaves.
pub(crate) struct Leaves(WifiTxToken);

impl TxToken for Leaves {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, fill: F) -> R {
        self.0.consume_token(length, fill)
    }
}

impl Device for WifiCard {
    type RxToken<'a> = Arrived;
    type TxToken<'a> = Leaves;

    fn receive(&mut self, _: Instant) -> Option<(Arrived, Leaves)> {
        let (arrived, leaves) = self.0.receive()?;
        Some((Arrived(arrived), Leaves(leaves)))
    }

    fn transmit(&mut self, _: Instant) -> Option<Leaves> {
        self.0.transmit().map(Leaves)
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME_BYTES;
        capabilities
    }
}
