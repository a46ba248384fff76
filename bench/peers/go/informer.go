package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	instanceLabel = "app.kubernetes.io/instance"
	stamp         = "bench.kubewright.dev/stamp"
	// How many events a second are timed one by one.
	pace = 200
	// How long a read of the store is repeated.
	readFor = time.Second
	// How long a process is left alone before its memory is read.
	settle = 2 * time.Second
)

type plan struct {
	kubeconfig, form    string
	pods, events, paced int
}

type informerReport struct {
	Base            uint64  `json:"base"`
	SyncSeconds     float64 `json:"sync_seconds"`
	Steady          uint64  `json:"steady"`
	Peak            uint64  `json:"peak"`
	GetsPerSecond   float64 `json:"gets_per_second"`
	CopiesPerSecond float64 `json:"copies_per_second"`
	FewPerSecond    float64 `json:"few_per_second"`
	ManyPerSecond   float64 `json:"many_per_second"`
	EventsPerSecond float64 `json:"events_per_second"`
	LatencyP50      float64 `json:"latency_p50_seconds"`
	LatencyP99      float64 `json:"latency_p99_seconds"`
	RelistPeak      uint64  `json:"relist_peak"`
	RelistSteady    uint64  `json:"relist_steady"`
}

// listener counts updates, and times those that carry the time at which they were sent.
type listener struct {
	updates   atomic.Int64
	latencies []time.Duration
}

func (l *listener) OnAdd(any, bool) {}
func (l *listener) OnDelete(any)    {}
func (l *listener) OnUpdate(_, object any) {
	sent, _ := strconv.ParseInt(object.(metav1.Object).GetAnnotations()[stamp], 10, 64)
	if sent > 0 {
		l.latencies = append(l.latencies, time.Since(time.UnixMicro(sent)))
	}
	l.updates.Add(1)
}

// wait returns when so many updates have been heard since the count was taken.
func (l *listener) wait(since int64, updates int) error {
	deadline := time.Now().Add(10 * time.Minute)
	for l.updates.Load()-since < int64(updates) {
		if time.Now().After(deadline) {
			return fmt.Errorf("%d of %d updates came", l.updates.Load()-since, updates)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

func measureInformer(plan plan) (informerReport, error) {
	report := informerReport{}
	config, err := clientcmd.BuildConfigFromFlags("", plan.kubeconfig)
	if err != nil {
		return report, err
	}
	config.QPS = -1
	informer, err := informerOf(config, plan.form)
	if err != nil {
		return report, err
	}
	byInstance := func(object any) ([]string, error) {
		return []string{object.(metav1.Object).GetLabels()[instanceLabel]}, nil
	}
	if err := informer.AddIndexers(cache.Indexers{"instance": byInstance}); err != nil {
		return report, err
	}
	listener := &listener{}
	registration, err := informer.AddEventHandler(listener)
	if err != nil {
		return report, err
	}
	control, err := controlOf(config)
	if err != nil {
		return report, err
	}
	report.Base = resident()
	start := time.Now()
	go informer.RunWithContext(context.Background())
	for !registration.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	report.SyncSeconds = time.Since(start).Seconds()
	time.Sleep(settle)
	report.Steady, report.Peak = resident(), peak()
	if plan.form == "typed" {
		reads(&report, informer.GetIndexer(), plan.pods)
	}
	if plan.events > 0 {
		if err := events(&report, control, listener, plan); err != nil {
			return report, err
		}
		if err := relist(&report, control); err != nil {
			return report, err
		}
	}
	return report, nil
}

func informerOf(config *rest.Config, form string) (cache.SharedIndexInformer, error) {
	pods := schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	switch form {
	case "dynamic":
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		return dynamicinformer.NewDynamicSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	case "metadata":
		client, err := metadata.NewForConfig(metadata.ConfigFor(config))
		if err != nil {
			return nil, err
		}
		return metadatainformer.NewSharedInformerFactory(client, 0).ForResource(pods).Informer(), nil
	case "typed":
		config.ContentType = runtime.ContentTypeProtobuf
		config.AcceptContentTypes = runtime.ContentTypeProtobuf
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return informers.NewSharedInformerFactory(client, 0).Core().V1().Pods().Informer(), nil
}

// control asks the source to do something besides serving.
type control func(path string) error

func controlOf(config *rest.Config) (control, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	return func(path string) error {
		response, err := client.Get(config.Host + path)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(io.Discard, response.Body)
		if err == nil && response.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s: %s", path, response.Status)
		}
		return err
	}, nil
}

func events(report *informerReport, control control, listener *listener, plan plan) error {
	before := listener.updates.Load()
	start := time.Now()
	if err := control(fmt.Sprintf("/bench/events?count=%d", plan.events)); err != nil {
		return err
	}
	if err := listener.wait(before, plan.events); err != nil {
		return err
	}
	report.EventsPerSecond = float64(plan.events) / time.Since(start).Seconds()
	time.Sleep(settle)
	before = listener.updates.Load()
	if err := control(fmt.Sprintf("/bench/events?count=%d&pace=%d", plan.paced, pace)); err != nil {
		return err
	}
	if err := listener.wait(before, plan.paced); err != nil {
		return err
	}
	slices.Sort(listener.latencies)
	last := len(listener.latencies) - 1
	report.LatencyP50 = listener.latencies[last/2].Seconds()
	report.LatencyP99 = listener.latencies[last*99/100].Seconds()
	return nil
}

func relist(report *informerReport, control control) error {
	if err := forgetPeak(); err != nil {
		return err
	}
	report.RelistSteady = resident()
	if err := control("/bench/relist"); err != nil {
		return err
	}
	time.Sleep(settle)
	report.RelistPeak = peak()
	return nil
}
