// Client-go against the server that KUBECONFIG names: the typed client on a built-in kind, which speaks protobuf, and
// the dynamic client on a custom one, which speaks JSON.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"

	"kubewright.dev/lanes/fruit"
	"kubewright.dev/lanes/step"
)

var ctx, cancel = context.WithTimeout(context.Background(), time.Minute)

func main() {
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	step.Must(err)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	typed, err := kubernetes.NewForConfig(config)
	step.Must(err)
	configMaps(typed)
	informer(typed)
	config.ContentType = "application/json"
	untyped, err := dynamic.NewForConfig(config)
	step.Must(err)
	fruits(untyped.Resource(fruit.Resource).Namespace("default"))
	step.Exit()
}

func configMaps(client kubernetes.Interface) {
	api := client.CoreV1().ConfigMaps("default")
	labels := map[string]string{"lane": "client-go"}
	watched, err := api.Watch(ctx, metav1.ListOptions{LabelSelector: "lane=client-go"})
	step.Must(err)
	defer watched.Stop()
	step.Do("create ConfigMap", func() error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "goes", Labels: labels}, Data: map[string]string{"a": "1"}}
		_, err := api.Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	step.Do("list ConfigMap", func() error {
		list, err := api.List(ctx, metav1.ListOptions{LabelSelector: "lane=client-go"})
		if err != nil {
			return err
		}
		return step.Expect("count", len(list.Items), 1)
	})
	step.Do("patch ConfigMap", func() error {
		patched, err := api.Patch(ctx, "goes", types.StrategicMergePatchType, []byte(`{"data":{"b":"2"}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return step.Expect("data", fmt.Sprint(patched.Data), "map[a:1 b:2]")
	})
	step.Do("apply ConfigMap", func() error {
		applied := applycorev1.ConfigMap("goes", "default").WithData(map[string]string{"c": "3"})
		found, err := api.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "lane"})
		if err != nil {
			return err
		}
		return step.Expect("data", fmt.Sprint(found.Data), "map[a:1 b:2 c:3]")
	})
	step.Do("conflict ConfigMap", func() error {
		applied := applycorev1.ConfigMap("goes", "default").WithData(map[string]string{"a": "taken"})
		if _, err := api.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "lane"}); !apierrors.IsConflict(err) {
			return fmt.Errorf("no conflict but %v", err)
		}
		return nil
	})
	step.Do("delete ConfigMap", func() error { return api.Delete(ctx, "goes", metav1.DeleteOptions{}) })
	step.Do("watch ConfigMap", func() error { return events(watched) })
}

// events expects an object to come, to change and to go.
func events(watched watch.Interface) error {
	var seen []watch.EventType
	for len(seen) == 0 || seen[len(seen)-1] != watch.Deleted {
		select {
		case event, open := <-watched.ResultChan():
			if !open {
				return errors.New("the watch ended")
			}
			if event.Type != watch.Bookmark {
				seen = append(seen, event.Type)
			}
		case <-ctx.Done():
			return fmt.Errorf("only %v came", seen)
		}
	}
	return step.Expect("events", fmt.Sprintf("%s %s %s", seen[0], seen[1], seen[len(seen)-1]), "ADDED MODIFIED DELETED")
}

func informer(client kubernetes.Interface) {
	step.Do("informer ConfigMap", func() error {
		factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace("default"))
		lister := factory.Core().V1().ConfigMaps()
		synced := lister.Informer().HasSynced
		factory.Start(ctx.Done())
		if !cache.WaitForCacheSync(ctx.Done(), synced) {
			return errors.New("the informer did not sync")
		}
		api := client.CoreV1().ConfigMaps("default")
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "informed"}}
		if _, err := api.Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
		defer func() { _ = api.Delete(ctx, "informed", metav1.DeleteOptions{}) }()
		for ctx.Err() == nil {
			if _, err := lister.Lister().ConfigMaps("default").Get("informed"); err == nil {
				return nil
			}
			time.Sleep(10 * time.Millisecond)
		}
		return ctx.Err()
	})
}

func fruits(api dynamic.ResourceInterface) {
	watched, err := api.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=mango"})
	step.Must(err)
	defer watched.Stop()
	object := func(spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "user.k8sasdb.org/v1", "kind": "Fruit", "metadata": map[string]any{"name": "mango"}, "spec": spec,
		}}
	}
	field := func(object *unstructured.Unstructured, name string) string {
		value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", name)
		return fmt.Sprint(value)
	}
	step.Do("create Fruit", func() error {
		made, err := api.Create(ctx, object(map[string]any{"weight": int64(300)}), metav1.CreateOptions{})
		if err != nil {
			return err
		}
		return step.Expect("the default", field(made, "sweetness"), "true")
	})
	step.Do("invalid Fruit", func() error {
		bad := object(map[string]any{"weight": int64(0)})
		bad.SetName("nothing")
		if _, err := api.Create(ctx, bad, metav1.CreateOptions{}); !apierrors.IsInvalid(err) {
			return fmt.Errorf("not refused but %v", err)
		}
		return nil
	})
	step.Do("list Fruit", func() error {
		list, err := api.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=mango"})
		if err != nil {
			return err
		}
		return step.Expect("count", len(list.Items), 1)
	})
	step.Do("patch Fruit", func() error {
		patched, err := api.Patch(ctx, "mango", types.MergePatchType, []byte(`{"spec":{"weight":310}}`), metav1.PatchOptions{})
		if err != nil {
			return err
		}
		return step.Expect("weight", field(patched, "weight"), "310")
	})
	step.Do("status Fruit", func() error {
		_, err := api.Patch(ctx, "mango", types.MergePatchType, []byte(`{"status":{"eaten":true}}`), metav1.PatchOptions{}, "status")
		return err
	})
	step.Do("apply Fruit", func() error {
		applied, err := api.Apply(ctx, "mango", object(map[string]any{"comment": "ripe", "weight": int64(310)}), metav1.ApplyOptions{FieldManager: "lane", Force: true})
		if err != nil {
			return err
		}
		return step.Expect("comment", field(applied, "comment"), "ripe")
	})
	step.Do("delete Fruit", func() error { return api.Delete(ctx, "mango", metav1.DeleteOptions{}) })
	step.Do("watch Fruit", func() error { return events(watched) })
}
