//! Every Rust block of the pages below `docs`, compiled and, unless it says `no_run`, run by `cargo test`.
//!
//! A new page with Rust in it gets a line here.

/// One page as a module, so that a failing block names its page.
macro_rules! page {
    ($name:ident, $file:literal) => {
        #[doc = include_str!(concat!("../../docs/", $file))]
        #[cfg(doctest)]
        pub mod $name {}
    };
}

page!(quick_start, "quick-start.md");
page!(reconciling, "reconciling.md");
page!(watching, "watching.md");
page!(deletion, "deletion.md");
page!(errors_and_time, "errors-and-time.md");
page!(running, "running.md");
page!(versions, "versions.md");
page!(dynamic, "dynamic.md");
page!(cookbook, "cookbook.md");
page!(prove, "prove.md");
page!(kinds, "kinds.md");
page!(webhooks, "webhooks.md");
page!(sharding, "sharding.md");
page!(api_server, "api-server.md");
page!(cluster, "cluster.md");
page!(nodes, "nodes.md");
page!(service_network, "service-network.md");
