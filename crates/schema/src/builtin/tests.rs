use super::*;

fn structure(name: &str) -> &'static Struct {
    let table = Table::builtin();
    let id = table.named(name).expect(name);
    match &table.get(id).shape {
        Shape::Struct(s) => s,
        other => panic!("{name} is {other:?}"),
    }
}

fn field(name: &str, field: &str) -> &'static Field {
    structure(name).field(field).expect(field)
}

fn names(s: &Struct) -> Vec<&str> {
    s.fields().iter().map(|f| &*f.name).collect()
}

#[test]
fn table_matches_its_own_checksum() {
    let (head, rest) = TEXT.split_once("# checksum: ").expect("a checksum line");
    assert!(head.lines().all(|line| line.starts_with("# ")));
    let (expected, body) = rest.split_once('\n').expect("a body");
    let found = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    assert_eq!(
        format!("{found:016x}"),
        expected,
        "the table was edited by hand; run `cargo xtask schema`"
    );
}

#[test]
fn every_kind_is_found_by_its_group_and_version() {
    let table = Table::builtin();
    let deployment = table.kind("apps", "v1", "Deployment");
    assert_eq!(deployment, table.named("io.k8s.api.apps.v1.Deployment"));
    assert!(deployment.is_some());
    assert_eq!(
        table.kind("", "v1", "Pod"),
        table.named("io.k8s.api.core.v1.Pod")
    );
    assert_eq!(table.kind("apps", "v1", "Pod"), None);
    for kind in table.kinds() {
        assert_eq!(
            table.kind(&kind.group, &kind.version, &kind.kind),
            Some(kind.ty)
        );
    }
    assert!(table.kinds().len() > 300);
}

#[test]
fn fields_follow_the_go_struct() {
    assert_eq!(
        names(structure("io.k8s.api.core.v1.Secret")),
        [
            "kind",
            "apiVersion",
            "metadata",
            "immutable",
            "data",
            "stringData",
            "type"
        ]
    );
    assert_eq!(
        names(structure("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"))[..7],
        [
            "name",
            "generateName",
            "namespace",
            "selfLink",
            "uid",
            "resourceVersion",
            "generation"
        ]
    );
    assert_eq!(
        names(structure(
            "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference"
        ))[..3],
        ["apiVersion", "kind", "name"]
    );
}

#[test]
fn inlined_messages_keep_their_outer_tags() {
    let volume = structure("io.k8s.api.core.v1.Volume");
    let position = volume.position("emptyDir").expect("emptyDir");
    assert_eq!(volume.fields()[position].tag, Some(2));
    assert_eq!(volume.wire(position).expect("a wire").outer, [2]);
    assert_eq!(volume.wire(volume.position("name").expect("name")), None);
    let resource = structure("io.k8s.apimachinery.pkg.apis.meta.v1.APIResource");
    let verbs = resource.position("verbs").expect("verbs");
    assert!(resource.wire(verbs).expect("a wire").wrapped);
}

#[test]
fn lists_and_merges_keep_their_keys() {
    let table = Table::builtin();
    let containers = field("io.k8s.api.core.v1.PodSpec", "containers");
    assert!(containers.required);
    let patch = containers.patch.as_ref().expect("a patch strategy");
    assert_eq!(patch.merge_key.as_deref(), Some("name"));
    let Shape::List(list) = &table.get(containers.ty).shape else {
        panic!("containers is a list");
    };
    assert_eq!(list.kind, ListKind::Map(vec!["name".into()]));
    let strategy = field("io.k8s.api.apps.v1.DeploymentSpec", "strategy");
    let patch = strategy.patch.as_ref().expect("a patch strategy");
    assert!(patch.retain_keys && !patch.merge);
}

#[test]
fn field_overrides_whether_its_struct_is_atomic() {
    let table = Table::builtin();
    assert!(structure("io.k8s.api.core.v1.ObjectReference").atomic);
    let claim = field("io.k8s.api.core.v1.PersistentVolumeSpec", "claimRef");
    let Shape::Struct(claim) = &table.get(claim.ty).shape else {
        panic!("claimRef is a struct");
    };
    assert!(!claim.atomic);
    assert!(claim.field("name").is_some());
}

#[test]
fn go_structs_are_always_written() {
    let cases = [
        ("io.k8s.api.apps.v1.Deployment", "status", true),
        ("io.k8s.api.apps.v1.DeploymentSpec", "strategy", true),
        ("io.k8s.api.apps.v1.DeploymentSpec", "selector", false),
        ("io.k8s.api.core.v1.Container", "resources", true),
        ("io.k8s.api.core.v1.Container", "securityContext", false),
        ("io.k8s.api.core.v1.ServiceStatus", "loadBalancer", true),
        ("io.k8s.api.core.v1.PodCondition", "lastProbeTime", true),
        ("io.k8s.api.core.v1.DaemonEndpoint", "Port", true),
        ("io.k8s.api.core.v1.ContainerStatus", "ready", true),
        ("io.k8s.api.core.v1.ContainerStatus", "started", false),
        ("io.k8s.api.core.v1.ContainerStatus", "containerID", false),
        ("io.k8s.api.core.v1.Event", "reportingInstance", true),
        (
            "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta",
            "creationTimestamp",
            false,
        ),
    ];
    for (name, field_name, expected) in cases {
        assert_eq!(
            field(name, field_name).always,
            expected,
            "{name}.{field_name}"
        );
    }
}

#[test]
fn a_line_that_makes_no_sense_is_named() {
    assert_eq!(
        read("type a.B struct\n c nothing 1").err(),
        Some("c nothing 1")
    );
    assert_eq!(read("type a.B nothing").err(), Some("a.B nothing"));
    assert!(read("type a.B struct\n c []B 1 list=set").is_ok());
}
