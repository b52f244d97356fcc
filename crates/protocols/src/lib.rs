//! Protocols of the mesh, one file each.
//!
//! Each file names its source (a paper or an RFC) and draws its state machine. What protocols say
//! to each other within a node stands in [`interface`], so that one can take another's place.
//!
//! Invariants:
//! - A protocol's state has a limit beside it, and what a peer can fill evicts only what is oldest.
//! - No message panics, whatever is in it; a sequence number is compared as one, and belongs to one
//!   life of its sender.
//! - Nothing is believed of a node that isn't heard by and hearing this one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod accrual_detector;
pub mod aggregation;
pub mod aodv;
pub mod babel;
pub mod batman;
pub mod broadcast;
pub mod counter_broadcast;
pub mod coverage_broadcast;
pub mod discovery;
pub mod distance_broadcast;
pub mod experiment;
pub mod extremes;
pub mod failure_detection;
pub mod flooding;
pub mod flow_updating;
pub mod forwarding;
pub mod fragmentation;
pub mod gap;
pub mod gossip;
pub mod hyparview;
pub mod interface;
pub mod joining;
pub mod limosense;
pub mod mass;
pub mod membership;
pub mod network_key;
mod oldest;
pub mod plug_in;
pub mod plumtree;
pub mod push_sum;
pub mod reliable;
pub mod reliable_broadcast;
pub mod replicated_records;
pub mod testing;
pub mod timeout_detector;
pub mod topology_control;
mod trickle;
