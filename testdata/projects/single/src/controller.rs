//! The controllers of this program.

pub mod guestbook;
