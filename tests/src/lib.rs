//! Test kit: servers, proxy and the integration tests of the whole road.
