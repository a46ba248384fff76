// Package fruit is the custom kind of examples/fruit, as a kubebuilder project would have it.
package fruit

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Version is the group and version.
var Version = schema.GroupVersion{Group: "user.k8sasdb.org", Version: "v1"}

// Resource is what dynamic clients ask for.
var Resource = Version.WithResource("fruits")

// Spec is what is known about a fruit.
type Spec struct {
	Weight    int64  `json:"weight"`
	Sweetness *bool  `json:"sweetness,omitempty"`
	Comment   string `json:"comment,omitempty"`
}

// Status is what became of it.
type Status struct {
	Eaten bool `json:"eaten,omitempty"`
}

// Fruit is one piece of fruit.
type Fruit struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              Spec   `json:"spec"`
	Status            Status `json:"status,omitempty"`
}

// FruitList is several of them.
type FruitList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Fruit `json:"items"`
}

// DeepCopyObject makes a Fruit a runtime.Object.
func (f *Fruit) DeepCopyObject() runtime.Object {
	copied := *f
	f.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	if f.Spec.Sweetness != nil {
		sweetness := *f.Spec.Sweetness
		copied.Spec.Sweetness = &sweetness
	}
	return &copied
}

// DeepCopyObject makes a FruitList a runtime.Object.
func (l *FruitList) DeepCopyObject() runtime.Object {
	copied := *l
	copied.Items = make([]Fruit, len(l.Items))
	for at := range l.Items {
		copied.Items[at] = *l.Items[at].DeepCopyObject().(*Fruit)
	}
	return &copied
}

// AddToScheme makes the kind known.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(Version, &Fruit{}, &FruitList{})
	metav1.AddToGroupVersion(scheme, Version)
	return nil
}
