//! For tests of operators: an API server in the process, and faults between it and its clients.
