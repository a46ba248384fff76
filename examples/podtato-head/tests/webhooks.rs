//! What the server refuses, by the schema and by the webhook.

use kubewright::prelude::*;
use kubewright::testing::World;
use kubewright_example_podtato_head::{Part, PartSpec, PodtatoHeadApp};

fn app(name: &str) -> PodtatoHeadApp {
    let sample = include_str!("../config/samples/podtato_v1alpha1_podtatoheadapp.yaml");
    let mut app: PodtatoHeadApp = serde_saphyr::from_str(sample).expect("a sample");
    app.metadata.name = Some(name.to_owned());
    app
}

async fn refusal(world: &World, app: &PodtatoHeadApp) -> String {
    let refused = world.client.create(app).await;
    let refused = refused.expect_err("it is refused");
    assert!(refused.is_invalid(), "{refused:?}");
    Error::from(refused).report()
}

#[tokio::test]
async fn names_tags_and_parts_that_cannot_work_are_refused() {
    let world = World::start().await;
    for (name, expected) in [
        ("0head", "must begin with a letter"),
        ("a.b", "must not have a dot"),
        (&"a".repeat(54), "no more than 53 characters"),
    ] {
        let refused = refusal(&world, &app(name)).await;
        assert!(refused.contains(expected), "{refused}");
    }
    let mut tagged = app("tagged");
    tagged.spec.image = "registry:5000/podtato:1".to_owned();
    let refused = refusal(&world, &tagged).await;
    assert!(refused.contains("must not have a tag"), "{refused}");
    let mut twice = app("twice");
    let hat = PartSpec {
        name: Part::Hat,
        version: None,
        replicas: Some(2),
    };
    twice.spec.parts = vec![hat.clone(), hat];
    let refused = refusal(&world, &twice).await;
    assert!(refused.contains("Duplicate value"), "{refused}");
    let mut fine = app(&"a".repeat(53));
    fine.spec.image = "registry:5000/podtato".to_owned();
    world.client.create(&fine).await.expect("it is stored");
}
