//! What differs for an operator that runs in a pod: the address that it listens at, and an end without refused calls.

use std::time::Duration;

use kubewright_runtime::controller::Leadership;
use kubewright_runtime::manager::{Manager, Task};
use tokio::time::sleep;

/// The variables by which a pod that is a process of a machine is known: its runtime, and its address.
const RUNTIME: &str = "KUBEWRIGHT_RUNTIME";
const ADDRESS: &str = "POD_IP";
/// Set in every pod.
const API_SERVER: &str = "KUBERNETES_SERVICE_HOST";
/// How long webhooks of a pod are served after a signal. API servers learn within that time that the pod is leaving.
const DRAIN: Duration = Duration::from_secs(5);

/// The address to listen at. `:8443` means every address of the machine, unless pods share the machine's addresses, as pods of
/// `kubewright up --runtime process` do: there it means that port of the pod's own address.
pub(super) fn listen_address(address: &str) -> String {
    resolve(address, |name| std::env::var(name).ok())
}

fn resolve(address: &str, variable: impl Fn(&str) -> Option<String>) -> String {
    match (variable(RUNTIME), variable(ADDRESS)) {
        (Some(_), Some(pod)) if address.starts_with(':') => {
            let is_v6 = pod.contains(':');
            if is_v6 {
                format!("[{pod}]{address}")
            } else {
                pod + address
            }
        }
        _ => address.to_owned(),
    }
}

/// How long webhooks are served after a signal to stop: as long as the flag says, else for a while in a pod alone.
pub(super) fn drain(flag: Option<Duration>) -> Duration {
    let in_pod = || std::env::var_os(API_SERVER).is_some();
    flag.unwrap_or_else(|| if in_pod() { DRAIN } else { Duration::ZERO })
}

/// Has servers stop this much later than everything else: calls that are under way to a pod that leaves are answered.
pub(super) fn delay_servers(manager: Manager, time: Duration) -> Manager {
    if time.is_zero() {
        return manager;
    }
    // Servers are stopped once all such tasks have ended.
    let task = Task::new("drain of webhooks", move |stop| async move {
        stop.cancelled().await;
        sleep(time).await;
        Ok(())
    });
    manager.runnable(task.leadership(Leadership::NotNeeded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_that_share_addresses_listen_at_their_own() {
        let check = |address: &str, variables: &[(&str, &str)], expected: &str| {
            let found = resolve(address, |name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            });
            assert_eq!(found, expected);
        };
        let process = [(RUNTIME, "a"), (ADDRESS, "127.65.0.2")];
        check(":8443", &process, "127.65.0.2:8443");
        check("0.0.0.0:8443", &process, "0.0.0.0:8443");
        check("0", &process, "0");
        check(":1", &[(RUNTIME, "a"), (ADDRESS, "::1")], "[::1]:1");
        // Elsewhere pods have a network of their own, whatever their variables are called.
        check(":8443", &[(ADDRESS, "10.0.0.2")], ":8443");
        check(":8443", &[(RUNTIME, "a")], ":8443");
    }
}
