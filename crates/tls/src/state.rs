//! The states of a handshake, and the one table of which messages each of them takes.

use crate::error::Misbehaviour;

/// A handshake message (RFC 8446 §B.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    ClientHello = 1,
    ServerHello = 2,
    NewSessionTicket = 4,
    EndOfEarlyData = 5,
    EncryptedExtensions = 8,
    Certificate = 11,
    CertificateRequest = 13,
    CertificateVerify = 15,
    Finished = 20,
    KeyUpdate = 24,
}

impl Message {
    pub(crate) const ALL: [Self; 10] = [
        Self::ClientHello,
        Self::ServerHello,
        Self::NewSessionTicket,
        Self::EndOfEarlyData,
        Self::EncryptedExtensions,
        Self::Certificate,
        Self::CertificateRequest,
        Self::CertificateVerify,
        Self::Finished,
        Self::KeyUpdate,
    ];
}

/// The message that a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    /// A client: its own first message isn't sent.
    Start,
    /// A client: `ServerHello` or `HelloRetryRequest`, which has the same type.
    ServerHello,
    /// A client: `EncryptedExtensions`.
    EncryptedExtensions,
    /// A client: the server may ask for a certificate before it shows its own.
    CertificateOrRequest,
    /// A client: the server's certificates.
    ServerCertificate,
    /// A client: the proof that the server has the certificate's key.
    ServerCertificateVerify,
    /// A client: the server's `Finished`.
    ServerFinished,
    /// A client after the handshake.
    ClientConnected,
    /// A server: the first message of all.
    ClientHello,
    /// A server: early data, up to the message that ends it.
    EndOfEarlyData,
    /// A server: the client's certificates.
    ClientCertificate,
    /// A server: the proof that the client has the certificate's key.
    ClientCertificateVerify,
    /// A server: the client's `Finished`.
    ClientFinished,
    /// A server after the handshake.
    ServerConnected,
}

/// Each state with the messages that are due in it (RFC 8446 §A).
pub(crate) const TABLE: [(State, &[Message]); 14] = [
    (State::Start, &[]),
    (State::ServerHello, &[Message::ServerHello]),
    (State::EncryptedExtensions, &[Message::EncryptedExtensions]),
    (State::CertificateOrRequest, &[Message::CertificateRequest, Message::Certificate]),
    (State::ServerCertificate, &[Message::Certificate]),
    (State::ServerCertificateVerify, &[Message::CertificateVerify]),
    (State::ServerFinished, &[Message::Finished]),
    (State::ClientConnected, &[Message::NewSessionTicket, Message::KeyUpdate]),
    (State::ClientHello, &[Message::ClientHello]),
    (State::EndOfEarlyData, &[Message::EndOfEarlyData]),
    (State::ClientCertificate, &[Message::Certificate]),
    (State::ClientCertificateVerify, &[Message::CertificateVerify]),
    (State::ClientFinished, &[Message::Finished]),
    (State::ServerConnected, &[Message::KeyUpdate]),
];

impl State {
    /// The message with `number`, if it is due.
    pub(crate) fn due(self, number: u8) -> Result<Message, Misbehaviour> {
        let message = Message::ALL.into_iter().find(|it| *it as u8 == number);
        let message = message.ok_or(Misbehaviour::Unexpected)?;
        let (_, due) =
            TABLE.iter().find(|(state, _)| *state == self).ok_or(Misbehaviour::Unexpected)?;
        if due.contains(&message) { Ok(message) } else { Err(Misbehaviour::Unexpected) }
    }

    pub(crate) fn is_connected(self) -> bool {
        matches!(self, Self::ClientConnected | Self::ServerConnected)
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "order_tests.rs"]
mod order_tests;

#[cfg(test)]
#[path = "message_tests.rs"]
mod message_tests;
