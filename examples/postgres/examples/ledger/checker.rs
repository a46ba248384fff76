//! A ledger of transfers, and somebody who tries to write to every member all the time.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_postgres::{Client, Config, NoTls};

use crate::members::Members;

/// The cluster with the ledger.
pub(crate) const CLUSTER: &str = "ledger";
/// How many accounts there are, with 100 on each at the beginning.
const ACCOUNTS: i64 = 20;
/// How many clients transfer at once.
const CLIENTS: i64 = 4;
/// How long a client waits for an answer before it looks for another primary.
const PATIENCE: Duration = Duration::from_secs(3);

/// What was acknowledged.
#[derive(Default)]
struct Seen {
    transfers: BTreeSet<i64>,
    next: i64,
    /// The timelines of acknowledged writes of the checker, in the order in which they were acknowledged.
    timelines: Vec<(String, u32)>,
}

/// The ledger, as its clients know it.
pub(crate) struct Ledger {
    members: Members,
    seen: Mutex<Seen>,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Sums {
    acknowledged: usize,
    lost: usize,
    sum: i64,
    probes: usize,
    /// Writes that an older primary acknowledged after a newer one had.
    split: usize,
    timelines: usize,
}

impl Sums {
    /// Whether nothing is lost or doubled, and there was one primary at a time.
    pub(crate) fn is_sound(&self) -> bool {
        self.lost == 0 && self.split == 0 && self.sum == ACCOUNTS * 100 && self.acknowledged > 0
    }
}

impl fmt::Display for Sums {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "transfers acknowledged: {}, lost: {}",
            self.acknowledged, self.lost
        )?;
        writeln!(f, "sum of all accounts: {} of {}", self.sum, ACCOUNTS * 100)?;
        write!(
            f,
            "writes tried on every member: {} acknowledged on {} timelines, {} by two primaries at once",
            self.probes, self.timelines, self.split
        )
    }
}

async fn connect(address: &str, password: &str) -> Result<Client> {
    let mut config = Config::new();
    config
        .host(address)
        .port(5432)
        .user("postgres")
        .dbname("postgres");
    config.password(password).connect_timeout(PATIENCE);
    let (client, connection) = timeout(PATIENCE, config.connect(NoTls)).await??;
    // Ends with the client.
    tokio::spawn(connection);
    Ok(client)
}

impl Ledger {
    /// Makes the tables.
    pub(crate) async fn open(members: Members) -> Result<Self> {
        let ledger = Self {
            members,
            seen: Mutex::default(),
        };
        let client = ledger.primary(CLUSTER).await;
        let client = client.context("there is no primary")?;
        let tables = format!(
            "CREATE TABLE accounts (id bigint PRIMARY KEY, amount bigint NOT NULL);
             CREATE TABLE transfers (id bigint PRIMARY KEY);
             CREATE TABLE probes (id bigserial PRIMARY KEY, member text NOT NULL);
             INSERT INTO accounts SELECT id, 100 FROM generate_series(0, {ACCOUNTS} - 1) id;"
        );
        timeout(PATIENCE * 10, client.batch_execute(&tables)).await??;
        Ok(ledger)
    }

    /// A connection to a member of a cluster.
    async fn connect(&self, cluster: &str, address: &str) -> Result<Client> {
        let password = self.members.password(cluster).await?;
        connect(address, &password).await
    }

    /// A connection to whoever takes writes in a cluster.
    async fn primary(&self, cluster: &str) -> Option<Client> {
        for (_, address) in self.members.addresses(cluster) {
            let Ok(client) = self.connect(cluster, &address).await else {
                continue;
            };
            let asked = timeout(
                PATIENCE,
                client.query_one("SELECT pg_is_in_recovery()", &[]),
            )
            .await;
            if asked.is_ok_and(|row| row.is_ok_and(|row| !row.get::<_, bool>(0))) {
                return Some(client);
            }
        }
        None
    }

