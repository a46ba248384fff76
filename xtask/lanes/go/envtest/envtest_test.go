// Package envtest is what a kubebuilder project tests with: envtest starts a control plane from KUBEBUILDER_ASSETS,
// installs CRDs, and a manager reconciles.
package envtest

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"kubewright.dev/lanes/fruit"
)

const crds = "../../../../examples/fruit/crd.yaml"

// start starts a control plane that ends with the test.
func start(t *testing.T, environment *envtest.Environment) (*rest.Config, client.Client) {
	t.Helper()
	environment.CRDInstallOptions.Paths = []string{crds}
	config, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := environment.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := fruit.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return config, api
}

// eventually tries until it works or time is up.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

type reconciler struct{ client.Client }

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var object fruit.Fruit
	if err := r.Get(ctx, request.NamespacedName, &object); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: object.Name, Namespace: object.Namespace}}
	_, err := controllerutil.CreateOrUpdate(ctx, r.Client, owned, func() error {
		owned.Data = map[string]string{"weight": fmt.Sprint(object.Spec.Weight)}
		return controllerutil.SetControllerReference(&object, owned, r.Scheme())
	})
	return ctrl.Result{}, err
}

func TestManagerReconciles(t *testing.T) {
	config, api := start(t, &envtest.Environment{})
	manager, err := ctrl.NewManager(config, ctrl.Options{Scheme: api.Scheme(), Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		t.Fatal(err)
	}
	builder := ctrl.NewControllerManagedBy(manager).For(&fruit.Fruit{}).Owns(&corev1.ConfigMap{})
	if err := builder.Complete(&reconciler{manager.GetClient()}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- manager.Start(ctx) }()
	object := &fruit.Fruit{ObjectMeta: metav1.ObjectMeta{Name: "fig", Namespace: "default"}, Spec: fruit.Spec{Weight: 20}}
	if err := api.Create(ctx, object); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		var owned corev1.ConfigMap
		if err := api.Get(ctx, client.ObjectKeyFromObject(object), &owned); err != nil {
			return err
		}
		if owned.Data["weight"] != "20" {
			return fmt.Errorf("weight is %q", owned.Data["weight"])
		}
		return nil
	})
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestSchemasDefaultAndValidate(t *testing.T) {
	_, api := start(t, &envtest.Environment{})
	object := &fruit.Fruit{ObjectMeta: metav1.ObjectMeta{Name: "fig", Namespace: "default"}, Spec: fruit.Spec{Weight: 20}}
	if err := api.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if object.Spec.Sweetness == nil || !*object.Spec.Sweetness {
		t.Error("the default is not filled in")
	}
	bad := &fruit.Fruit{ObjectMeta: metav1.ObjectMeta{Name: "air", Namespace: "default"}}
	if err := api.Create(t.Context(), bad); !apierrors.IsInvalid(err) {
		t.Errorf("not refused but %v", err)
	}
}

func TestUsersAreBoundByRoles(t *testing.T) {
	environment := &envtest.Environment{}
	_, api := start(t, environment)
	user, err := environment.AddUser(envtest.User{Name: "bob", Groups: []string{"team"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	bob, err := client.New(user.Config(), client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := bob.List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("not forbidden but %v", err)
	}
}

func TestObjectsOutliveTheAPIServer(t *testing.T) {
	environment := &envtest.Environment{}
	_, api := start(t, environment)
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
	if err := api.Create(t.Context(), kept); err != nil {
		t.Fatal(err)
	}
	apiServer := environment.ControlPlane.GetAPIServer()
	if err := apiServer.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := apiServer.Start(); err != nil {
		t.Fatal(err)
	}
	user, err := environment.AddUser(envtest.User{Name: "again", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	again, err := client.New(user.Config(), client.Options{Scheme: api.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Get(t.Context(), client.ObjectKeyFromObject(kept), &corev1.ConfigMap{}); err != nil {
		t.Error(err)
	}
}

func TestWebhooksDeny(t *testing.T) {
	path, fail, none := "/deny", admissionv1.Fail, admissionv1.SideEffectClassNone
	config := &admissionv1.ValidatingWebhookConfiguration{
		TypeMeta:   metav1.TypeMeta{APIVersion: "admissionregistration.k8s.io/v1", Kind: "ValidatingWebhookConfiguration"},
		ObjectMeta: metav1.ObjectMeta{Name: "deny"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "deny.user.k8sasdb.org", FailurePolicy: &fail, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Name: "hook", Namespace: "default", Path: &path}},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	environment := &envtest.Environment{}
	environment.WebhookInstallOptions.ValidatingWebhooks = []*admissionv1.ValidatingWebhookConfiguration{config}
	_, api := start(t, environment)
	options := environment.WebhookInstallOptions
	hooks := webhook.NewServer(webhook.Options{Host: options.LocalServingHost, Port: options.LocalServingPort, CertDir: options.LocalServingCertDir})
	hooks.Register(path, &webhook.Admission{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		return admission.Denied("Always denied")
	})})
	go func() { _ = hooks.Start(t.Context()) }()
	eventually(t, func() error {
		address := net.JoinHostPort(options.LocalServingHost, fmt.Sprint(options.LocalServingPort))
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
	refused := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "refused", Namespace: "default"}}
	err := api.Create(t.Context(), refused)
	if !apierrors.IsForbidden(err) || !strings.HasSuffix(err.Error(), "Always denied") {
		t.Errorf("not denied but %v", err)
	}
}
