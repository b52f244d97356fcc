//! A connection to a server of PostgreSQL that waits for each answer for so long and no longer: one that stands still, as a
//! computer that is frozen or cut off, keeps nobody up.
//!
//! The server's own limits (`statement_timeout`) end what takes too long there; the ones here end the waiting for it.

use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures_util::TryStreamExt as _;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Config, NoTls, Row, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::store::engine::Next;
use crate::store::sql::{Error, Value};

/// A connection; it ends when this is dropped.
pub(super) struct Client {
    // It runs the connection while an answer is waited for; between answers nothing runs.
    runtime: Runtime,
    client: tokio_postgres::Client,
    patience: Duration,
}

impl Client {
    /// A new connection, each answer of which may take as long as `patience`.
    ///
    /// # Errors
    /// The server isn't there within that time, or refuses.
    pub(super) fn connect(
        config: &Config,
        tls: Option<&MakeRustlsConnect>,
        patience: Duration,
    ) -> Result<Self, Error> {
        let built = Builder::new_current_thread().enable_all().build();
        let runtime = built.map_err(|error| Error::Away(format!("no runtime: {error}")))?;
        let client = runtime.block_on(within(patience, async {
            // The task ends with the connection, and that with its client.
            Ok(match tls {
                Some(tls) => {
                    let (client, connection) = config.connect(tls.clone()).await?;
                    drop(tokio::spawn(connection));
                    client
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    drop(tokio::spawn(connection));
                    client
                }
            })
        }))?;
        Ok(Self { runtime, client, patience })
    }

    /// From now on each answer may take as long as that.
    pub(super) fn wait_for(&mut self, patience: Duration) {
        self.patience = patience;
    }

    pub(super) fn batch_execute(&self, text: &str) -> Result<(), Error> {
        self.wait(self.client.batch_execute(text))
    }

    pub(super) fn prepare(&self, text: &str) -> Result<Statement, Error> {
        self.wait(self.client.prepare(text))
    }

    pub(super) fn execute(
        &self,
        statement: &Statement,
        values: &[Value<'_>],
    ) -> Result<u64, Error> {
        self.wait(self.client.execute_raw(statement, values.iter().copied()))
    }

    /// The only row of a statement that isn't kept.
    pub(super) fn query_one(
        &self,
        text: &str,
        values: &[&(dyn ToSql + Sync)],
    ) -> Result<Row, Error> {
        self.wait(self.client.query_one(text, values))
    }

    /// Shows `see` the rows of a statement until it has seen enough.
    pub(super) fn each(
        &self,
        statement: &Statement,
        values: &[Value<'_>],
        mut see: impl FnMut(&Row) -> Result<Next, Error>,
    ) -> Result<(), Error> {
        let mut rows = pin!(self.wait(self.client.query_raw(statement, values.iter().copied()))?);
        while let Some(row) = self.wait(rows.try_next())? {
            if see(&row)? == Next::Enough {
                break;
            }
        }
        Ok(())
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Whether the server answers within that time.
    pub(super) fn answers(&self, patience: Duration) -> bool {
        let asked = self.client.simple_query("");
        self.runtime.block_on(within(patience, asked)).is_ok()
    }

    fn wait<T>(
        &self,
        answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, Error> {
        self.runtime.block_on(within(self.patience, answer))
    }
}

async fn within<T>(
    patience: Duration,
    answer: impl Future<Output = Result<T, tokio_postgres::Error>>,
) -> Result<T, Error> {
    match timeout(patience, answer).await {
        Ok(answered) => Ok(answered?),
        Err(_) => Err(Error::Away(format!("it gave no answer within {} s", patience.as_secs()))),
    }
}
