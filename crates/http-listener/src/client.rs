//! A client's connection: how much waits for it in the system, and for how long.
//!
//! Invariant: a client that takes nothing holds a bounded memory, and holds it no longer than it is waited for.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// The bytes of a connection that wait in the system, in each direction; Linux keeps as many beside them for itself. By default
/// it keeps megabytes, which no budget of the process counts.
const WAITING_BYTES_MAX: usize = 64 * 1024;

/// A connection whose client takes what it is sent, or is let go.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    progress_timeout: Duration,
    /// When the client is let go, while it takes nothing.
    stuck: Option<Pin<Box<Sleep>>>,
}

impl Client {
    pub(crate) fn new(stream: TcpStream, progress_timeout: Duration) -> Self {
        // Without it an event that follows another waits for the acknowledgment of that.
        let _ = stream.set_nodelay(true);
        let socket = SockRef::from(&stream);
        // One whose buffers can't be bounded is served all the same.
        let _ = socket.set_send_buffer_size(WAITING_BYTES_MAX);
        let _ = socket.set_recv_buffer_size(WAITING_BYTES_MAX);
        Self { stream, progress_timeout, stuck: None }
    }

    /// Lets the client go if it has taken nothing for too long.
    fn judge<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stuck = None;
            return written;
        }
        let within = self.progress_timeout;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(sleep(within)));
        stuck.as_mut().poll(context).map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if self.stuck.is_some() {
            // What waits would be kept for minutes after the connection.
            let _ = SockRef::from(&self.stream).set_linger(Some(Duration::ZERO));
        }
    }
}

impl AsyncRead for Client {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Client {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.judge(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // C4-7: 244 MB of the system's memory for 60 clients that read nothing.
    #[test]
    fn what_waits_for_a_client_in_the_system_is_bounded() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let _peer = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (stream, _) = listener.accept().await.unwrap();
            let client = Client::new(stream, Duration::from_secs(1));
            let socket = SockRef::from(&client.stream);
            assert!(socket.send_buffer_size().unwrap() <= 2 * WAITING_BYTES_MAX);
            assert!(socket.recv_buffer_size().unwrap() <= 2 * WAITING_BYTES_MAX);
        });
    }
}
