package lane;

import static lane.Step.eventually;
import static lane.Step.expect;
import static lane.Step.step;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;

/** fabric8 with its defaults: the key of the kubeconfig, and informers that watch over WebSocket. */
public final class Fabric8 {
  private Fabric8() {}

  public static void main(String[] arguments) {
    try (KubernetesClient client = new KubernetesClientBuilder().build()) {
      run(client);
    }
    Step.finish();
  }

  private static void run(KubernetesClient client) {
    Queue<String> seen = new ConcurrentLinkedQueue<>();
    step("list Nodes", () -> {
      int port = client.nodes().list().getItems().get(0).getStatus().getDaemonEndpoints().getKubeletEndpoint().getPort();
      expect("a port", port >= 0, true);
      return null;
    });
    SharedIndexInformer<ConfigMap> informer = client.configMaps().inNamespace("default").withLabel("lane", "java")
        .inform(new ResourceEventHandler<>() {
          @Override
          public void onAdd(ConfigMap map) {
            seen.add("ADDED");
          }

          @Override
          public void onUpdate(ConfigMap before, ConfigMap after) {
            seen.add("MODIFIED");
          }

          @Override
          public void onDelete(ConfigMap map, boolean unknown) {
            seen.add("DELETED");
          }
        });
    step("informer has synced", () -> eventually("the first list", () -> informer.hasSynced() ? true : null));
    ConfigMap map = new ConfigMapBuilder().withNewMetadata().withName("java").addToLabels("lane", "java").endMetadata()
        .addToData("a", "1").build();
    step("create ConfigMap", () -> client.configMaps().inNamespace("default").resource(map).create());
    step("informer sees the creation", () -> eventually("ADDED", () -> seen.contains("ADDED") ? true : null));
    step("edit ConfigMap", () -> client.configMaps().inNamespace("default").withName("java")
        .edit(old -> new ConfigMapBuilder(old).addToData("b", "2").build()));
    step("informer sees the change", () -> eventually("MODIFIED", () -> seen.contains("MODIFIED") ? true : null));
    step("apply ConfigMap", () -> {
      ConfigMap applied = new ConfigMapBuilder().withNewMetadata().withName("java").withNamespace("default").endMetadata()
          .addToData("c", "3").build();
      ConfigMap after = client.resource(applied).forceConflicts().serverSideApply();
      expect("data", after.getData(), Map.of("a", "1", "b", "2", "c", "3"));
      return null;
    });
    step("delete ConfigMap", () -> client.configMaps().inNamespace("default").withName("java").delete());
    step("informer sees the end", () -> eventually("DELETED", () -> seen.contains("DELETED") ? true : null));
    informer.close();
  }
}
