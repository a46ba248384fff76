//! Version v2.

pub mod guestbook;
