//! The network of a cluster on this machine, the same one at every start with the same data directory.

use std::fs;
use std::io;
use std::path::Path;
use std::str::FromStr;

use anyhow::Context as _;
use kubewright_proxy::{ClaimError, Ipv4Range, LoopbackNetwork};
use tokio::time::{Duration, Instant, sleep};

/// The file in a data directory that has the range of the cluster's network.
const FILE: &str = "network";

/// Where pods and Services have their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NetworkMode {
    /// Nowhere: their addresses are made up.
    None,
    /// In a network of the loopback device that nobody else has.
    Loopback,
    /// In this network of the loopback device.
    Range(Ipv4Range),
}

impl FromStr for NetworkMode {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "none" => Ok(Self::None),
            "loopback" => Ok(Self::Loopback),
            range => range
                .parse()
                .map(Self::Range)
                .map_err(|error| format!("{error}; it is none, loopback, or a /14 of 127.0.0.0/8")),
        }
    }
}

/// How long a network is waited for that a cluster had before: the kernel gives it up some time after the process that held it
/// was killed.
const PATIENCE: Duration = Duration::from_secs(5);
const STEP: Duration = Duration::from_millis(50);

/// Claims the network that was asked for; that of the data directory, if its cluster has been in one.
///
/// # Errors
/// When another cluster has the network and keeps it, or the data directory was made with another one.
pub(crate) async fn claim(
    mode: NetworkMode,
    data_dir: Option<&Path>,
) -> anyhow::Result<Option<LoopbackNetwork>> {
    let kept = data_dir.map(read).transpose()?.flatten();
    let network = match (mode, kept) {
        (NetworkMode::None, None) => return Ok(None),
        (NetworkMode::None, Some(kept)) => {
            anyhow::bail!(
                "the cluster of this data directory is in the network {kept}: start it with --network loopback"
            )
        }
        (NetworkMode::Range(range), Some(kept)) if range != kept => {
            anyhow::bail!(
                "the cluster of this data directory is in the network {kept}, not in {range}"
            )
        }
        (_, Some(range)) | (NetworkMode::Range(range), None) => claim_range(range).await?,
        (NetworkMode::Loopback, None) => LoopbackNetwork::claim()?,
    };
    if let (Some(directory), None) = (data_dir, kept) {
        write(directory, network.range())?;
    }
    Ok(Some(network))
}

async fn claim_range(range: Ipv4Range) -> Result<LoopbackNetwork, ClaimError> {
    let end = Instant::now() + PATIENCE;
    loop {
        match LoopbackNetwork::claim_range(range) {
            Err(ClaimError::Taken { .. }) if Instant::now() < end => sleep(STEP).await,
            claimed => return claimed,
        }
    }
}

fn read(directory: &Path) -> anyhow::Result<Option<Ipv4Range>> {
    let path = directory.join(FILE);
    match fs::read_to_string(&path) {
        Ok(text) => {
            let range = text.trim().parse();
            range
                .map(Some)
                .with_context(|| format!("{} cannot be used", path.display()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", path.display())),
    }
}

fn write(directory: &Path, range: Ipv4Range) -> anyhow::Result<()> {
    // A directory with objects and without this file has cluster IPs of another range.
    if directory.join("objects").exists() {
        anyhow::bail!(
            "the cluster in {} was made without a network: its Services have addresses that do not work on this machine",
            directory.display()
        );
    }
    let path = directory.join(FILE);
    let written =
        fs::create_dir_all(directory).and_then(|()| fs::write(&path, format!("{range}\n")));
    written.with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_data_directory_keeps_its_network() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("data");
        let claim = async |mode| claim(mode, Some(&path)).await;
        let first = claim(NetworkMode::Loopback).await.expect("claimed");
        let first = first.expect("a network").range();
        let again = claim(NetworkMode::Loopback).await.expect("claimed again");
        let again = again.expect("a network");
        assert_eq!(again.range(), first);
        let taken = claim(NetworkMode::Loopback).await;
        let taken = taken.expect_err("it is in use");
        assert!(taken.to_string().contains(&first.to_string()), "{taken}");
        drop(again);
        assert!(claim(NetworkMode::None).await.is_err());
        let other = "127.8.0.0/14".parse().expect("a range");
        assert!(claim(NetworkMode::Range(other)).await.is_err());
        assert!(claim(NetworkMode::Range(first)).await.is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn network_that_is_given_up_in_time_is_claimed() {
        let held = LoopbackNetwork::claim().expect("a network");
        let range = held.range();
        let (claimed, ()) = tokio::join!(claim_range(range), async {
            sleep(STEP * 3).await;
            drop(held);
        });
        assert_eq!(claimed.expect("it is claimed").range(), range);
    }

    #[tokio::test]
    async fn a_cluster_without_a_network_does_not_get_one() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::create_dir(directory.path().join("objects")).expect("a directory");
        let claim = async |mode| claim(mode, Some(directory.path())).await;
        let before = claim(NetworkMode::None).await;
        assert!(before.expect("as it was").is_none());
        assert!(claim(NetworkMode::Loopback).await.is_err());
        let after = claim(NetworkMode::None).await;
        assert!(after.expect("as it was").is_none());
    }

    #[test]
    fn modes_are_read() {
        assert_eq!("none".parse(), Ok(NetworkMode::None));
        assert_eq!("loopback".parse(), Ok(NetworkMode::Loopback));
        let range = "127.64.0.0/14".parse().expect("a range");
        assert_eq!("127.64.0.0/14".parse(), Ok(NetworkMode::Range(range)));
        assert!("bridge".parse::<NetworkMode>().is_err());
    }
}
