//! The test kit, tested with an operator that does what each test wants to see.

mod failures;
mod operator;
mod order;
mod roles;
mod running;
