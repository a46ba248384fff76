package main

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const (
	// namespaces is how many the objects are spread over.
	namespaces = 100
	// pace is how many events a second are timed.
	pace = 100
	// probes is how many keys are timed one after the other.
	probes = 200
	// settle is how long a process is left alone.
	settle = 2 * time.Second
	// patience is how long something may take.
	patience = 10 * time.Minute
)

func measure(plan plan) (report, error) {
	w, err := start(plan)
	if err != nil {
		return report{}, err
	}
	time.Sleep(settle)
	switch plan.measure {
	case "rate":
		return w.rate(plan)
	case "latency":
		return w.latency(plan)
	case "flight":
		return w.flight(plan)
	}
	return report{}, fmt.Errorf("unknown measure %q", plan.measure)
}

// rate adds every key and waits until each has run.
func (w *world) rate(plan plan) (report, error) {
	keys := make([]reconcile.Request, plan.objects)
	for i := range keys {
		keys[i] = key(i)
	}
	if plan.reads == "object" {
		w.attitude.Store(reads)
	}
	best := report{}
	for range plan.rounds {
		before := w.count.Load()
		began := time.Now()
		for _, key := range keys {
			w.queue.Add(key)
		}
		if err := w.wait(before, plan.objects); err != nil {
			return best, err
		}
		best.PerSecond = max(best.PerSecond, float64(plan.objects)/time.Since(began).Seconds())
	}
	return best, nil
}

// latency has the source change objects, and takes the time until each runs.
func (w *world) latency(plan plan) (report, error) {
	w.attitude.Store(times)
	before := w.count.Load()
	if err := w.order(fmt.Sprintf("/bench/events?count=%d&pace=%d", plan.events, pace)); err != nil {
		return report{}, err
	}
	if err := w.wait(before, plan.events); err != nil {
		return report{}, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	return report{P50: quantile(w.latencies, 0.5), P99: quantile(w.latencies, 0.99)}, nil
}

// flight times new keys while no reconcile runs, and while many do.
func (w *world) flight(plan plan) (report, error) {
	if plan.objects < plan.flights+probes {
		return report{}, fmt.Errorf("too few objects")
	}
	for i := range probes {
		w.probes.Store(key(plan.flights+i).NamespacedName, true)
	}
	w.attitude.Store(flies)
	alone := w.probe(plan)
	report := report{AloneP50: quantile(alone, 0.5)}
	before := w.count.Load()
	for i := range plan.flights {
		w.queue.Add(key(i))
	}
	if err := w.wait(before, plan.flights); err != nil {
		return report, err
	}
	time.Sleep(settle)
	report.FlightBytes = resident()
	crowded := w.probe(plan)
	report.CrowdedP50, report.CrowdedP99 = quantile(crowded, 0.5), quantile(crowded, 0.99)
	return report, nil
}

// probe adds keys one after the other, and takes the time until each runs.
func (w *world) probe(plan plan) []time.Duration {
	samples := make([]time.Duration, 0, probes)
	for i := range probes {
		time.Sleep(2 * time.Millisecond)
		began := time.Now()
		w.queue.Add(key(plan.flights + i))
		samples = append(samples, (<-w.started).Sub(began))
	}
	return samples
}

// wait returns when so many more reconciles have run than there were.
func (w *world) wait(before int64, reconciles int) error {
	began := time.Now()
	for w.count.Load()-before < int64(reconciles) {
		if time.Since(began) > patience {
			return fmt.Errorf("%d of %d reconciles ran", w.count.Load()-before, reconciles)
		}
		time.Sleep(200 * time.Microsecond)
	}
	return nil
}

// order tells the source what to do.
func (w *world) order(path string) error {
	client, err := rest.HTTPClientFor(w.config)
	if err != nil {
		return err
	}
	answer, err := client.Get(w.config.Host + path)
	if err != nil {
		return err
	}
	return answer.Body.Close()
}

func key(number int) reconcile.Request {
	return request(fmt.Sprintf("namespace-%02d", number%namespaces), fmt.Sprintf("foo-%07d", number))
}

// quantile is the sample that this share of all does not exceed, in seconds.
func quantile(samples []time.Duration, share float64) float64 {
	if len(samples) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[int(float64(len(sorted)-1)*share+0.5)].Seconds()
}

// resident is the memory of this process in bytes.
func resident() uint64 {
	file, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "VmRSS:"); ok {
			kilobytes, _ := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}
