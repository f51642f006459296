//! Words and decisions: plan, types, canonical bytes, digests, state machines, ports. No I/O, clock or randomness.
