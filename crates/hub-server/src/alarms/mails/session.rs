//! One mail in a session of SMTP, as `lettre` speaks it, over a connection that the caller's [`Dialer`] opened.
//!
//! Invariants:
//! - A session is bounded in time, and in what its server says.
//! - A server's bytes come one at a time: whatever somebody on the way puts behind the answer to `STARTTLS` meets TLS, and isn't
//!   taken for what the server says over it.
//! - A password goes over TLS, or to where the file's reader allowed none.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use lettre::Message;
use lettre::transport::smtp;
use lettre::transport::smtp::authentication::DEFAULT_MECHANISMS;
use lettre::transport::smtp::client::{
    AsyncSmtpConnection, AsyncTokioStream, Certificate, CertificateStore, TlsParameters,
};
use lettre::transport::smtp::extension::ClientId;
use rustls::ClientConfig;
use rustls::pki_types::{CertificateDer, ServerName};
use tenure_reach::Dialer;
use tenure_wire::printable::printable;
use tenure_wire::url::Host;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{Email, EmailCredentials, EmailSecurity};
use crate::alarms::queue::Refusal;
use crate::trust;

/// The most bytes that a server says in a session.
const SAID_BYTES_MAX: usize = 256 * 1024;
/// The longest that a server is waited for once it has the mail, which it has whatever it says then.
const FAREWELL: Duration = Duration::from_secs(1);
/// The most characters of a server's words that are noted.
const WORDS_CHARS_MAX: usize = 256;

