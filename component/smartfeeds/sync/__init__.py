"""The merge core: FeedSync 1.0.2, SSE 0.91, ordered outlines, and the documents that carry their sync data.

The package is pure: no clock, no randomness, no files. The caller says who makes an edit, and when.
"""
