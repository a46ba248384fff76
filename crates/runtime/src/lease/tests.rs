//! Facts about elections: the rules one by one, then two candidates and a network that loses, delays and refuses.

mod faults;
mod rules;
