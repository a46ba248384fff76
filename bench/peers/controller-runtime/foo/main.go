// Command foo is the operator of examples/foo on controller-runtime: for each Foo a Deployment of that name and size, and
// in the status how many of it are there. It is measured, not run in earnest.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"kubewright.dev/bench/peers/controller-runtime/api"
)

type reconciler struct {
	client.Client
	scheme   *runtime.Scheme
	recorder events.EventRecorder
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	foo := &api.Foo{}
	if err := r.Get(ctx, request.NamespacedName, foo); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if foo.Spec.DeploymentName == "" {
		return ctrl.Result{}, reconcile.TerminalError(errors.New("deployment name must be specified"))
	}
	deployment, changed, err := r.keepDeployment(ctx, foo)
	if err != nil {
		return ctrl.Result{}, err
	}
	available := deployment.Status.AvailableReplicas
	if !changed && foo.Status.AvailableReplicas == available {
		return ctrl.Result{}, nil
	}
	foo.Status.AvailableReplicas = available
	if err := r.Status().Update(ctx, foo); err != nil {
		return ctrl.Result{}, err
	}
	r.recorder.Eventf(foo, nil, corev1.EventTypeNormal, "Synced", "Sync", "Foo synced successfully")
	return ctrl.Result{}, nil
}

// keepDeployment creates the Deployment or scales it. One that is not ours is left alone.
func (r *reconciler) keepDeployment(ctx context.Context, foo *api.Foo) (*appsv1.Deployment, bool, error) {
	deployment := &appsv1.Deployment{}
	key := client.ObjectKey{Namespace: foo.Namespace, Name: foo.Spec.DeploymentName}
	err := r.Get(ctx, key, deployment)
	if apierrors.IsNotFound(err) {
		deployment, err = r.deployment(foo)
		if err != nil {
			return nil, false, err
		}
		return deployment, true, r.Create(ctx, deployment)
	}
	if err != nil {
		return nil, false, err
	}
	if !metav1.IsControlledBy(deployment, foo) {
		message := fmt.Sprintf("Resource %q already exists and is not managed by Foo", deployment.Name)
		r.recorder.Eventf(foo, nil, corev1.EventTypeWarning, "ErrResourceExists", "Sync", message)
		return nil, false, errors.New(message)
	}
	wanted := foo.Spec.Replicas
	if wanted == nil || deployment.Spec.Replicas != nil && *wanted == *deployment.Spec.Replicas {
		return deployment, false, nil
	}
	deployment.Spec.Replicas = wanted
	return deployment, true, r.Update(ctx, deployment)
}

func (r *reconciler) deployment(foo *api.Foo) (*appsv1.Deployment, error) {
	labels := map[string]string{"app": "nginx", "controller": foo.Name}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: foo.Spec.DeploymentName, Namespace: foo.Namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: foo.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "nginx", Image: "nginx:latest"}}},
			},
		},
	}
	return deployment, ctrl.SetControllerReference(foo, deployment, r.scheme)
}

func run() error {
	ctrl.SetLogger(zap.New())
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return err
	}
	api.AddToScheme(scheme)
	config, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:  scheme,
		Metrics: server.Options{BindAddress: "0"},
	})
	if err != nil {
		return err
	}
	r := &reconciler{
		Client:   manager.GetClient(),
		scheme:   scheme,
		recorder: manager.GetEventRecorder("sample-controller"),
	}
	err = ctrl.NewControllerManagedBy(manager).
		For(&api.Foo{}).
		Owns(&appsv1.Deployment{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: 2}).
		Complete(r)
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "foo:", err)
		os.Exit(1)
	}
}
