"""What comes in from elsewhere: mirrors, and nodes that are filled from feeds of others."""
