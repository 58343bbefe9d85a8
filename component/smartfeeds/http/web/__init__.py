"""The pages for browsers: their frame, their templates and their static files."""
