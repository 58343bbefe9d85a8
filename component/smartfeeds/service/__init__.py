"""The use cases: one function a request, each one transaction of the store."""
