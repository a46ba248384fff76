//! The built-in controllers, one file each: a pure part with the rules, and a thin shell on the public SDK.

mod garbage_collector;
