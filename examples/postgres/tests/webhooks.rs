//! What the server refuses, by the schema and by the webhook.

use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_postgres::PostgresCluster;

fn cluster(name: &str) -> PostgresCluster {
    let sample = include_str!("../config/samples/postgres_v1alpha1_postgrescluster.yaml");
    let mut cluster: PostgresCluster = serde_saphyr::from_str(sample).expect("a sample");
    cluster.metadata.name = Some(name.to_owned());
    cluster
}

async fn refusal(world: &World, cluster: &PostgresCluster) -> String {
    let refused = world.client.create(cluster).await;
    Error::from(refused.expect_err("it is refused")).report()
}

#[tokio::test]
async fn what_cannot_work_is_refused() {
    let world = World::builder().without_controllers().start().await;
    let mut wrong = cluster("wrong");
    wrong
        .spec
        .parameters
        .insert("port".to_owned(), "1".to_owned());
    wrong.spec.primary = Some("somebody".to_owned());
    let refused = refusal(&world, &wrong).await;
    assert!(refused.contains("is not a member"), "{refused}");
    assert!(refused.contains("can be chosen"), "{refused}");
    let mut alone = cluster("alone");
    alone.spec.members = 1;
    let refused = refusal(&world, &alone).await;
    assert!(refused.contains("must be less than members"), "{refused}");
    let refused = refusal(&world, &cluster("9")).await;
    assert!(refused.contains("begin with a letter"), "{refused}");
    let fine = cluster("fine");
    let fine = world.client.create(&fine).await.expect("it is stored");
    let changed = world
        .client
        .modify(&fine, |it| it.spec.storage.size = "9Gi".to_owned());
    let refused = changed.await.expect_err("it is refused");
    let refused = Error::from(refused).report();
    assert!(refused.contains("immutable"), "{refused}");
}
