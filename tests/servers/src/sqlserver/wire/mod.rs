//! TDS protocol: packets, tokens, login, RPC, bulk load, sessions.
