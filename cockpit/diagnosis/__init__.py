"""What is wrong, from evidence: pure functions, no machine is asked here.

`log_cause` reads one log. `diagnose` ranks hypotheses about one job from what was gathered of it (`evidence`).
"""
