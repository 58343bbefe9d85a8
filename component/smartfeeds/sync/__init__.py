"""The merge core, pure: FeedSync 1.0.2, SSE 0.91, ordered outlines; and its documents.

Values in, values out: no clock, no randomness, no files. Who edits, says when and by whom.
"""
