"""The one mechanism that carries the changes of feeds to their consumers, in order and from a durable mark."""
