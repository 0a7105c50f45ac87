"""What one look asks, as JSON; every look brings its own in place of this."""

ASKED = "{}"
