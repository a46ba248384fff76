//! What the agent asks the database, over its socket, and a primary, over the network.

use std::path::Path;
use std::time::Duration;

use tokio::time::timeout;
use tokio_postgres::{Config, NoTls, SimpleQueryMessage};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a promotion may take.
const PROMOTION: Duration = Duration::from_secs(30);

/// Why a question was not answered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SqlError {
    /// There was no answer in time.
    #[error("the database does not answer in time")]
    Late,
    /// The database answered with an error.
    #[error("the database refuses")]
    Refused(#[source] tokio_postgres::Error),
}

/// Where a database is, and how to get in.
#[derive(Debug, Clone)]
pub(super) struct Address(Config);

impl Address {
    /// The database behind a socket.
    pub(super) fn local(sockets: &Path, password: &str) -> Self {
        let mut config = Self::administrator(password);
        config.host_path(sockets);
        Self(config)
    }

    /// A database on another host.
    pub(super) fn remote(host: &str, port: u16, password: &str) -> Self {
        let mut config = Self::administrator(password);
        config.host(host).port(port);
        Self(config)
    }

    fn administrator(password: &str) -> Config {
        let mut config = Config::new();
        config.user("postgres").dbname("postgres");
        config
            .password(password)
            .application_name("agent")
            .connect_timeout(PATIENCE);
        config
    }

    /// The rows of a query, as text.
    ///
    /// # Errors
    /// When nobody answers in time, or the query fails.
    pub(super) async fn rows(&self, query: &str) -> Result<Vec<Vec<String>>, SqlError> {
        self.rows_within(PATIENCE, query).await
    }

    /// Makes a database that follows take writes.
    ///
    /// # Errors
    /// When it does not within half a minute.
    pub(super) async fn promote(&self) -> Result<(), SqlError> {
        let query = "SELECT pg_promote(true, 25)";
        self.rows_within(PROMOTION, query).await.map(drop)
    }

    async fn rows_within(
        &self,
        limit: Duration,
        query: &str,
    ) -> Result<Vec<Vec<String>>, SqlError> {
        let asked = timeout(limit, ask(&self.0, query)).await;
        asked
            .map_err(|_| SqlError::Late)?
            .map_err(SqlError::Refused)
    }
}

async fn ask(config: &Config, query: &str) -> Result<Vec<Vec<String>>, tokio_postgres::Error> {
    let (client, connection) = config.connect(NoTls).await?;
    let asked = async {
        let messages = client.simple_query(query).await?;
        let rows = messages.iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let cells = |row: &tokio_postgres::SimpleQueryRow| {
            (0..row.len())
                .map(|column| row.get(column).unwrap_or_default().to_owned())
                .collect()
        };
        Ok(rows.map(cells).collect())
    };
    // The connection has to be driven while the query runs, and may end when it is over.
    tokio::pin!(asked, connection);
    tokio::select! {
        biased;
        answer = &mut asked => answer,
        ended = &mut connection => match ended {
            Ok(()) => asked.await,
            Err(error) => Err(error),
        },
    }
}

/// A position in the log as a number: `16/B374D848` is 0x16B374D848 with 32 bits below the slash.
pub(super) fn position(text: &str) -> u64 {
    let parse = |text| u64::from_str_radix(text, 16).unwrap_or_default();
    text.split_once('/')
        .map_or(0, |(high, low)| parse(high) << 32 | parse(low))
}

/// A text between quotes, for a query.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_numbers_that_grow() {
        assert_eq!(position("16/B374D848"), 0x16_B374_D848);
        assert!(position("1/0") > position("0/FFFFFFFF"));
        assert_eq!(position(""), 0);
        assert_eq!(position("x/y"), 0);
    }
}
