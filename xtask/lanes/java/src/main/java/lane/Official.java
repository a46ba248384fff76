package lane;

import static lane.Step.eventually;
import static lane.Step.expect;
import static lane.Step.step;

import io.kubernetes.client.informer.SharedIndexInformer;
import io.kubernetes.client.informer.SharedInformerFactory;
import io.kubernetes.client.openapi.ApiClient;
import io.kubernetes.client.openapi.apis.CoreV1Api;
import io.kubernetes.client.openapi.models.V1ConfigMap;
import io.kubernetes.client.openapi.models.V1ConfigMapList;
import io.kubernetes.client.openapi.models.V1ObjectMeta;
import io.kubernetes.client.util.CallGeneratorParams;
import io.kubernetes.client.util.Config;
import java.util.Map;

/** The official client, which refuses objects whose required fields are missing. */
public final class Official {
  private Official() {}

  public static void main(String[] arguments) throws Exception {
    ApiClient client = Config.defaultClient();
    client.setReadTimeout(0);
    CoreV1Api core = new CoreV1Api(client);
    step("list Nodes", () -> {
      expect("nodes", core.listNode().execute().getItems().isEmpty(), false);
      return null;
    });
    step("list Pods", () -> core.listPodForAllNamespaces().execute());
    SharedInformerFactory factory = new SharedInformerFactory(client);
    SharedIndexInformer<V1ConfigMap> informer = factory.sharedIndexInformerFor(
        (CallGeneratorParams parameters) -> core.listNamespacedConfigMap("default").resourceVersion(parameters.resourceVersion)
            .timeoutSeconds(parameters.timeoutSeconds).watch(parameters.watch).buildCall(null),
        V1ConfigMap.class, V1ConfigMapList.class);
    factory.startAllRegisteredInformers();
    V1ConfigMap map = new V1ConfigMap().metadata(new V1ObjectMeta().name("java")).data(Map.of("a", "1"));
    step("create ConfigMap", () -> core.createNamespacedConfigMap("default", map).execute());
    step("informer sees the creation",
        () -> eventually("default/java", () -> informer.getIndexer().getByKey("default/java")));
    step("delete ConfigMap", () -> core.deleteNamespacedConfigMap("java", "default").execute());
    step("informer sees the end",
        () -> eventually("its end", () -> informer.getIndexer().getByKey("default/java") == null ? true : null));
    factory.stopAllRegisteredInformers();
    Step.finish();
  }
}
