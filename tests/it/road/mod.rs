//! The whole road: the shipped binary between both test servers, judged by the servers' own content.

mod cuts;
mod evidence;
mod kills;
mod kit;
mod memory;
mod moves;
mod qualification;
mod receipts;
mod refusals;
mod replicas;
mod secrets;
