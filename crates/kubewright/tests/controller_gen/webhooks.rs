//! The webhooks of controller-gen's tests, in Rust.

macro_rules! webhook {
    ($($arguments:tt)*) => {
        #[kubewright::webhook($($arguments)*)]
        const _: () = ();
    };
}

/// What all of them have in common.
macro_rules! cronjobs {
    ($($arguments:tt)*) => {
        webhook!(
            $($arguments)*,
            versions = "v1",
            verbs = "create;update",
            failure_policy = "Fail"
        );
    };
}

// valid
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "None",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1"
);
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "NoneOnDryRun",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1"
);
cronjobs!(
    mutating,
    name = "default.cronjob.testdata.kubebuilder.io",
    path = "/mutate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "None",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1",
    reinvocation_policy = "IfNeeded"
);

// valid-custom-service
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuiler.io",
    resources = "cronjobs",
    service_name = "DEAD",
    service_namespace = "BEEF",
    service_port = 1234,
    match_policy = "Equivalent",
    side_effects = "None",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1"
);
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuiler.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "NoneOnDryRun",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1"
);
cronjobs!(
    mutating,
    name = "default.cronjob.testdata.kubebuilder.io",
    path = "/mutate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuiler.io",
    resources = "cronjobs",
    service_name = "FOO",
    match_policy = "Equivalent",
    side_effects = "None",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1",
    reinvocation_policy = "IfNeeded"
);

// valid-url
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    url = "https://somewebhook:9443/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "None",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1"
);
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    url = "https://anothersomewebhook:9443/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "NoneOnDryRun",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1"
);
cronjobs!(
    mutating,
    name = "default.cronjob.testdata.kubebuilder.io",
    path = "/mutate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "None",
    timeout_seconds = 10,
    admission_review_versions = "v1;v1beta1",
    reinvocation_policy = "IfNeeded"
);

// valid-ordered
cronjobs!(
    validating,
    name = "cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    match_policy = "Equivalent",
    side_effects = "None",
    admission_review_versions = "v1;v1beta1",
    reinvocation_policy = "Never"
);
cronjobs!(
    validating,
    name = "cronjoblist.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjoblist",
    groups = "testdata.kubebuilder.io",
    resources = "cronjoblist",
    match_policy = "Equivalent",
    side_effects = "None",
    admission_review_versions = "v1;v1beta1",
    reinvocation_policy = "Never"
);
cronjobs!(
    validating,
    name = "deployment.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-deployments",
    groups = "testdata.kubebuilder.io",
    resources = "deployments",
    match_policy = "Equivalent",
    side_effects = "None",
    admission_review_versions = "v1;v1beta1",
    reinvocation_policy = "Never"
);

// valid-namespaceselector, valid-objectselector, valid-selectors-matchexpressions: what is left out is what they say
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    namespace_selector = "webhook-enabled=true"
);
cronjobs!(
    mutating,
    name = "default.cronjob.testdata.kubebuilder.io",
    path = "/mutate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    object_selector = "managed-by=myoperator"
);
cronjobs!(
    validating,
    name = "validation.cronjob.testdata.kubebuilder.io",
    path = "/validate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    namespace_selector = "environment in (dev,staging,prod)"
);
cronjobs!(
    mutating,
    name = "default.cronjob.testdata.kubebuilder.io",
    path = "/mutate-testdata-kubebuilder-io-v1-cronjob",
    groups = "testdata.kubebuilder.io",
    resources = "cronjobs",
    object_selector = "managed-by=controller,tier in (frontend,backend)"
);
