//! Objects as pure functions: the worker pod and the journal claim.
