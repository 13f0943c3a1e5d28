//! Load generator: redis-benchmark's options and output, and more.
