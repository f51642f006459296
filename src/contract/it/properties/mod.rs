//! Properties that hold for any input, checked on generated ones.

mod block;
mod encode;
mod tds;
