//! The recorded exchanges with a real server can be read and compared with.

mod golden;
