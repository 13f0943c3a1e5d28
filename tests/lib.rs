//! End-to-end suites by topic: each file beside this one starts its own servers, on ports and in
//! folders of its own, and ends them by process id. `OXIDIS_BIN` chooses the binary; with
//! `OXIDIS_BIN=/usr/bin/redis-server` a suite shows whether it is right about Redis.
#![forbid(unsafe_code)]
