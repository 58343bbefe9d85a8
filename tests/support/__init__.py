"""The common parts of tests: real servers, a raw client, values."""
