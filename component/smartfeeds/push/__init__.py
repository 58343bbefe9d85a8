"""What leaves when a feed changes: ordered, resumable, bounded; the feed is its own outbox."""
