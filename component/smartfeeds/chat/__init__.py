"""The types of chat commands, which the kernel and features share."""
