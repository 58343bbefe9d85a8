"""What chat commands are, whichever part of the service brings them."""
