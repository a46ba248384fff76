// A controller-runtime manager against the server that KUBECONFIG names: its cache, its client and its reconciler, on
// a custom kind that owns a built-in one.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

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

const finalizer = "user.k8sasdb.org/basket"

// reconciler keeps a ConfigMap for each Fruit.
type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object fruit.Fruit
	if err := r.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		controllerutil.RemoveFinalizer(&object, finalizer)
		return ctrl.Result{}, r.Update(ctx, &object)
	}
	if controllerutil.AddFinalizer(&object, finalizer) {
		return ctrl.Result{}, r.Update(ctx, &object)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"weight": fmt.Sprint(object.Spec.Weight)}
		return controllerutil.SetControllerReference(&object, owned, r.Scheme())
	})
	if err != nil || object.Status.Eaten {
		return ctrl.Result{}, err
	}
	object.Status.Eaten = true
	return ctrl.Result{}, r.Status().Update(ctx, &object)
}

func main() {
	log.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	step.Must(err)
	scheme := runtime.NewScheme()
	step.Must(clientgoscheme.AddToScheme(scheme))
	step.Must(fruit.AddToScheme(scheme))
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: server.Options{BindAddress: "0"},
		LeaderElection: true, LeaderElectionID: "lane.user.k8sasdb.org", LeaderElectionNamespace: "default",
		LeaderElectionReleaseOnCancel: true,
	})
	step.Must(err)
	builder := ctrl.NewControllerManagedBy(manager).For(&fruit.Fruit{}).Owns(&corev1.ConfigMap{})
	step.Must(builder.Complete(&reconciler{manager.GetClient()}))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	done := make(chan error, 1)
	go func() { done <- manager.Start(ctx) }()
	direct, err := client.New(config, client.Options{Scheme: scheme})
	step.Must(err)
	steps(ctx, direct)
	cancel()
	step.Do("stop manager", func() error { return <-done })
	step.Exit()
}

func steps(ctx context.Context, api client.Client) {
	key := client.ObjectKey{Namespace: "default", Name: "papaya"}
	object := &fruit.Fruit{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}, Spec: fruit.Spec{Weight: 400}}
	owned := &corev1.ConfigMap{}
	step.Do("create Fruit", func() error { return api.Create(ctx, object) })
	step.Do("reconcile ConfigMap", func() error {
		return eventually(ctx, func() error {
			if err := api.Get(ctx, key, owned); err != nil {
				return err
			}
			return step.Expect("weight", owned.Data["weight"], "400")
		})
	})
	step.Do("reconcile status", func() error {
		return eventually(ctx, func() error {
			if err := api.Get(ctx, key, object); err != nil {
				return err
			}
			return step.Expect("eaten", object.Status.Eaten, true)
		})
	})
	step.Do("repair ConfigMap", func() error {
		uid := owned.UID
		if err := api.Delete(ctx, owned); err != nil {
			return err
		}
		return eventually(ctx, func() error {
			if err := api.Get(ctx, key, owned); err != nil {
				return err
			}
			if owned.UID == uid {
				return errors.New("still the old one")
			}
			return nil
		})
	})
	step.Do("patch Fruit", func() error {
		patch := client.MergeFrom(object.DeepCopyObject().(client.Object))
		object.Spec.Weight = 410
		if err := api.Patch(ctx, object, patch); err != nil {
			return err
		}
		return eventually(ctx, func() error {
			if err := api.Get(ctx, key, owned); err != nil {
				return err
			}
			return step.Expect("weight", owned.Data["weight"], "410")
		})
	})
	step.Do("finalize Fruit", func() error {
		if err := api.Delete(ctx, object); err != nil {
			return err
		}
		return eventually(ctx, func() error {
			if err := api.Get(ctx, key, object); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("still there: %v", err)
			}
			return nil
		})
	})
}

// eventually tries until it works or time is up.
func eventually(ctx context.Context, try func() error) error {
	deadline := time.After(20 * time.Second)
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-deadline:
			return err
		case <-ctx.Done():
			return err
		case <-time.After(20 * time.Millisecond):
		}
	}
}
