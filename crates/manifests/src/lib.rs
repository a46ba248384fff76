//! Manifests of an operator: CRDs, roles, webhooks, install YAML; lint and breaking changes.
