//! `kubectl wait`: for what is there already, for what comes, for what goes.

use super::super::step::{Group, World, kubectl, kubectl_with, meanwhile};

const POD: &str = "
apiVersion: v1
kind: Pod
metadata: {name: patient}
spec:
  containers: [{name: main, image: 'busybox:1'}]
";

pub(crate) fn group() -> Group {
    Group {
        name: "waiting",
        world: World::Server,
        steps: vec![
            kubectl("wait --for=jsonpath={.status.phase}=Active namespace/default --timeout=5s")
                .since(23)
                .prints_exactly("namespace/default condition met"),
            kubectl_with("create -f -", POD).prints_exactly("pod/patient created"),
            kubectl("wait --for=condition=Ready pod/patient --timeout=1s")
                .fails("timed out waiting for the condition on pods/patient"),
            meanwhile(
                "wait --for=condition=Ready pod/patient --timeout=20s",
                "",
                "patch pod patient --subresource=status -p '{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}}'",
            )
            .since(24)
            .prints("pod/patient condition met"),
            meanwhile(
                // The pod may go only after kubectl has seen it; with -v=6 it tells of its requests.
                "wait --for=delete pod/patient --timeout=20s -v=6",
                "watch=true",
                "delete pod patient --force --grace-period=0",
            )
            .prints("pod/patient condition met"),
        ],
    }
}
