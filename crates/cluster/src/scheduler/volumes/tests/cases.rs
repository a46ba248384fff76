//! The tables of `volumebinding/binder_test.go: TestFindPodVolumesWithoutProvisioning, TestFindPodVolumesWithProvisioning`.
//!
//! Of that file's other tables, TestFindPodVolumesWithCSIMigration is about volumes of plugins that are gone, TestCapacity about
//! CSIStorageCapacity, which is not looked at, and TestAssumePodVolumes, TestRevertAssumedPodVolumes, TestBindAPIUpdate,
//! TestCheckBindings and TestBindPodVolumes about a cache of what is under way and a thread that waits for it: a pod whose
//! volumes are on their way is looked at again here when they come.

use super::*;

/// The claims of the table: name, size, class, volume and annotations.
const CLAIMS: [(&str, &str, &str, &str, &[&str]); 10] = [
    ("unbound", "1G", "wait", "", &[]),
    ("unbound2", "5G", "wait", "", &[]),
    ("prebound", "1G", "wait", "a", &[]),
    ("bound", "1G", "wait", "pv-bound", &[BIND_COMPLETED]),
    ("immediate", "1G", "immediate", "", &[]),
    (
        "immediate-bound",
        "1G",
        "immediate",
        "pv-immediate",
        &[BIND_COMPLETED],
    ),
    ("provisioned", "1Gi", "provisioner", "", &[]),
    ("selected", "1Gi", "provisioner", "", &[SELECTED_NODE]),
    ("no-provisioner", "1Gi", "wait", "", &[]),
    ("topology", "1Gi", "topology", "", &[]),
];

/// The volumes of the table: name, node, size, class and the claim that has it.
const VOLUMES: [(&str, &str, &str, &str, &str); 6] = [
    ("a", "node1", "5G", "wait", ""),
    ("b", "node1", "10G", "wait", ""),
    ("node2", "node2", "1G", "wait", ""),
    ("a-bound", "node1", "5G", "wait", "unbound"),
    ("pv-bound", "node1", "1G", "wait", "bound"),
    (
        "pv-immediate",
        "node1",
        "1G",
        "immediate",
        "immediate-bound",
    ),
];

