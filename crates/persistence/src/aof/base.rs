//! A snapshot as commands, for `aof-use-rdb-preamble no`.
