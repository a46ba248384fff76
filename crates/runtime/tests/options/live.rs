//! Lists from the server: their pages, and what they select by.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewright_runtime::client::ClientError;
use kubewright_runtime::{Client, Delete, Query};
use kubewright_server::Server;
use kubewright_testing::{Fault, Verb, Wire, limit};

use super::{config, server};

/// More than two pages.
const MANY: usize = 1_001;

async fn many() -> (Server, Wire, Client) {
    let (server, _) = server().await;
    let wire = Wire::new(server.service());
    let client = Client::new(wire.client());
    for number in 0..MANY {
        let created = limit(client.create(&config(&format!("c-{number}")))).await;
        created.expect("created");
    }
    (server, wire, client)
}

/// The limits of the lists that were asked for, and whether they went on from an earlier one.
fn lists(wire: &Wire) -> Vec<(Option<String>, bool)> {
    let calls = wire.calls().into_iter().map(|(call, _)| call);
    let lists = calls.filter(|call| call.verb == Verb::List);
    let seen = lists.map(|call| {
        let mut parts = call.query.split('&');
        let limit = parts.clone().find_map(|part| part.strip_prefix("limit="));
        let goes_on = parts.any(|part| part.starts_with("continue="));
        (limit.map(str::to_owned), goes_on)
    });
    seen.collect()
}

fn page(limit: &str, goes_on: bool) -> (Option<String>, bool) {
    (Some(limit.to_owned()), goes_on)
}

/// The number of different objects in a list.
async fn listed(client: &Client, query: Query) -> Result<usize, ClientError> {
    let listed = limit(client.live().list::<ConfigMap>(query)).await?;
    let names = listed.iter().filter_map(|it| it.metadata.name.clone());
    let names: BTreeSet<String> = names.collect();
    assert_eq!(names.len(), listed.len(), "each of them once");
    Ok(names.len())
}

fn here() -> Query {
    Query::all().namespace("default")
}

#[limited::test]
async fn live_list_is_read_in_pages_as_far_as_it_is_wanted() {
    let (_server, wire, client) = many().await;
    assert_eq!(listed(&client, here()).await.expect("read"), MANY);
    let pages = [page("500", false), page("500", true), page("500", true)];
    assert_eq!(lists(&wire), pages);

    let some = here().limit(600);
    assert_eq!(listed(&client, some).await.expect("read"), 600);
    assert_eq!(lists(&wire)[3..], [page("500", false), page("100", true)]);

    let few = here().limit(7);
    assert_eq!(listed(&client, few).await.expect("read"), 7);
    assert_eq!(lists(&wire)[5..], [page("7", false)]);
    assert_eq!(listed(&client, here().limit(0)).await.expect("read"), 0);
}

#[limited::test]
async fn live_list_that_expires_between_its_pages_is_read_in_one_piece() {
    let (_server, wire, client) = many().await;
    let expired = Fault::Refuse {
        code: 410,
        reason: "Expired",
    };
    let refused = expired.clone();
    wire.plan(move |call| {
        if call.query.contains("continue=") {
            refused.clone()
        } else {
            Fault::None
        }
    });
    assert_eq!(listed(&client, here()).await.expect("read"), MANY);
    let all = [page("500", false), page("500", true), (None, false)];
    assert_eq!(lists(&wire), all);

    // What expires at once does so for another reason.
    wire.plan(move |_| expired.clone());
    let error = listed(&client, here()).await.expect_err("refused");
    assert!(error.is_expired(), "{error}");
    assert_eq!(lists(&wire).len(), 4);
}

#[limited::test]
async fn field_selectors_are_for_the_server_alone() {
    let (_server, kube) = server().await;
    let client = Client::new(kube);
    for name in ["a", "b", "c"] {
        let created = limit(client.create(&config(name))).await;
        created.expect("created");
    }
    let named = |name: &str| here().fields(format!("metadata.name={name}"));
    assert_eq!(named("a").to_string(), "in default where metadata.name=a");
    assert_eq!(listed(&client, named("a")).await.expect("read"), 1);
    assert_eq!(listed(&client, named("z")).await.expect("read"), 0);

    let configs = client.of::<ConfigMap>();
    let others = here().fields("metadata.name!=a");
    let deleted = limit(configs.delete_all(others, Delete::background())).await;
    deleted.expect("deleted");
    assert_eq!(listed(&client, here()).await.expect("read"), 1);

    let cached = limit(client.list::<ConfigMap>(named("a"))).await;
    assert_eq!(
        cached.expect_err("refused").to_string(),
        "configmaps cannot be listed from the cache by field selector: use client.live().list, or an index with Query::index"
    );
}
