//! Reservations, ranges and claims without a store.

use super::*;

fn addresses() -> Addresses {
    Addresses::new(ServiceNetwork::default())
}

#[test]
fn what_is_reserved_is_taken_until_the_write_fails_or_the_service_goes() {
    let (addresses, environment) = (addresses(), Environment::system());
    let mut failed = addresses.reservation();
    failed.address("10.96.0.7").expect("free");
    let mut other = addresses.reservation();
    assert_eq!(other.address("10.96.0.7"), Err(Refusal::Taken));
    for outside in ["10.0.0.7", "10.96.0.0", "10.96.255.255", "x"] {
        let refused = other.address(outside);
        assert_eq!(refused, Err(Refusal::OutOfRange), "{outside}");
    }
    assert_eq!(other.port(80), Err(Refusal::OutOfRange));
    drop(failed);
    other.address("10.96.0.7").expect("given back");
    let used = InUse {
        key: "default/a".to_owned(),
        address: number("10.96.0.7"),
        ports: BTreeSet::new(),
    };
    addresses.allocations.lock().store(&used);
    drop(other);
    let taken = addresses.reservation().address("10.96.0.7");
    assert_eq!(taken, Err(Refusal::Taken), "stored");
    addresses.allocations.lock().release(&used);
    let mut all = addresses.reservation();
    all.address("10.96.0.7").expect("the Service is gone");
    let ports: BTreeSet<u16> = std::iter::from_fn(|| all.any_port(&environment)).collect();
    assert_eq!(ports.len(), PORTS.count());
}

#[test]
fn further_ranges_are_used_when_the_own_one_is_full() {
    let network = "127.64.0.0/28".parse().expect("a range");
    let (addresses, environment) = (Addresses::new(network), Environment::system());
    let further = serde_json::json!({"spec": {"cidrs": ["127.65.0.0/29"]}});
    let further = Some(ServiceRange::read(&further));
    addresses.allocations.lock().ranges.put("more", further);
    let mut all = addresses.reservation();
    let given: Vec<String> = std::iter::from_fn(|| all.any_address(&environment)).collect();
    assert_eq!(given.len(), 14 + 6);
    assert!(given[..14].iter().all(|a| a.starts_with("127.64.0.")));
    assert!(given[14..].iter().all(|a| a.starts_with("127.65.0.")));
    assert_eq!(addresses.use_of("more"), RangeUse::Reserved);
    drop(all);
    assert_eq!(addresses.use_of("more"), RangeUse::Free);
}

#[test]
fn address_that_somebody_claims_is_not_given_out() {
    let addresses = addresses();
    let address = number("10.96.0.7").expect("an address");
    for (is_managed, expect) in [(false, Err(Refusal::Taken)), (true, Ok(()))] {
        let claim = AddressClaim {
            is_managed,
            parent: "default/a".to_owned(),
        };
        addresses.allocations.lock().claim(address, Some(&claim));
        assert_eq!(addresses.reservation().address("10.96.0.7"), expect);
    }
}

#[test]
fn what_was_not_written_before_a_stop_is_written_after_it() {
    let mut allocations = Allocations::new(ServiceNetwork::default());
    for (address, key) in [
        ("10.96.0.6", "a/fine"),
        ("10.96.0.7", "a/missing"),
        ("10.96.0.8", "a/other"),
        ("10.96.0.9", "a/foreign"),
    ] {
        allocations.store(&InUse {
            key: key.to_owned(),
            address: number(address),
            ports: BTreeSet::new(),
        });
    }
    let claims = [
        ("10.96.0.6", true, "a/fine"),
        ("10.96.0.8", true, "a/before"),
        ("10.96.0.9", false, ""),
        ("10.96.0.10", true, "a/gone"),
        ("10.96.0.11", false, "a/gone"),
    ];
    let claims = claims.map(|(address, is_managed, parent)| {
        let parent = parent.to_owned();
        let address = number(address).expect("an address");
        (address, AddressClaim { is_managed, parent })
    });
    let tasks = allocations.unfinished(&BTreeMap::from(claims));
    let expect = ["10.96.0.7", "10.96.0.8", "10.96.0.10"];
    assert_eq!(tasks, expect.map(|a| Task::IpAddress(a.to_owned())));
}
