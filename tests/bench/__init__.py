"""The benchmark: ours beside the pubsub services of Prosody and ejabberd, the same work over the same link."""
