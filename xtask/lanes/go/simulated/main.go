// A small operator on controller-runtime, for `cargo xtask simulate-go`: a ConfigMap for each Fruit, and in the status that it
// is there. With --status-first it says so before it is true, which is a bug that only a crash shows.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"kubewright.dev/lanes/fruit"
	"kubewright.dev/lanes/step"
)

type reconciler struct {
	client.Client
	statusFirst bool
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object fruit.Fruit
	if err := r.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	basket := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	if !object.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	if r.statusFirst {
		return ctrl.Result{}, r.statusBeforeEffect(ctx, &object, basket)
	}
	if err := r.fill(ctx, &object, basket); err != nil || object.Status.Eaten {
		return ctrl.Result{}, err
	}
	object.Status.Eaten = true
	return ctrl.Result{}, r.Status().Update(ctx, &object)
}

// fill makes the ConfigMap as it should be. Its owner is the Fruit, so that it goes with it, also when a view of the past made it
// once more.
func (r *reconciler) fill(ctx context.Context, object *fruit.Fruit, basket *corev1.ConfigMap) error {
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, basket, func() error {
		basket.Data = map[string]string{"weight": fmt.Sprint(object.Spec.Weight)}
		return controllerutil.SetControllerReference(object, basket, r.Scheme())
	})
	return err
}

// statusBeforeEffect is the bug: whoever ends after the status was written takes the ConfigMap for made.
func (r *reconciler) statusBeforeEffect(ctx context.Context, object *fruit.Fruit, basket *corev1.ConfigMap) error {
	if !object.Status.Eaten {
		object.Status.Eaten = true
		if err := r.Status().Update(ctx, object); err != nil {
			return err
		}
		return r.fill(ctx, object, basket)
	}
	if err := r.Get(ctx, client.ObjectKeyFromObject(basket), basket); err != nil {
		return client.IgnoreNotFound(err)
	}
	return r.fill(ctx, object, basket)
}

func main() {
	statusFirst := flag.Bool("status-first", false, "write the status before its effect")
	flag.Parse()
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	step.Must(err)
	scheme := runtime.NewScheme()
	step.Must(clientgoscheme.AddToScheme(scheme))
	step.Must(fruit.AddToScheme(scheme))
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: scheme, Metrics: server.Options{BindAddress: "0"}})
	step.Must(err)
	builder := ctrl.NewControllerManagedBy(manager).For(&fruit.Fruit{}).Named("basket")
	builder = builder.Owns(&corev1.ConfigMap{})
	step.Must(builder.Complete(&reconciler{manager.GetClient(), *statusFirst}))
	step.Must(manager.Start(ctrl.SetupSignalHandler()))
}
