//! What `oxidis check-aof` tells.
