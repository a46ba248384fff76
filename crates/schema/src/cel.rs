//! The Common Expression Language as the API server speaks it: parsing, checking, estimating and evaluating.

mod ast;
mod lexer;
mod macros;
mod parser;
mod source;
