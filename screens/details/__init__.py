"""What is known of one thing, joined, as lines for a text view: pure functions over a cluster's view."""
