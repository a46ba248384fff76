//! Attributes of an operator: its kinds, controllers, permissions and webhooks.
