//! The whole road: the shipped binary between both test servers, judged by the servers' own content.

mod cuts;
mod kills;
mod kit;
mod memory;
mod moves;
mod receipts;
mod refusals;
mod secrets;
