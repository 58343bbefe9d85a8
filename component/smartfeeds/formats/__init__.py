"""Documents to items and back, pure: bytes and values in, bytes and values out."""