fn table(volumes: &[&str]) -> Shelf {
    let mut shelf = Shelf::default();
    for (name, size, class, volume, annotations) in CLAIMS {
        let annotations: BTreeMap<_, _> = annotations.iter().map(|name| (*name, "node1")).collect();
        let metadata = json!({"annotations": annotations, "uid": name});
        let volume = Some(volume).filter(|name| !name.is_empty());
        let spec = json!({"storageClassName": class, "volumeName": volume,
            "resources": {"requests": {"storage": size}}});
        shelf.put_claim(name, metadata, spec, "Pending");
    }
    for name in volumes {
        // The volume of the wrong node is the same one elsewhere.
        let (name, elsewhere) = name.split_once('@').unwrap_or((name, ""));
        let known = VOLUMES.iter().find(|(known, ..)| *known == name);
        let (name, node, size, class, claim) = known.expect("a volume of the table");
        let node = if elsewhere.is_empty() {
            node
        } else {
            elsewhere
        };
        let terms =
            json!([{"matchExpressions": [{"key": "nodeKey", "operator": "In", "values": [node]}]}]);
        let claim = Some(claim).filter(|name| !name.is_empty());
        let claim = claim.map(|name| json!({"namespace": "d", "name": name, "uid": name}));
        let volume = json!({"metadata": {"name": name}, "status": {"phase": "Available"}, "spec": {
            "capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": class,
            "claimRef": claim, "nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}});
        let volume = serde_json::from_value(volume).expect("a volume");
        shelf.volumes.insert((*name).to_owned(), Arc::new(volume));
    }
    put_classes(&mut shelf);
    shelf
}

fn put_classes(shelf: &mut Shelf) {
    let on = |values: &[&str]| json!([{"matchLabelExpressions": [{"key": "nodeKey", "values": values}]}]);
    let by = "test-provisioner";
    for (name, provisioner, mode, topologies) in [
        ("wait", NO_PROVISIONER, "WaitForFirstConsumer", Value::Null),
        ("immediate", by, "Immediate", Value::Null),
        (
            "provisioner",
            by,
            "WaitForFirstConsumer",
            on(&["node1", "reference-value"]),
        ),
        (
            "topology",
            by,
            "WaitForFirstConsumer",
            on(&["reference-value"]),
        ),
    ] {
        let class = json!({"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode,
            "allowedTopologies": topologies});
        let class = serde_json::from_value(class).expect("a class");
        shelf.classes.insert(name.to_owned(), Arc::new(class));
    }
}

/// What the claims of a pod get on node1, or why they get nothing.
fn outcome(shelf: &Shelf, claims: &[Claim]) -> String {
    let volumes = match assess(claims, shelf) {
        Ok(volumes) => volumes,
        Err(Unusable::NoVolume) => return "no volume".to_owned(),
        Err(_) => return "refused".to_owned(),
    };
    let mut board = Board::default();
    let labels = json!({"metadata": {"labels": {"nodeKey": "node1"}}});
    board.put_node(&crate::scheduler::tests::node("node1", labels));
    let place = board.node("node1").expect("the node");
    if !volumes.are_usable_on(place) {
        return "node conflict".to_owned();
    }
    let Some(choices) = volumes.choose(place) else {
        return "bind conflict".to_owned();
    };
    let shown = choices.iter().map(|choice| {
        let volume = choice.volume.as_ref();
        let name = volume.and_then(|volume| volume.metadata.name.as_deref());
        format!("{}={}", choice.claim.name(), name.unwrap_or("new"))
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// `volumebinding/binder.go: GetPodVolumeClaims, FindPodVolumes`.
#[test]
fn claims_get_on_a_node_what_the_real_scheduler_gives_them() {
    let cases: [(&str, &[&str], &[&str], &str); 27] = [
        ("no-pvcs", &[], &[], ""),
        ("pvc-not-found", &["none"], &[], "refused"),
        ("bound-pvc", &["bound"], &["pv-bound"], ""),
        ("bound-pvc,pv-not-exists", &["bound"], &[], "no volume"),
        ("prebound-pvc", &["prebound"], &["a-bound"], "refused"),
        (
            "unbound-pvc,pv-same-node",
            &["unbound"],
            &["node2", "a", "b"],
            "unbound=a",
        ),
        (
            "unbound-pvc,pv-different-node",
            &["unbound"],
            &["node2"],
            "bind conflict",
        ),
        (
            "two-unbound-pvcs",
            &["unbound", "unbound2"],
            &["a", "b"],
            "unbound=a unbound2=b",
        ),
        (
            "two-unbound-pvcs,order-by-size",
            &["unbound2", "unbound"],
            &["a", "b"],
            "unbound=a unbound2=b",
        ),
        (
            "two-unbound-pvcs,partial-match",
            &["unbound", "unbound2"],
            &["a"],
            "bind conflict",
        ),
        (
            "one-bound,one-unbound",
            &["unbound", "bound"],
            &["pv-bound", "a"],
            "unbound=a",
        ),
        (
            "one-bound,one-unbound,no-match",
            &["unbound", "bound"],
            &["pv-bound", "node2"],
            "bind conflict",
        ),
        (
            "one-prebound,one-unbound",
            &["unbound", "prebound"],
            &["a", "b"],
            "refused",
        ),
        (
            "immediate-bound-pvc",
            &["immediate-bound"],
            &["pv-immediate"],
            "",
        ),
        (
            "immediate-bound-pvc-wrong-node",
            &["immediate-bound"],
            &["pv-immediate@node2"],
            "node conflict",
        ),
        ("immediate-unbound-pvc", &["immediate"], &[], "refused"),
        (
            "immediate-unbound-pvc,delayed-mode-bound",
            &["immediate", "bound"],
            &["pv-bound"],
            "refused",
        ),
        (
            "immediate-unbound-pvc,delayed-mode-unbound",
            &["immediate", "unbound"],
            &[],
            "refused",
        ),
        ("one-provisioned", &["provisioned"], &[], "provisioned=new"),
        (
            "two-unbound-pvcs,one-matched,one-provisioned",
            &["unbound", "provisioned"],
            &["a"],
            "unbound=a provisioned=new",
        ),
        (
            "one-bound,one-provisioned",
            &["bound", "provisioned"],
            &["pv-bound"],
            "provisioned=new",
        ),
        (
            "one-binding,one-selected-node",
            &["bound", "selected"],
            &["pv-bound"],
            "selected=new",
        ),
        (
            "immediate-unbound-pvc, once more",
            &["immediate"],
            &[],
            "refused",
        ),
        (
            "one-immediate-bound,one-provisioned",
            &["immediate-bound", "provisioned"],
            &["pv-immediate"],
            "provisioned=new",
        ),
        (
            "invalid-provisioner",
            &["no-provisioner"],
            &[],
            "bind conflict",
        ),
        (
            "volume-topology-unsatisfied",
            &["topology"],
            &[],
            "bind conflict",
        ),
        (
            "own: a volume that is on its way is not taken for another",
            &["selected"],
            &["a"],
            "selected=new",
        ),
    ];
    for (name, claims, volumes, expected) in cases {
        let claim = |name: &&str| Claim {
            key: Key::new("d", name),
            origin: Origin::Named,
        };
        let claims: Vec<_> = claims.iter().map(claim).collect();
        assert_eq!(outcome(&table(volumes), &claims), expected, "{name}");
    }
}

/// `volumebinding/binder.go: FindPodVolumes`: what is being made for one node is of no use on another.
#[test]
fn a_claim_whose_node_is_selected_goes_nowhere_else() {
    let mut shelf = table(&[]);
    let metadata = json!({"annotations": {SELECTED_NODE: "node2"}});
    let spec = json!({"storageClassName": "provisioner"});
    shelf.put_claim("selected", metadata, spec, "Pending");
    let claim = Claim {
        key: Key::new("d", "selected"),
        origin: Origin::Named,
    };
    assert_eq!(outcome(&shelf, &[claim]), "bind conflict");
}

/// The cases generic-ephemeral of TestFindPodVolumesWithoutProvisioning.
#[test]
fn the_claim_of_an_ephemeral_volume_has_to_be_the_pods_own() {
    let mut shelf = table(&["pv-bound"]);
    let claim = Claim {
        key: Key::new("d", "pod-v"),
        origin: Origin::Ephemeral {
            pod: Some("pod-uid".to_owned()),
        },
    };
    let one = std::slice::from_ref(&claim);
    assert_eq!(outcome(&shelf, one), "refused", "generic-ephemeral,no-pvc");
    for (owner, expected) in [("pod-uid", ""), ("other", "refused")] {
        let owner = json!([{"apiVersion": "v1", "kind": "Pod", "name": "pod", "uid": owner, "controller": true}]);
        let metadata = json!({"annotations": {BIND_COMPLETED: "yes"}, "ownerReferences": owner});
        let spec = json!({"volumeName": "pv-bound", "storageClassName": "wait"});
        shelf.put_claim("pod-v", metadata, spec, "Bound");
        assert_eq!(outcome(&shelf, one), expected, "generic-ephemeral");
    }
}