    /// Transfers and probes until it is aborted.
    pub(crate) fn work(self: Arc<Self>) -> JoinHandle<()> {
        tokio::spawn(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for client in 0..CLIENTS {
                let ledger = self.clone();
                tasks.spawn(async move { ledger.transfer(client).await });
            }
            for member in 0..3 {
                let ledger = self.clone();
                tasks.spawn(async move { ledger.probe(member).await });
            }
            while tasks.join_next().await.is_some() {}
        })
    }

    async fn transfer(&self, client: i64) {
        loop {
            let Some(mut connection) = self.primary(CLUSTER).await else {
                sleep(Duration::from_millis(100)).await;
                continue;
            };
            loop {
                let id = {
                    let mut seen = self.seen.lock();
                    seen.next += 1;
                    seen.next
                };
                let done = timeout(PATIENCE, one(&mut connection, id, client)).await;
                if !done.is_ok_and(|done| done.is_ok()) {
                    break;
                }
                self.seen.lock().transfers.insert(id);
                sleep(Duration::from_millis(5)).await;
            }
        }
    }

    /// Tries to write to one member all the time.
    async fn probe(&self, member: usize) {
        loop {
            sleep(Duration::from_millis(50)).await;
            let address = self.members.addresses(CLUSTER).into_iter().nth(member);
            let Some((name, address)) = address else {
                continue;
            };
            let Ok(client) = self.connect(CLUSTER, &address).await else {
                continue;
            };
            loop {
                let write = "INSERT INTO probes (member) VALUES ($1)
                             RETURNING substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8)";
                let done = timeout(PATIENCE, client.query_one(write, &[&name])).await;
                let Ok(Ok(row)) = done else {
                    break;
                };
                let timeline: String = row.get(0);
                let timeline = u32::from_str_radix(&timeline, 16).unwrap_or_default();
                self.seen.lock().timelines.push((name.clone(), timeline));
                sleep(Duration::from_millis(10)).await;
            }
        }
    }

    /// How many transfers were acknowledged.
    pub(crate) fn acknowledged(&self) -> usize {
        self.seen.lock().transfers.len()
    }

    /// Waits until more than so many are.
    pub(crate) async fn more_than(&self, count: usize) {
        while self.acknowledged() <= count {
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// What each member has as a setting, and since when it runs; members that do not answer are not in it.
    pub(crate) async fn setting(&self, name: &str) -> BTreeMap<String, (String, String)> {
        let mut found = BTreeMap::new();
        for (member, address) in self.members.addresses(CLUSTER) {
            let Ok(client) = self.connect(CLUSTER, &address).await else {
                continue;
            };
            let query = "SELECT current_setting($1), pg_postmaster_start_time()::text";
            let asked = timeout(PATIENCE, client.query_one(query, &[&name])).await;
            if let Ok(Ok(row)) = asked {
                found.insert(member, (row.get(0), row.get(1)));
            }
        }
        found
    }

    /// Loses everything, as people do.
    pub(crate) async fn wipe(&self) -> Result<()> {
        let client = self.primary(CLUSTER).await;
        let client = client.context("there is no primary")?;
        let wipe = "DELETE FROM transfers; UPDATE accounts SET amount = 0";
        client.batch_execute(wipe).await?;
        Ok(())
    }

    /// Compares what was acknowledged with what is there in a cluster.
    pub(crate) async fn check(&self, cluster: &str) -> Result<Sums> {
        let client = self.primary(cluster).await;
        let client = client.context("there is no primary")?;
        let rows = client.query("SELECT id FROM transfers", &[]).await?;
        let there: BTreeSet<i64> = rows.iter().map(|row| row.get(0)).collect();
        let row = client
            .query_one("SELECT sum(amount)::bigint FROM accounts", &[])
            .await?;
        let seen = self.seen.lock();
        let mut newest = 0;
        let mut split = 0;
        let mut members = BTreeSet::new();
        for (member, timeline) in &seen.timelines {
            split += usize::from(*timeline < newest);
            newest = newest.max(*timeline);
            members.insert((*timeline, member.clone()));
        }
        let timelines: BTreeSet<u32> = members.iter().map(|(timeline, _)| *timeline).collect();
        // Two members on one timeline would be two primaries of one term.
        split += members.len() - timelines.len();
        Ok(Sums {
            acknowledged: seen.transfers.len(),
            lost: seen.transfers.difference(&there).count(),
            sum: row.get(0),
            probes: seen.timelines.len(),
            split,
            timelines: timelines.len(),
        })
    }
}

/// One transfer, with its number in the same transaction.
async fn one(connection: &mut Client, id: i64, client: i64) -> Result<(), tokio_postgres::Error> {
    let from = (id * 7 + client) % ACCOUNTS;
    let to = (id * 13 + client + 1) % ACCOUNTS;
    let (first, second) = (from.min(to), from.max(to));
    let transaction = connection.transaction().await?;
    let lock = "SELECT id FROM accounts WHERE id IN ($1, $2) ORDER BY id FOR UPDATE";
    transaction.query(lock, &[&first, &second]).await?;
    let change = "UPDATE accounts SET amount = amount + $2 WHERE id = $1";
    transaction.execute(change, &[&from, &-1i64]).await?;
    transaction.execute(change, &[&to, &1i64]).await?;
    transaction
        .execute("INSERT INTO transfers (id) VALUES ($1)", &[&id])
        .await?;
    transaction.commit().await
}
