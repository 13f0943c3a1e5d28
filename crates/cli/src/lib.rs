//! Command-line client: redis-cli's options and formats.
