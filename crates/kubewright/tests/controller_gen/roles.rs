//! The permissions of controller-gen's tests, in Rust.

macro_rules! allow {
    ($($arguments:tt)*) => {
        #[kubewright::rbac($($arguments)*)]
        const _: () = ();
    };
}

allow!(
    groups = "batch.io",
    resources = "cronjobs",
    verbs = "get;watch;create"
);
allow!(
    groups = "batch.io",
    resources = "cronjobs/status",
    verbs = "get;update;patch"
);
allow!(groups = "art", resources = "jobs", verbs = "get");
allow!(
    groups = "wave",
    resources = "jobs",
    verbs = "get",
    namespace = "zoo"
);
allow!(
    groups = "batch;batch;batch",
    resources = "jobs/status",
    verbs = "watch"
);
allow!(
    groups = "batch;cron",
    resources = "jobs/status",
    verbs = "create;get"
);
allow!(
    groups = "art",
    resources = "jobs",
    verbs = "get",
    namespace = "zoo"
);
allow!(
    groups = "cron;batch",
    resources = "jobs/status",
    verbs = "get;create"
);
allow!(
    groups = "batch",
    resources = "jobs/status",
    verbs = "watch;watch"
);
allow!(
    groups = "art",
    resources = "jobs",
    verbs = "get",
    namespace = "park"
);
allow!(
    groups = "batch.io",
    resources = "cronjobs",
    resource_names = "foo;bar;baz",
    verbs = "get;watch"
);
allow!(
    groups = "deduplicate-verbs",
    resources = "some",
    verbs = "get;list"
);
allow!(
    groups = "deduplicate-verbs",
    resources = "some",
    verbs = "get"
);
allow!(
    groups = "deduplicate-verbs",
    resources = "some",
    verbs = "list"
);
allow!(
    groups = "deduplicate-resources",
    resources = "one",
    verbs = "create"
);
allow!(
    groups = "deduplicate-resources",
    resources = "two",
    verbs = "create"
);
allow!(
    groups = "deduplicate-resources",
    resources = "three",
    verbs = "create"
);
allow!(
    groups = "deduplicate-groups1",
    resources = "foo",
    verbs = "patch"
);
allow!(
    groups = "deduplicate-groups2",
    resources = "foo",
    verbs = "patch"
);
allow!(
    groups = "deduplicate-groups3",
    resources = "foo",
    verbs = "patch"
);
allow!(
    groups = "deduplicate-all",
    resources = "foo;bar",
    verbs = "get;list"
);
allow!(groups = "deduplicate-all", resources = "foo", verbs = "get");
allow!(
    groups = "deduplicate-all",
    resources = "bar",
    verbs = "list"
);
allow!(
    groups = "deduplicate-groups4",
    resources = "xyz",
    verbs = "get;update;patch"
);
allow!(
    groups = "deduplicate-groups4",
    resources = "xyz",
    verbs = "*"
);
allow!(
    groups = "deduplicate-all-group",
    resources = "foo;bar",
    verbs = "get;list"
);
allow!(
    groups = "not-deduplicate-resources",
    resources = "some",
    verbs = "get"
);
allow!(
    groups = "not-deduplicate-resources",
    resources = "another",
    verbs = "list"
);
allow!(
    groups = "not-deduplicate-groups1",
    resources = "some",
    verbs = "get"
);
allow!(
    groups = "not-deduplicate-groups2",
    resources = "some",
    verbs = "list"
);
allow!(urls = "/url-to-duplicate", verbs = "get");
allow!(urls = "/another/url-to-duplicate", verbs = "get");
allow!(groups = "core", resources = "deduplicate", verbs = "list");
allow!(groups = "", resources = "me", verbs = "list");
allow!(
    groups = "core;;some-other-to-deduplicate-with-core",
    resources = "me",
    verbs = "list;get"
);
allow!(
    groups = "deduplicate-groups5",
    resources = "abc",
    verbs = "get;update;patch;create",
    namespace = "here"
);
allow!(
    groups = "deduplicate-groups5",
    resources = "abc",
    verbs = "*",
    namespace = "here"
);
allow!(
    groups = "apps",
    namespace = "infrastructure",
    role = "infra-deployment-manager",
    resources = "deployments",
    verbs = "get;list;watch;update;patch"
);
allow!(
    groups = "",
    namespace = "users",
    role = "user-secrets-reader",
    resources = "secrets",
    verbs = "get;list;watch"
);
allow!(
    groups = "apps",
    namespace = "infrastructure",
    role = "infra-deployment-manager",
    resources = "statefulsets",
    verbs = "get;list"
);
allow!(
    groups = "monitoring",
    namespace = "observability",
    resources = "prometheuses",
    verbs = "get;list"
);
