//! Version v1.

pub mod guestbook;
