"""The Smart Feed, pure: no I/O, no clock, no randomness, no logging, nothing of the network or the store."""
