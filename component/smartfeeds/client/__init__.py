"""The public follower: proves that it has everything, and gets what it lacks."""
