"""Where feeds live: a transaction protocol, a SQL store for it, and a memory store for tests."""
