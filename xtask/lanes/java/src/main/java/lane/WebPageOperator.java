package lane;

import static lane.Step.eventually;
import static lane.Step.expect;
import static lane.Step.step;

import io.fabric8.kubernetes.api.model.ConfigMap;
import io.fabric8.kubernetes.api.model.ConfigMapBuilder;
import io.fabric8.kubernetes.api.model.Namespaced;
import io.fabric8.kubernetes.api.model.ObjectMetaBuilder;
import io.fabric8.kubernetes.client.CustomResource;
import io.fabric8.kubernetes.client.KubernetesClient;
import io.fabric8.kubernetes.client.KubernetesClientBuilder;
import io.fabric8.kubernetes.model.annotation.Group;
import io.fabric8.kubernetes.model.annotation.Version;
import io.javaoperatorsdk.operator.Operator;
import io.javaoperatorsdk.operator.api.config.informer.InformerEventSourceConfiguration;
import io.javaoperatorsdk.operator.api.reconciler.Context;
import io.javaoperatorsdk.operator.api.reconciler.EventSourceContext;
import io.javaoperatorsdk.operator.api.reconciler.Reconciler;
import io.javaoperatorsdk.operator.api.reconciler.UpdateControl;
import io.javaoperatorsdk.operator.processing.event.source.EventSource;
import io.javaoperatorsdk.operator.processing.event.source.informer.InformerEventSource;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;

/** An operator of the Java Operator SDK: a page becomes a ConfigMap, a change of either is repaired, owners are collected. */
public final class WebPageOperator {
  private static final String DEFINITION = """
      apiVersion: apiextensions.k8s.io/v1
      kind: CustomResourceDefinition
      metadata: {name: webpages.lane.kubewright.dev}
      spec:
        group: lane.kubewright.dev
        scope: Namespaced
        names: {plural: webpages, singular: webpage, kind: WebPage}
        versions:
        - name: v1
          served: true
          storage: true
          subresources: {status: {}}
          schema:
            openAPIV3Schema:
              type: object
              properties:
                spec: {type: object, properties: {html: {type: string}}}
                status: {type: object, properties: {configMap: {type: string}}}
      """;

  private WebPageOperator() {}

  public static class Spec {
    public String html;
  }

  public static class Status {
    public String configMap;
  }

  @Group("lane.kubewright.dev")
  @Version("v1")
  public static class WebPage extends CustomResource<Spec, Status> implements Namespaced {}

  static final class PageReconciler implements Reconciler<WebPage> {
    @Override
    public List<EventSource<?, WebPage>> prepareEventSources(EventSourceContext<WebPage> context) {
      var configuration = InformerEventSourceConfiguration.from(ConfigMap.class, WebPage.class)
          .withLabelSelector("page=true").build();
      return List.of(new InformerEventSource<>(configuration, context));
    }

    @Override
    public UpdateControl<WebPage> reconcile(WebPage page, Context<WebPage> context) {
      ConfigMap map = new ConfigMapBuilder().withNewMetadata().withName(page.getMetadata().getName())
          .withNamespace(page.getMetadata().getNamespace()).addToLabels("page", "true").endMetadata()
          .addToData("index.html", page.getSpec().html).build();
      map.addOwnerReference(page);
      context.getClient().resource(map).forceConflicts().serverSideApply();
      WebPage changed = new WebPage();
      changed.setMetadata(new ObjectMetaBuilder().withName(page.getMetadata().getName())
          .withNamespace(page.getMetadata().getNamespace()).build());
      changed.setStatus(new Status());
      changed.getStatus().configMap = map.getMetadata().getName();
      return UpdateControl.patchStatus(changed);
    }
  }

  public static void main(String[] arguments) {
    KubernetesClient client = new KubernetesClientBuilder().build();
    step("define WebPage", () -> {
      var bytes = new ByteArrayInputStream(DEFINITION.getBytes(StandardCharsets.UTF_8));
      client.load(bytes).serverSideApply();
      return eventually("the definition", () -> {
        var found = client.apiextensions().v1().customResourceDefinitions().withName("webpages.lane.kubewright.dev").get();
        boolean established = found.getStatus() != null && found.getStatus().getConditions().stream()
            .anyMatch(c -> c.getType().equals("Established") && c.getStatus().equals("True"));
        return established ? true : null;
      });
    });
    Operator operator = new Operator(overrider -> overrider.withKubernetesClient(client));
    operator.register(new PageReconciler());
    step("start the operator", () -> {
      operator.start();
      return null;
    });
    run(client);
    Step.finish();
  }

  private static void run(KubernetesClient client) {
    var pages = client.resources(WebPage.class).inNamespace("default");
    var maps = client.configMaps().inNamespace("default");
    step("create WebPage", () -> {
      WebPage page = new WebPage();
      page.setMetadata(new ObjectMetaBuilder().withName("hello").build());
      page.setSpec(new Spec());
      page.getSpec().html = "<p>hello</p>";
      return pages.resource(page).create();
    });
    step("its ConfigMap and status", () -> {
      ConfigMap map = eventually("ConfigMap default/hello", () -> maps.withName("hello").get());
      expect("html", map.getData().get("index.html"), "<p>hello</p>");
      return eventually("the status", () -> {
        WebPage page = pages.withName("hello").get();
        return page.getStatus() == null ? null : page.getStatus().configMap;
      });
    });
    step("a change is reconciled", () -> {
      pages.withName("hello").edit(page -> {
        page.getSpec().html = "<p>bye</p>";
        return page;
      });
      return eventually("the change", () -> "<p>bye</p>".equals(maps.withName("hello").get().getData().get("index.html")) ? true : null);
    });
    step("a deleted ConfigMap comes back", () -> {
      String uid = maps.withName("hello").get().getMetadata().getUid();
      maps.withName("hello").delete();
      return eventually("another ConfigMap", () -> {
        ConfigMap map = maps.withName("hello").get();
        return map == null || map.getMetadata().getUid().equals(uid) ? null : map;
      });
    });
    step("what is owned goes with its owner", () -> {
      pages.withName("hello").delete();
      return eventually("the end of the ConfigMap", () -> maps.withName("hello").get() == null ? true : null);
    });
  }
}
