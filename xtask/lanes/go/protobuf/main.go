// Objects of every built-in kind, filled at random and written by Go: `make` writes each as JSON and as protobuf, a line
// each; `check` reads such lines with the protobuf of somebody else, and tells which do not mean what their JSON says.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"sort"
	"strconv"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	kjson "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/randfill"
)

// One object. Bytes are base64 in JSON.
type line struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	JSON       json.RawMessage `json:"json"`
	Protobuf   []byte          `json:"protobuf"`
}

var (
	asProtobuf = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	asJSON     = kjson.NewSerializerWithOptions(kjson.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, kjson.SerializerOptions{})
)

func main() {
	must(apiextensionsv1.AddToScheme(scheme.Scheme))
	if os.Args[1] == "check" {
		check()
		return
	}
	seed, err := strconv.ParseInt(os.Args[2], 10, 64)
	must(err)
	each, err := strconv.Atoi(os.Args[3])
	must(err)
	makeAll(seed, each)
}

func makeAll(seed int64, each int) {
	funcs := fuzzer.MergeFuzzerFuncs(metafuzzer.Funcs, ours)
	filler := fuzzer.FuzzerFor(funcs, rand.NewSource(seed), serializer.NewCodecFactory(scheme.Scheme))
	out := json.NewEncoder(os.Stdout)
	for _, kind := range kinds() {
		for range each {
			object, err := scheme.Scheme.New(kind)
			must(err)
			filler.Fill(object)
			object.GetObjectKind().SetGroupVersionKind(kind)
			written := encode(asProtobuf, object)
			// What protobuf does not tell apart, such as an empty list from none, JSON should not either.
			again, err := decode(kind, written)
			must(err)
			must(out.Encode(line{kind.GroupVersion().String(), kind.Kind, encode(asJSON, again), written}))
		}
	}
}

func check() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 64<<20)
	wrong := 0
	for in.Scan() {
		var told line
		must(json.Unmarshal(in.Bytes(), &told))
		kind := schema.FromAPIVersionAndKind(told.APIVersion, told.Kind)
		object, err := decode(kind, told.Protobuf)
		var found []byte
		if err == nil {
			found = encode(asJSON, object)
		}
		if err != nil || !bytes.Equal(compact(found), compact(told.JSON)) {
			wrong++
			fmt.Printf("%s %s: %v\n  wanted %s\n  found  %s\n", told.APIVersion, told.Kind, err, compact(told.JSON), compact(found))
		}
	}
	must(in.Err())
	if wrong > 0 {
		os.Exit(1)
	}
}

// All kinds of all versions, in order. Every group has the options of requests; those of one are enough.
func kinds() []schema.GroupVersionKind {
	var kinds []schema.GroupVersionKind
	for kind := range scheme.Scheme.AllKnownTypes() {
		isOption := len(kind.Kind) > 7 && kind.Kind[len(kind.Kind)-7:] == "Options"
		switch {
		case kind.Version == runtime.APIVersionInternal, kind.Kind == "WatchEvent":
		case isOption && kind.Group != "" && kind.Group != "policy":
		default:
			kinds = append(kinds, kind)
		}
	}
	sort.Slice(kinds, func(i, j int) bool { return kinds[i].String() < kinds[j].String() })
	return kinds
}

func encode(serializer runtime.Serializer, object runtime.Object) []byte {
	var out bytes.Buffer
	must(serializer.Encode(object, &out))
	return out.Bytes()
}

func decode(kind schema.GroupVersionKind, written []byte) (runtime.Object, error) {
	object, _, err := asProtobuf.Decode(written, &kind, nil)
	if err == nil {
		object.GetObjectKind().SetGroupVersionKind(kind)
	}
	return object, err
}

func compact(text []byte) []byte {
	var out bytes.Buffer
	if json.Compact(&out, text) != nil {
		return text
	}
	return out.Bytes()
}

// How types are filled that would not be valid otherwise, or without end.
func ours(serializer.CodecFactory) []interface{} {
	depth := 0
	return []interface{}{
		func(raw *runtime.RawExtension, c randfill.Continue) {
			raw.Raw = []byte(`{"apiVersion":"v1","kind":"Any","list":[1,"a",null,{"b":0.5}]}`)
		},
		func(any *apiextensionsv1.JSON, c randfill.Continue) {
			values := []string{`"text"`, `1`, `true`, `{"a":[1,2]}`, `[null,{}]`}
			any.Raw = []byte(values[c.Rand.Intn(len(values))])
		},
		func(props *apiextensionsv1.JSONSchemaProps, c randfill.Continue) {
			if depth > 2 {
				props.Type = "string"
				return
			}
			depth++
			c.FillNoCustom(props)
			depth--
		},
		func(props *apiextensionsv1.JSONSchemaPropsOrBool, c randfill.Continue) {
			if props.Allows = c.Bool(); props.Allows && c.Bool() {
				props.Schema = &apiextensionsv1.JSONSchemaProps{}
				c.Fill(props.Schema)
			}
		},
		func(props *apiextensionsv1.JSONSchemaPropsOrArray, c randfill.Continue) {
			schemas := make([]apiextensionsv1.JSONSchemaProps, 1+c.Rand.Intn(2))
			for i := range schemas {
				c.Fill(&schemas[i])
			}
			if props.Schema = &schemas[0]; c.Bool() {
				props.Schema, props.JSONSchemas = nil, schemas
			}
		},
		func(props *apiextensionsv1.JSONSchemaPropsOrStringArray, c randfill.Continue) {
			if props.Property = []string{"a", c.String(0)}; c.Bool() {
				props.Property, props.Schema = nil, &apiextensionsv1.JSONSchemaProps{}
				c.Fill(props.Schema)
			}
		},
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
