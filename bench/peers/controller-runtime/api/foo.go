// Package api has the Foo of examples/foo, as a user of controller-runtime would write it.
package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is where Foos are served.
var GroupVersion = schema.GroupVersion{Group: "samplecontroller.k8s.io", Version: "v1alpha1"}

// FooSpec is what a user asks for.
type FooSpec struct {
	DeploymentName string `json:"deploymentName"`
	Replicas       *int32 `json:"replicas,omitempty"`
}

// FooStatus is what became of it.
type FooStatus struct {
	AvailableReplicas int32 `json:"availableReplicas"`
}

// Foo asks for a Deployment.
type Foo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   FooSpec   `json:"spec"`
	Status FooStatus `json:"status,omitempty"`
}

// FooList is a list of them.
type FooList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []Foo `json:"items"`
}

// AddToScheme makes the types known.
func AddToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(GroupVersion, &Foo{}, &FooList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
}

// DeepCopyObject copies a Foo.
func (foo *Foo) DeepCopyObject() runtime.Object {
	return foo.DeepCopy()
}

// DeepCopy copies a Foo.
func (foo *Foo) DeepCopy() *Foo {
	out := new(Foo)
	foo.DeepCopyInto(out)
	return out
}

// DeepCopyInto copies a Foo into another one.
func (foo *Foo) DeepCopyInto(out *Foo) {
	*out = *foo
	foo.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	if foo.Spec.Replicas != nil {
		replicas := *foo.Spec.Replicas
		out.Spec.Replicas = &replicas
	}
}

// DeepCopyObject copies a list.
func (list *FooList) DeepCopyObject() runtime.Object {
	out := new(FooList)
	out.TypeMeta = list.TypeMeta
	list.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Foo, len(list.Items))
	for i := range list.Items {
		list.Items[i].DeepCopyInto(&out.Items[i])
	}
	return out
}
