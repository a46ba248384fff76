package main

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"kubewright.dev/bench/peers/controller-runtime/api"
)

// stamp is the annotation with the time at which an event was sent.
const stamp = "bench.kubewright.dev/stamp"

// What a reconcile does.
const (
	counts int32 = iota
	reads
	times
	flies
)

// world is a controller that runs, and what it has seen.
type world struct {
	client client.Client
	config *rest.Config
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]
	ready  chan struct{}

	attitude  atomic.Int32
	count     atomic.Int64
	started   chan time.Time
	probes    sync.Map
	lock      sync.Mutex
	latencies []time.Duration
}

// Reconcile does next to nothing: what is around it is measured.
func (w *world) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	now := time.Now()
	switch w.attitude.Load() {
	case reads:
		if err := w.client.Get(ctx, request.NamespacedName, &api.Foo{}); err != nil {
			return reconcile.Result{}, err
		}
	case times:
		w.time(ctx, now, request)
	case flies:
		if _, ok := w.probes.Load(request.NamespacedName); ok {
			w.started <- now
		} else {
			w.count.Add(1)
			<-ctx.Done()
		}
		return reconcile.Result{}, nil
	}
	w.count.Add(1)
	return reconcile.Result{}, nil
}

func (w *world) time(ctx context.Context, now time.Time, request reconcile.Request) {
	foo := &api.Foo{}
	if err := w.client.Get(ctx, request.NamespacedName, foo); err != nil {
		return
	}
	if sent, err := strconv.ParseInt(foo.Annotations[stamp], 10, 64); err == nil && sent > 0 {
		w.lock.Lock()
		w.latencies = append(w.latencies, now.Sub(time.UnixMicro(sent)))
		w.lock.Unlock()
	}
}

// start runs the controller until the process ends, and returns when it has reconciled every object once.
func start(plan plan) (*world, error) {
	config, err := clientcmd.BuildConfigFromFlags("", plan.kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	scheme := runtime.NewScheme()
	api.AddToScheme(scheme)
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme:         scheme,
		Metrics:        server.Options{BindAddress: "0"},
		MapperProvider: mapper,
	})
	if err != nil {
		return nil, err
	}
	w := &world{client: manager.GetClient(), config: config, ready: make(chan struct{}), started: make(chan time.Time, 1)}
	priorities := plan.queue == "priority"
	err = ctrl.NewControllerManagedBy(manager).
		For(&api.Foo{}).
		WatchesRawSource(source.Func(w.borrow)).
		WithOptions(controller.Options{MaxConcurrentReconciles: plan.workers, UsePriorityQueue: &priorities}).
		Complete(w)
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	go func() { failed <- manager.Start(context.Background()) }()
	select {
	case err := <-failed:
		return nil, err
	case <-w.ready:
	}
	return w, w.wait(0, plan.objects)
}

// borrow keeps the queue: what is measured is how fast keys run, not how they come to be there.
func (w *world) borrow(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.queue = queue
	close(w.ready)
	return nil
}

// mapper knows the one kind there is: the source has no discovery.
func mapper(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(api.GroupVersion.WithKind("Foo"), meta.RESTScopeNamespace)
	return mapper, nil
}

func request(namespace, name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
}
