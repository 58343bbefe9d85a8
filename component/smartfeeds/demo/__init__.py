"""Servers of one's own on loopback, a feed to try out, and the recovery of a gap as it really happens."""
