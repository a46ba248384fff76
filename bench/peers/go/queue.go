package main

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queueReport has keys a second: added, taken and done.
type queueReport struct {
	OneWorker    float64 `json:"one_worker"`
	EightWorkers float64 `json:"eight_workers"`
}

func measureQueue(keys, rounds int) queueReport {
	names := make([]string, keys)
	for i := range names {
		names[i] = fmt.Sprintf("namespace-%d/workload-%07d", i%100, i)
	}
	report := queueReport{}
	for range rounds {
		report.OneWorker = max(report.OneWorker, throughQueue(names, 1))
		report.EightWorkers = max(report.EightWorkers, throughQueue(names, 8))
	}
	return report
}

// throughQueue adds all keys, then has them taken and done. Few keys go round often, so that there is something to time.
func throughQueue(names []string, workers int) float64 {
	queue := workqueue.NewTyped[string]()
	defer queue.ShutDown()
	turns := max(200_000/len(names), 1)
	start := time.Now()
	for range turns {
		for _, name := range names {
			queue.Add(name)
		}
		var done sync.WaitGroup
		for worker := range workers {
			share := len(names) / workers
			if worker == 0 {
				share += len(names) % workers
			}
			done.Go(func() {
				for range share {
					name, _ := queue.Get()
					queue.Done(name)
				}
			})
		}
		done.Wait()
	}
	return float64(len(names)*turns) / time.Since(start).Seconds()
}
