"""The chat bot: commands in chat messages, and a deliverer that sends new items as chat messages."""
