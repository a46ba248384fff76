// Command peer measures client-go as `kubewright-bench client` measures kubewright and kube-rs: the same source, the same
// steps, one line of JSON on stdout.
//
//	peer informer --kubeconfig FILE --form typed|json|dynamic|metadata --pods N --events N --paced N
//	peer queue --keys N --rounds N
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"

	"k8s.io/klog/v2"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("say informer or queue"))
	}
	flags := flag.NewFlagSet(os.Args[1], flag.ExitOnError)
	plan := plan{}
	flags.StringVar(&plan.kubeconfig, "kubeconfig", "", "where the source is")
	flags.StringVar(&plan.form, "form", "typed", "typed, json, dynamic or metadata")
	flags.IntVar(&plan.pods, "pods", 1000, "how many pods the source has")
	flags.IntVar(&plan.events, "events", 1000, "how many events are taken as fast as they come")
	flags.IntVar(&plan.paced, "paced", 100, "how many events are timed one by one")
	keys := flags.Int("keys", 1000, "how many keys go through the queue")
	rounds := flags.Int("rounds", 3, "how often; the best counts")
	if err := flags.Parse(os.Args[2:]); err != nil {
		fail(err)
	}
	// A relist is part of the plan; its warnings are not news.
	klog.LogToStderr(false)
	klog.SetOutput(discard{})
	switch os.Args[1] {
	case "informer":
		report, err := measureInformer(plan)
		if err != nil {
			fail(err)
		}
		show(report)
	case "queue":
		show(measureQueue(*keys, *rounds))
	default:
		fail(fmt.Errorf("unknown command %q", os.Args[1]))
	}
}

type discard struct{}

func (discard) Write(bytes []byte) (int, error) { return len(bytes), nil }

func show(report any) {
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "peer:", err)
	os.Exit(1)
}