/// Hands `mail` to the server of `email` by `until`. It blocks.
///
/// # Errors
/// The server isn't there, isn't trusted, doesn't want the mail, or takes too long.
pub(super) fn send(
    dialer: &Dialer,
    email: &Email,
    mail: &Message,
    until: Instant,
) -> Result<(), Refusal> {
    if until <= Instant::now() {
        return Err(Refusal::passing("other mails to this server took the time"));
    }
    let tcp = dialer.dial(&email.server, email.port, until);
    let tcp = tcp.map_err(|error| Refusal::passing(error.to_string()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| unable(&error))?;
    runtime.block_on(async {
        let left = until.saturating_duration_since(Instant::now());
        match timeout(left, hand_over(email, mail, tcp)).await {
            Ok(Ok(mut session)) => {
                // It counts as sent whatever comes of this.
                let _ = timeout(FAREWELL, session.quit()).await;
                Ok(())
            }
            Ok(Err(refusal)) => Err(refusal),
            Err(_) => Err(Refusal::passing("the server didn't take the mail in time")),
        }
    })
}

/// Hands `mail` over; returns the session, in which nothing is open.
async fn hand_over(
    email: &Email,
    mail: &Message,
    tcp: std::net::TcpStream,
) -> Result<AsyncSmtpConnection, Refusal> {
    let mut session = match begin(email, tcp).await {
        Ok(session) => session,
        Err(Trouble::System(error)) => return Err(unable(&error)),
        Err(Trouble::Tls(error)) => {
            let words = format!("TLS with the server failed: {error}");
            return Err(Refusal::passing(shortened(&words)));
        }
        // Also one that sends everybody away may do so for a while.
        Err(Trouble::Smtp(error)) => return Err(Refusal::passing(shortened(&error.to_string()))),
    };
    if let Some(EmailCredentials(credentials)) = &email.credentials
        && let Err(error) = session.auth(DEFAULT_MECHANISMS, credentials).await
    {
        // Without its words: a server could repeat the password.
        let words = match error.status() {
            Some(code) => format!("the server answered {code} to user and password"),
            None => "the server takes no user and password as they are sent here".into(),
        };
        return Err(Refusal::passing(words));
    }
    match session.send(mail.envelope(), &mail.formatted()).await {
        Ok(_) => Ok(session),
        // A client should not repeat what was refused for good (RFC 5321 §4.2.1).
        Err(error) => {
            let is_final = error.is_permanent();
            Err(Refusal { words: shortened(&error.to_string()), is_final })
        }
    }
}

/// Why there is no session.
enum Trouble {
    System(io::Error),
    Tls(String),
    Smtp(smtp::Error),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

impl From<smtp::Error> for Trouble {
    fn from(error: smtp::Error) -> Self {
        Self::Smtp(error)
    }
}

/// A session up to where mails may be handed over, over TLS if the receiver says so.
async fn begin(email: &Email, tcp: std::net::TcpStream) -> Result<AsyncSmtpConnection, Trouble> {
    let peer = tcp.peer_addr()?;
    // An address in the place of a name that may be nobody's (RFC 5321 §4.1.3).
    let hello = match tcp.local_addr()? {
        SocketAddr::V4(own) => ClientId::Ipv4(*own.ip()),
        SocketAddr::V6(own) => ClientId::Ipv6(*own.ip()),
    };
    tcp.set_nonblocking(true)?;
    let tcp = TcpStream::from_std(tcp)?;
    match email.security {
        EmailSecurity::Implicit => {
            let connector = TlsConnector::from(Arc::new(tls_config(email)?));
            let stream = connector.connect(server_name(&email.server)?, tcp).await;
            let stream = stream.map_err(|error| Trouble::Tls(error.to_string()))?;
            let stream = Box::new(Bounded::new(stream, peer));
            Ok(AsyncSmtpConnection::connect_with_transport(stream, &hello).await?)
        }
        EmailSecurity::StartTls => {
            let stream = Box::new(Bounded::new(tcp, peer));
            let mut session = AsyncSmtpConnection::connect_with_transport(stream, &hello).await?;
            session.starttls(tls_parameters(email)?, &hello).await?;
            Ok(session)
        }
        EmailSecurity::None => {
            let stream = Box::new(Bounded::new(tcp, peer));
            Ok(AsyncSmtpConnection::connect_with_transport(stream, &hello).await?)
        }
    }
}

/// The name by which a server's certificate is judged.
fn server_name(host: &Host) -> Result<ServerName<'static>, Trouble> {
    match host {
        Host::Address(address) => Ok(ServerName::from(*address)),
        Host::Name(name) => {
            let name = ServerName::try_from(name.clone());
            name.map_err(|error| Trouble::Tls(format!("{host:?} has no certificate: {error}")))
        }
    }
}

fn tls_config(email: &Email) -> Result<ClientConfig, Trouble> {
    let named = email.authorities.as_ref();
    let named = named.map(|ders| ders.iter().cloned().map(CertificateDer::from).collect());
    trust::client(trust::authorities(named)).map_err(|error| Trouble::Tls(error.to_string()))
}

/// The same for `lettre`, which begins TLS in the middle of a session.
fn tls_parameters(email: &Email) -> Result<TlsParameters, Trouble> {
    let server = match &email.server {
        Host::Name(name) => name.clone(),
        Host::Address(address) => address.to_string(),
    };
    let mut builder = TlsParameters::builder(server);
    if let Some(ders) = &email.authorities {
        builder = builder.certificate_store(CertificateStore::None);
        for der in ders {
            builder = builder.add_root_certificate(Certificate::from_der(der.clone())?);
        }
    }
    Ok(builder.build_rustls()?)
}

fn unable(error: &io::Error) -> Refusal {
    Refusal::passing(format!("the connection broke off: {error}"))
}

/// A server's words as they are noted.
fn shortened(words: &str) -> String {
    printable(&words.chars().take(WORDS_CHARS_MAX).collect::<String>())
}

/// A connection whose server says a bounded number of bytes.
#[derive(Debug)]
struct Bounded<S> {
    stream: S,
    peer: SocketAddr,
    left: usize,
}

impl<S> Bounded<S> {
    fn new(stream: S, peer: SocketAddr) -> Self {
        Self { stream, peer, left: SAID_BYTES_MAX }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let Some(left) = self.left.checked_sub(1) else {
            let words = format!("the server says over {SAID_BYTES_MAX} bytes");
            return Poll::Ready(Err(io::Error::other(words)));
        };
        let mut byte = [0];
        let mut one = ReadBuf::new(&mut byte);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut one))?;
        if !one.filled().is_empty() {
            into.put_slice(one.filled());
            self.left = left;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl<S> AsyncTokioStream for Bounded<S>
where
    S: AsyncRead + AsyncWrite + Send + Sync + Unpin + std::fmt::Debug,
{
    fn peer_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.peer)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    /// What one read gives.
    async fn read(stream: &mut Bounded<&[u8]>) -> io::Result<Vec<u8>> {
        let mut bytes = [0; 64];
        let mut into = ReadBuf::new(&mut bytes);
        poll_fn(|context| Pin::new(&mut *stream).poll_read(context, &mut into)).await?;
        Ok(into.filled().to_vec())
    }

    #[test]
    fn server_says_one_byte_at_a_time_and_no_more_than_the_bound() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let peer = SocketAddr::from(([127, 0, 0, 1], 25));
            let mut short = Bounded::new(&b"220 go\r\n"[..], peer);
            assert_eq!(read(&mut short).await.unwrap(), b"2");
            assert_eq!(read(&mut short).await.unwrap(), b"2");
            let endless = vec![b'2'; SAID_BYTES_MAX + 1];
            let mut endless = Bounded::new(endless.as_slice(), peer);
            for _ in 0..SAID_BYTES_MAX {
                assert_eq!(read(&mut endless).await.unwrap().len(), 1);
            }
            let error = read(&mut endless).await.unwrap_err().to_string();
            assert!(error.contains("over 262144 bytes"), "{error}");
        });
    }

    #[test]
    fn words_of_a_server_are_shortened_and_steer_no_terminal() {
        assert_eq!(shortened(&"a".repeat(1_000)).len(), WORDS_CHARS_MAX);
        assert_eq!(shortened("no\r\n\u{1b}[2J"), "no \u{FFFD}[2J");
    }
}
