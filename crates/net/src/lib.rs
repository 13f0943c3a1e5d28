//! Event loop, connections, timers and mailboxes.
