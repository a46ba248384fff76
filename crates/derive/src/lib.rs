//! Attributes for operators.
