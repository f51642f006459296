//! Certificates of the test servers: one CA and a leaf with the requested names.
