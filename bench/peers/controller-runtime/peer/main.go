// Command peer measures controller-runtime as `kubewright-bench reconcile` measures kubewright and kube-rs: the same
// source, the same steps, one line of JSON on stdout.
//
//	peer reconcile --kubeconfig FILE --measure rate|latency|flight --objects N --workers N --reads none|object
//	  --queue priority|plain --rounds N --events N --flights N
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// plan is what is measured, and how much of it.
type plan struct {
	kubeconfig string
	measure    string
	objects    int
	workers    int
	reads      string
	queue      string
	rounds     int
	events     int
	flights    int
}

// report has what was found out; what was not measured is zero.
type report struct {
	PerSecond   float64 `json:"reconciles_per_second"`
	P50         float64 `json:"latency_p50_seconds"`
	P99         float64 `json:"latency_p99_seconds"`
	AloneP50    float64 `json:"alone_p50_seconds"`
	CrowdedP50  float64 `json:"crowded_p50_seconds"`
	CrowdedP99  float64 `json:"crowded_p99_seconds"`
	FlightBytes uint64  `json:"flight_bytes"`
}

func main() {
	if len(os.Args) < 2 || os.Args[1] != "reconcile" {
		fail(fmt.Errorf("say reconcile"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	plan := plan{}
	flags.StringVar(&plan.kubeconfig, "kubeconfig", "", "where the source is")
	flags.StringVar(&plan.measure, "measure", "rate", "rate, latency or flight")
	flags.IntVar(&plan.objects, "objects", 1000, "how many objects the source has")
	flags.IntVar(&plan.workers, "workers", 1, "how many reconciles may run at once")
	flags.StringVar(&plan.reads, "reads", "none", "what a reconcile reads: none or object")
	flags.StringVar(&plan.queue, "queue", "priority", "which queue: priority or plain")
	flags.IntVar(&plan.rounds, "rounds", 3, "how often; the best counts")
	flags.IntVar(&plan.events, "events", 100, "how many events are timed")
	flags.IntVar(&plan.flights, "flights", 100, "how many reconciles are in flight")
	if err := flags.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	ctrl.SetLogger(logr.Discard())
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	report, err := measure(plan)
	if err != nil {
		fail(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		fail(err)
	}
}

type discard struct{}

func (discard) Write(bytes []byte) (int, error) { return len(bytes), nil }

func fail(err error) {
	fmt.Fprintln(os.Stderr, "peer:", err)
	os.Exit(1)
}
