"""Storage of feeds: a protocol of transactions, and a SQL store that implements it."""
