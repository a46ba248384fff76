//! Build, run and prove Kubernetes operators.
