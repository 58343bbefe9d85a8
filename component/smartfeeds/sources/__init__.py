"""What comes in from elsewhere: fetching addresses that others named, and feeds that fill themselves."""
