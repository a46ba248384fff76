//! The sample comes up, is changed and goes, once for every single fault.

use kube::CustomResourceExt;
use kubewright::prelude::*;
use kubewright_example_cloud_manager::{CloudManager, controller, sample};
use kubewright_sim::Campaign;

fn key() -> Key {
    Key::new("default", "cloudmanager-sample")
}

fn campaign() -> Campaign {
    Campaign::new("cloud-manager", |process| {
        process
            .manager()
            .name("CloudManager")
            .controller(controller())
    })
    .install(&CloudManager::crd())
    .step("create", async |user| {
        let mut sample = sample().map_err(Error::msg)?;
        sample.metadata.namespace = Some("default".to_owned());
        user.create(&sample).await?;
        Ok(())
    })
    .step("rename the front", async |user| {
        let rename = |manager: &mut CloudManager| {
            manager.spec.front.deployment.name = "front-renamed".to_owned();
        };
        user.modify(&key(), rename).await?;
        Ok(())
    })
    .step("delete", async |user| {
        user.delete::<CloudManager>(&key()).await
    })
}

#[test]
fn cloud_manager_survives_every_single_fault() {
    campaign().sample(10).check();
}

#[test]
fn cloud_manager_survives_several_faults_at_once() {
    campaign().check_seeds(4);
}
